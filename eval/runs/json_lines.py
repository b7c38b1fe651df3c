"""Files of one JSON document a line, appended to by a process that may be killed at any moment."""

from __future__ import annotations

from pathlib import Path

_BLOCK_BYTES = 1 << 16


def append_line(path: Path, line: bytes) -> None:
    """Add ``line``, which holds no line break, in one write; it survives the process as soon as this returns."""
    with path.open("ab", buffering=0) as file:
        file.write(line + b"\n")


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
                file.truncate(start + newline + 1)
                return
            end = start
        file.truncate(0)
