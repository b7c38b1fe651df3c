"""Files that are written whole or not at all, and what a full disk is told by.

A file that is replaced is on the disk before it takes the old one's place, so that a full disk or a power cut leaves
either of the two, never half of one.
"""

from __future__ import annotations

import errno
import os
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .errors import WritingError

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS})
"""No space, no quota, too large a file, a disk that fails, and one that was made read-only since it had failed."""
_SQLITE_FULL = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY})
_POSTGRES_FULL = "53100"
_PRIMARY = 0xFF
"""Of an extended result code of SQLite, the bits that are its primary one."""


def write_whole(path: Path, content: str | bytes) -> None:
    """Write a file in one step: another process sees what it held before, or all of ``content``.

    Raises:
        WritingError: It could not be written; what stood there still does.
    """
    data = content.encode("utf-8") if isinstance(content, str) else content
    half = path.with_name(f"{path.name}.half")
    with refusing_full_disk(path):
        try:
            with half.open("wb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            half.replace(path)
        except OSError:
            with suppress(OSError):
                half.unlink(missing_ok=True)
            raise


@contextmanager
def refusing_full_disk(path: Path) -> Iterator[None]:
    """Around the writing of a file: what the system refuses is raised as a ``WritingError`` that names the file.

    Raises:
        WritingError: See above.
    """
    try:
        yield
    except OSError as error:
        raise writing_error(str(path), error) from error


def writing_error(what: str, error: BaseException) -> WritingError:
    """Return the error for the user: what could not be written, why, and what to do."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return WritingError(f"{what} could not be written: {reason}. Make room or mend the disk, its quota or its rights.")


def is_full_disk(error: BaseException | None) -> bool:
    """Return whether an error, or one that it came from, is a disk's or database's that cannot take more."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _FULL:
            return True
        if isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", 0) & _PRIMARY in _SQLITE_FULL:
            return True
        if getattr(error, "sqlstate", "") == _POSTGRES_FULL:
            return True
        error = error.__cause__ or error.__context__
    return False
