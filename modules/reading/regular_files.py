"""Opens files that people name: only regular ones within a size, so that no FIFO, device or endless file hangs.

Every reader of a file goes through here; ``tests/attacks/test_readers.py`` finds those that do not.
"""

from __future__ import annotations

import json
import os
import stat
from collections.abc import Iterator
from io import BufferedReader
from pathlib import Path

from ..errors import LoadingError, UserError

MAX_SMALL_BYTES = 16_000_000
"""Most bytes of a file that people write by hand or that describes other data: YAML, TOML, manifests, calibrations."""
MAX_DATA_BYTES = 4_000_000_000
"""Most bytes of a file of data that is read whole: rows, labels, recordings, lists of a public data set."""
MAX_LINE_BYTES = 64_000_000
"""Most bytes of a line of a file that is read line by line."""
_BLOCK_BYTES = 1 << 20
_SPECIAL = {
    stat.S_IFIFO: "a FIFO",
    stat.S_IFSOCK: "a socket",
    stat.S_IFCHR: "a device",
    stat.S_IFBLK: "a device",
    stat.S_IFDIR: "a folder",
}
# A FIFO must not block; without O_BINARY, Windows translates line ends.
_OPEN_FLAGS = os.O_RDONLY | sum(getattr(os, flag, 0) for flag in ("O_NONBLOCK", "O_NOCTTY", "O_CLOEXEC", "O_BINARY"))


def open_regular(path: Path) -> BufferedReader:
    """Open a regular file for reading; the call never waits.

    Raises:
        LoadingError: It is a folder, FIFO, socket or device; the message is only the reason.
        OSError: It cannot be opened.
    """
    if path.is_dir():  # Windows cannot open one
        raise LoadingError(not_regular(path.stat()))
    descriptor = os.open(path, _OPEN_FLAGS)
    stream = os.fdopen(descriptor, "rb")
    status = os.fstat(descriptor)
    if stat.S_ISREG(status.st_mode):
        return stream
    stream.close()
    raise LoadingError(not_regular(status))


def not_regular(status: os.stat_result) -> str:
    """Return why a thing that is no regular file cannot be read, as the end of a sentence."""
    return f"it is {_SPECIAL.get(stat.S_IFMT(status.st_mode), 'something special')}, no regular file"


def read_regular(path: Path, *, max_bytes: int) -> bytes:
    """Return the bytes of a regular file.

    Raises:
        LoadingError: It is larger, or no regular file; the message is only the reason.
        OSError: It cannot be read.
    """
    with open_regular(path) as stream:
        size = os.fstat(stream.fileno()).st_size
        # A file may grow while it is read, and some files in /proc have no size.
        data = _read(stream, at_most=max_bytes + 1) if size <= max_bytes else b""
    if max(size, len(data)) > max_bytes:
        raise LoadingError(f"it is larger than {max_bytes / 1e6:g} MB; split it, or raise the limit")
    return data


def read_named(
    path: Path, *, what: str, advice: str, max_bytes: int = MAX_SMALL_BYTES, error: type[UserError] = LoadingError
) -> bytes:
    """Return the bytes of a file that a person named or that lies in a folder of theirs.

    Args:
        path: The file.
        what: What messages call it, with its article: "the experiment".
        advice: What to do about a file that cannot be read, in whole sentences.
        max_bytes: Most bytes.
        error: Class of the error.

    Raises:
        UserError: It cannot be read, is no regular file or too large; the message names it, and the class is ``error``.
    """
    try:
        return read_regular(path, max_bytes=max_bytes)
    except (LoadingError, OSError, ValueError) as found:  # ValueError: NUL in the name
        reason = found.strerror if isinstance(found, OSError) and found.strerror else str(found)
        raise error(f"Cannot read {what} {path}: {reason}. {advice}") from found


def read_named_text(
    path: Path, *, what: str, advice: str, max_bytes: int = MAX_SMALL_BYTES, error: type[UserError] = LoadingError
) -> str:
    """Return the text of a UTF-8 file, without a byte order mark; see ``read_named``."""
    data = read_named(path, what=what, advice=advice, max_bytes=max_bytes, error=error)
    try:
        return data.decode("utf-8-sig")
    except UnicodeDecodeError as found:
        raise error(f"Cannot read {what} {path}: it is not UTF-8 text ({found}). {advice}") from found


def read_named_json(
    path: Path, *, what: str, advice: str, max_bytes: int = MAX_SMALL_BYTES, error: type[UserError] = LoadingError
) -> object:
    """Return what a JSON file holds; see ``read_named``."""
    text = read_named_text(path, what=what, advice=advice, max_bytes=max_bytes, error=error)
    try:
        value: object = json.loads(text)
    except (ValueError, RecursionError) as found:
        reason = "it is nested too deep" if isinstance(found, RecursionError) else f"it is not JSON ({found})"
        raise error(f"Cannot read {what} {path}: {'it is empty' if not text.strip() else reason}. {advice}") from found
    return value


def lines_of(stream: BufferedReader, *, max_bytes: int = MAX_LINE_BYTES) -> Iterator[bytes]:
    """Yield the lines of an open file with their line breaks.

    Raises:
        LoadingError: A line is longer; the message is only the reason.
    """
    for number, line in enumerate(iter(lambda: stream.readline(max_bytes + 1), b""), start=1):
        if len(line) > max_bytes:
            raise LoadingError(f"line {number} is longer than {max_bytes / 1e6:g} MB")
        yield line


def _read(stream: BufferedReader, *, at_most: int) -> bytes:
    """Return the first bytes of a stream, in blocks, since one large read allocates all of its memory first."""
    blocks: list[bytes] = []
    left = at_most
    while left and (block := stream.read(min(left, _BLOCK_BYTES))):
        blocks.append(block)
        left -= len(block)
    return b"".join(blocks)
