"""Caches in SQLite files, which degrade to empty where a file cannot be used."""

from __future__ import annotations

import logging
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Self, TypeVar

from filelock import FileLock

from .errors import SettingsError
from .formats import Thing, format_of, refuse_other_format

logger = logging.getLogger(__name__)

T = TypeVar("T")

_BUSY_TIMEOUT_S = 30.0
_FORMAT_TABLE = "CREATE TABLE format (format TEXT NOT NULL)"
_CORRUPT = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}


class SqliteCache:
    """A SQLite file of recomputable data, shared by threads and processes.

    An object must not cross a ``fork``. A corrupt file is rebuilt with a warning. A file that cannot be read or written
    (rights, full disk) counts as empty from then on, with a warning. A file of another format raises a
    ``SettingsError``. File and folder are created at first use.
    """

    def __init__(self, path: Path, schema: str, *, thing: Thing) -> None:
        """Use a file with the tables of ``schema`` (CREATE TABLE IF NOT EXISTS); ``thing`` names its format."""
        self.path = path
        self._schema = schema
        self._thing: Thing = thing
        self._what = thing.replace("-", " ")
        self._lock = threading.RLock()
        self._connection: sqlite3.Connection | None = None
        self._closer: Callable[[], object] = lambda: None
        self._usable = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._lock:
            self._connection = None
            self._closer()

    def attempt(self, work: Callable[[sqlite3.Connection], T], *, otherwise: T) -> T:
        """Return the result of ``work``, retried once on a rebuilt file if this one is corrupt, else ``otherwise``."""
        with self._lock:
            for may_rebuild in (True, False):
                if not self._usable:
                    break
                try:
                    return work(self._open())
                except (sqlite3.Error, OSError) as error:
                    if may_rebuild and getattr(error, "sqlite_errorcode", None) in _CORRUPT:
                        self._rebuild(error)
                    else:
                        self._usable = False
                        logger.warning("The %s %s cannot be used, going on without: %s", self._what, self.path, error)
            return otherwise

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self._file_lock():
                connection = _connect(self.path)
                self._closer = weakref.finalize(self, connection.close)
                self._check_format(connection)
                self._connection = connection
                # The switch to WAL ignores the busy timeout, so a file lock makes other processes wait.
                self._connection.execute("PRAGMA journal_mode = WAL")
                self._connection.execute("PRAGMA synchronous = NORMAL")
                self._connection.executescript(self._schema)
        return self._connection

    def _check_format(self, connection: sqlite3.Connection) -> None:
        """Refuse a file of another format; a file without tables gets the present one."""
        tables = {str(name) for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
        if not tables:
            connection.execute(_FORMAT_TABLE)
            connection.execute("INSERT INTO format VALUES (?)", (format_of(self._thing),))
            return
        row = connection.execute("SELECT format FROM format").fetchone() if "format" in tables else None
        refuse_other_format(
            row[0] if row else None,
            self._thing,
            where=f"The {self._what} {self.path}",
            remedy="Delete the file; what it held is computed again when it is needed.",
            error=SettingsError,
        )

    def _rebuild(self, error: Exception) -> None:
        self.close()
        with self._file_lock():
            if _is_sound(self.path):  # another process was faster
                return
            logger.warning("The %s %s is corrupt (%s) and is made anew.", self._what, self.path, error)
            for suffix in ("", "-wal", "-shm"):
                self.path.with_name(self.path.name + suffix).unlink(missing_ok=True)

    def _file_lock(self) -> FileLock:
        return FileLock(self.path.with_name(self.path.name + ".lock"))


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, timeout=_BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False)


def _is_sound(path: Path) -> bool:
    connection = _connect(path)
    try:
        return bool(connection.execute("PRAGMA quick_check(1)").fetchone() == ("ok",))
    except sqlite3.DatabaseError:
        return False
    finally:
        connection.close()


@contextmanager
def transaction(connection: sqlite3.Connection) -> Iterator[None]:
    """Commit all writes inside the block, or none if it raises."""
    # A deferred transaction that turns from reading to writing fails at once; an IMMEDIATE one waits.
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
