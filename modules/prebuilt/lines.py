"""Where the lines of a file begin: found once, kept as a file beside others of the data folder, and mapped into memory.

The file is an array of 64-bit numbers, least byte first: the first byte of each line that is not blank, and the size of
the file at the end. Its name has the digest of the file whose lines it gives.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import numpy as np
import numpy.typing as npt

from ..storage.write_errors import refusing_full_disk
from ..trust.closed import open_private
from ..trust.private import private_folder

Starts = npt.NDArray[np.uint64]

_NUMBER = np.dtype("<u8")
_SHORTEST = 2
"""Bytes of the shortest JSON object; a line below it, such as a carriage return, is blank."""


def starts_file(folder: Path, digest: str) -> Path:
    """Return the file that has the starts of the lines of a file with this digest."""
    return folder / f"{digest}.lines-1"


def open_starts(file: Path, size: int) -> Starts | None:
    """Map the starts of the lines of a file of ``size`` bytes; None if they are not there, or were cut off."""
    with suppress(OSError, ValueError):
        starts = np.memmap(file, dtype=_NUMBER, mode="r")
        if len(starts) and int(starts[-1]) == size:
            return starts
    return None


class LineOffsetsWriter:
    """Writes the starts of lines, from the blocks of their file in order."""

    def __init__(self, folder: Path) -> None:
        self._half = folder / f"{os.getpid()}.half"
        self._file = open_private(self._half, "wb")
        self._start = self._seen = 0

    def take(self, block: bytes) -> None:
        """Find the lines that end in the next block."""
        ends = np.flatnonzero(np.frombuffer(block, dtype=np.uint8) == ord("\n")) + self._seen
        self._seen += len(block)
        if len(ends):
            starts = np.concatenate(([self._start], ends[:-1] + 1))
            self._write(starts[ends - starts >= _SHORTEST])
            self._start = int(ends[-1]) + 1

    def finish(self, digest: str, size: int) -> Starts:
        """Give the file its name, and map it."""
        if size - self._start >= _SHORTEST:  # the last line has no line break
            self._write(np.asarray([self._start]))
        self._write(np.asarray([size]))
        file = starts_file(self._half.parent, digest)
        with refusing_full_disk(file):
            self._file.flush()
            os.fsync(self._file.fileno())
            self._file.close()
            self._half.replace(file)
        return np.memmap(file, dtype=_NUMBER, mode="r")

    def give_up(self) -> None:
        """Delete what was written."""
        self._file.close()
        self._half.unlink(missing_ok=True)

    def _write(self, numbers: npt.NDArray[np.int64]) -> None:
        with refusing_full_disk(self._half):
            self._file.write(numbers.astype(_NUMBER).tobytes())


def found_starts(folder: Path, size: int, read: Callable[[Callable[[bytes], None]], str]) -> tuple[Starts, str]:
    """Find the lines of a file while ``read`` gives its blocks to a function and returns the digest."""
    private_folder(folder)
    writer = LineOffsetsWriter(folder)
    try:
        digest = read(writer.take)
        return writer.finish(digest, size), digest
    except BaseException:
        writer.give_up()
        raise
