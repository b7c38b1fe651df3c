"""JSON Lines files that survive a kill or a full disk while they are appended to."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from ...modules.errors import WritingError
from ...modules.storage.write_errors import refusing_full_disk

_BLOCK_BYTES = 1 << 16


def append_line(path: Path, line: bytes) -> None:
    """Append ``line``, which has no line break; it survives a kill as soon as this returns, and a power cut after
    ``sync_file``. Only one process may append at a time: a line that does not fit on the disk is removed again.

    Raises:
        WritingError: The disk is full, or the file cannot be written; it is unchanged.
    """
    _check_is_file(path)
    with refusing_full_disk(path), path.open("ab", buffering=0) as file:
        end, left = file.seek(0, os.SEEK_END), memoryview(line + b"\n")
        try:
            while left:
                left = left[file.write(left) :]  # a nearly full disk writes only a part
        except OSError:
            with suppress(OSError):  # the next start cuts a torn end
                file.truncate(end)
            raise


def sync_file(path: Path) -> None:
    """Wait until appended lines survive a power cut; does nothing without a file.

    Raises:
        WritingError: The disk reported an error.
    """
    if not path.exists():
        return
    _check_is_file(path)
    with refusing_full_disk(path), path.open("rb+") as file:
        os.fsync(file.fileno())


def cut_torn_end(path: Path) -> None:
    """Cut off the torn last line that a kill left; does nothing without a file.

    Reads backwards to the last whole line.

    Raises:
        WritingError: It is a FIFO.
    """
    if not path.exists():
        return
    _check_is_file(path)
    with path.open("rb+") as file:
        end = file.seek(0, 2)
        while end:
            start = max(0, end - _BLOCK_BYTES)
            file.seek(start)
            newline = file.read(end - start).rfind(b"\n")
            if newline >= 0:
                if start + newline + 1 < file.seek(0, 2):
                    file.truncate(start + newline + 1)
                return
            end = start
        file.truncate(0)


def _check_is_file(path: Path) -> None:
    """Refuse a FIFO, which would be waited for."""
    if path.is_fifo():
        raise WritingError(f"{path} cannot be written: it is a FIFO. Move it away, or give another folder.")
