"""Files of one JSON document a line, appended to by a process that may be killed, or run out of disk, at any moment."""

from __future__ import annotations

import os
from contextlib import suppress
from pathlib import Path

from ...modules.disk import refusing_full_disk

_BLOCK_BYTES = 1 << 16


def append_line(path: Path, line: bytes) -> None:
    """Add ``line``, which holds no line break; it survives the process as soon as this returns. See ``sync_file``.

    Nobody else may append meanwhile: what was written of a line that does not fit is taken back.

    Raises:
        WritingError: The disk is full, or the file cannot be written; it holds what it held before.
    """
    with refusing_full_disk(path), path.open("ab", buffering=0) as file:
        end, left = file.seek(0, os.SEEK_END), memoryview(line + b"\n")
        try:
            while left:
                left = left[file.write(left) :]  # a disk that is nearly full takes a part of it
        except OSError:
            with suppress(OSError):  # where even this fails, the next start cuts the torn end
                file.truncate(end)
            raise


def sync_file(path: Path) -> None:
    """Wait until what was appended survives a power cut too; does nothing where there is no file.

    Raises:
        WritingError: The disk has refused it after all.
    """
    if not path.exists():
        return
    with refusing_full_disk(path), path.open("rb+") as file:
        os.fsync(file.fileno())


def cut_torn_end(path: Path) -> None:
    """Cut off what a kill in the middle of a write has left, so that the next line stands alone.

    Does nothing where there is no file. Reads backwards, no further than the last whole line.
    """
    if not path.exists():
        return
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
