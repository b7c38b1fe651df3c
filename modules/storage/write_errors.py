"""Errors of writing: full disks and databases recognised, and the message that names what was not written."""

from __future__ import annotations

import errno
import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import WritingError

_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO, errno.EROFS})
"""No space, no quota, too large a file, a failing disk, and one that became read-only after a failure."""
_SQLITE_FULL = frozenset({sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY})
_POSTGRES_FULL = "53100"
_PRIMARY = 0xFF
"""Bits of the primary result code in an extended one of SQLite."""


@contextmanager
def refusing_full_disk(path: Path) -> Iterator[None]:
    """Raise the system's errors inside the block as a ``WritingError`` that names the file.

    Raises:
        WritingError: The file could not be written.
    """
    try:
        yield
    except OSError as error:
        raise writing_error(str(path), error) from error


def writing_error(what: str, error: BaseException) -> WritingError:
    """Return the error of a failed write: the file, the cause, and what to do."""
    reason = error.strerror if isinstance(error, OSError) and error.strerror else str(error)
    return WritingError(
        f"{what} could not be written: {reason}. Make room or check the disk, its quota and its rights."
    )


def is_full_disk(error: BaseException | None) -> bool:
    """Return whether an error, or one of its causes, means a disk or database that accepts no more data."""
    while error is not None:
        if isinstance(error, OSError) and error.errno in _FULL:
            return True
        if isinstance(error, sqlite3.Error) and getattr(error, "sqlite_errorcode", 0) & _PRIMARY in _SQLITE_FULL:
            return True
        if getattr(error, "sqlstate", "") == _POSTGRES_FULL:
            return True
        error = error.__cause__ or error.__context__
    return False
