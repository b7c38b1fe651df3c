"""Atomic writes: a file has its old content or all of the new one, whatever fails and however many write it at once.

Content is written to a hidden file with a name of its own beside the target, flushed to the disk, and renamed. After a
kill that hidden file stays; the next write of the target removes it once it is an hour old.
"""

from __future__ import annotations

import os
import stat
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import BinaryIO, cast

from .write_errors import refusing_full_disk

_HALF = ".half"
_ABANDONED_S = 3600.0
"""Seconds without a write after which a half-written file is taken for that of a killed process."""
_MOST_NAME_BYTES = 200
"""Bytes of the target's name in that of its half-written file; file systems allow 255 in all."""


def write_atomic(path: Path, content: str | bytes, *, private: bool = False) -> None:
    """Replace a file atomically: other processes see its old content, or all of ``content``.

    Args:
        path: The file, whose folder exists.
        content: Bytes, or text that is written in UTF-8; bytes of a path that are none stand as ``\\udcff``, which JSON
            reads as them.
        private: As in ``replacing``.

    Raises:
        WritingError: The file could not be written, and is unchanged.
    """
    with replacing(path, private=private) as out:
        out.write(content.encode("utf-8", "backslashreplace") if isinstance(content, str) else content)


@contextmanager
def replacing(path: Path, *, private: bool = False) -> Iterator[BinaryIO]:
    """Give a stream whose bytes become the file's content when the block ends; an exception leaves the file as it was.

    A link is followed. What is no regular file (a terminal, a pipe, ``/dev/stdout``) is written to directly. A new file
    has the rights that the umask gives, an old one keeps its own.

    Args:
        path: The file, whose folder exists.
        private: Whether only this user may read and write the file, whatever umask and old file say.

    Raises:
        WritingError: The file could not be written, and is unchanged.
    """
    with refusing_full_disk(path):
        target = Path(os.path.realpath(path))
        rights = _rights_of(target, private=private)
        if rights is None:
            with target.open("wb") as out:
                yield cast(BinaryIO, out)
            return
        number, name = tempfile.mkstemp(prefix=_prefix(target), suffix=_HALF, dir=target.parent)
        half = Path(name)
        try:
            with os.fdopen(number, "wb") as out:
                yield cast(BinaryIO, out)
                out.flush()
                os.fsync(out.fileno())
                _remove_abandoned(target, now_s=os.fstat(out.fileno()).st_mtime)
            half.chmod(rights)
            half.replace(target)
        except BaseException:  # a KeyboardInterrupt too
            with suppress(OSError):
                half.unlink(missing_ok=True)
            raise


def _rights_of(target: Path, *, private: bool) -> int | None:
    """Return the rights that a new version of a file gets; None for what is no regular file."""
    try:
        old = target.stat().st_mode
    except FileNotFoundError:
        return 0o600 if private else 0o666 & ~_umask()
    if stat.S_ISDIR(old):
        raise IsADirectoryError(f"{target} is a folder")
    if not stat.S_ISREG(old):
        return None
    return 0o600 if private else stat.S_IMODE(old)


def _umask() -> int:
    if sys.platform == "linux":  # os.umask() would change it for the files of other threads meanwhile
        with suppress(OSError, StopIteration, ValueError, IndexError):
            lines = Path("/proc/self/status").read_text(encoding="ascii", errors="replace").splitlines()
            return int(next(line for line in lines if line.startswith("Umask:")).split()[1], 8)
    mask = os.umask(0o077)
    os.umask(mask)
    return mask


def _prefix(target: Path) -> str:
    name = os.fsencode(target.name)[:_MOST_NAME_BYTES].decode("utf-8", "ignore")
    return f".{name}."


def _remove_abandoned(target: Path, *, now_s: float) -> None:
    """Remove what killed writers of a file left, by the clock of its file system."""
    prefix = _prefix(target)
    with suppress(OSError), os.scandir(target.parent) as entries:
        for entry in entries:
            if entry.name.startswith(prefix) and entry.name.endswith(_HALF):
                with suppress(OSError):  # another writer removes it too
                    if entry.stat(follow_symlinks=False).st_mtime < now_s - _ABANDONED_S:
                        Path(entry.path).unlink()
