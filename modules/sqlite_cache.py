"""Caches in SQLite files, which degrade to empty where a file cannot be used."""

from __future__ import annotations

import logging
import sqlite3
import threading
import weakref
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from itertools import count
from pathlib import Path
from typing import Self, TypeVar

from filelock import FileLock

from .errors import SettingsError
from .formats import Thing, format_of, refuse_other_format
from .trust.private import lock_beside, private_file

logger = logging.getLogger(__name__)

T = TypeVar("T")

_BUSY_TIMEOUT_S = 30.0
_FORMAT_TABLE = "CREATE TABLE format (format TEXT NOT NULL)"
_CORRUPT = {sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB}
_NO_ROOM = {sqlite3.SQLITE_FULL, sqlite3.SQLITE_IOERR, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_CANTOPEN}


class SqliteCache:
    """A SQLite file of recomputable data, shared by threads and processes.

    An object must not cross a ``fork``. A corrupt file is kept under another name, and a new one begins; a file that
    cannot be written (rights, full disk) is only read from then on, and one that cannot be read counts as empty, with a
    warning each. A file of another format raises a ``SettingsError``. File and folder are created at first use.
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
        self._usable = self._writable = True

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exc_info: object) -> None:
        self.close()

    def close(self) -> None:
        """Close the file; the next use opens it again."""
        with self._lock:
            self._connection = None
            self._closer()

    def attempt(self, work: Callable[[sqlite3.Connection], T], *, otherwise: T, writes: bool = False) -> T:
        """Return the result of ``work``, retried once on a rebuilt file if this one is corrupt, else ``otherwise``.

        Work that ``writes`` and fails lets later work still read.
        """
        with self._lock:
            for may_rebuild in (True, False):
                if not self._usable or (writes and not self._writable):
                    break
                try:
                    connection = self._open()
                    if self._writable or not writes:
                        return work(connection)
                except (sqlite3.Error, OSError) as error:
                    if may_rebuild and self._writable and getattr(error, "sqlite_errorcode", None) in _CORRUPT:
                        self._rebuild(error)
                    elif writes and self._connection is not None:
                        self._read_only(error)
                    else:
                        self._usable = False
                        logger.warning("The %s %s cannot be used, going on without: %s", self._what, self.path, error)
            return otherwise

    def _open(self) -> sqlite3.Connection:
        if self._connection is None:
            try:
                self._connection = self._opened()
            except (sqlite3.OperationalError, OSError) as error:
                self._closer()
                primary = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_IOERR) & 0xFF
                if primary not in _NO_ROOM or not self.path.is_file():
                    raise
                self._read_only(error)
                self._connection = self._opened_to_read()
        return self._connection

    def _opened(self) -> sqlite3.Connection:
        private_file(self.path)
        with self._file_lock():
            connection = _connect(self.path)
            self._closer = weakref.finalize(self, connection.close)
            self._check_format(connection)
            # The switch to WAL ignores the busy timeout, so a file lock makes other processes wait.
            connection.execute("PRAGMA journal_mode = WAL")
            connection.execute("PRAGMA synchronous = NORMAL")
            connection.executescript(self._schema)
        return connection

    def _opened_to_read(self) -> sqlite3.Connection:
        # With an empty log nobody writes, and without "immutable" SQLite would make one, for which there is no room.
        log = self.path.with_name(self.path.name + "-wal")
        has_log = log.exists() and log.stat().st_size > 0
        connection = _connect(f"{self.path.resolve().as_uri()}?{'mode=ro' if has_log else 'immutable=1'}")
        self._closer = weakref.finalize(self, connection.close)
        self._check_format(connection)
        return connection

    def _read_only(self, error: Exception) -> None:
        self._writable = False
        logger.warning("The %s %s cannot be written, and is only read: %s", self._what, self.path, error)

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
            aside = _free_name(self.path)
            for suffix in ("", "-wal", "-shm"):
                with suppress(FileNotFoundError):
                    self.path.with_name(self.path.name + suffix).replace(aside.with_name(aside.name + suffix))
            logger.warning(
                "The %s %s is corrupt (%s) and begins anew. It is kept as %s, from which `sqlite3 FILE .recover` may "
                "save what it held; delete it if nothing is to be saved.",
                *(self._what, self.path, error, aside.name),
            )

    def _file_lock(self) -> FileLock:
        return lock_beside(self.path)


def _connect(path: Path | str) -> sqlite3.Connection:
    """Open a file, or a URI of one."""
    is_uri = isinstance(path, str)
    return sqlite3.connect(path, timeout=_BUSY_TIMEOUT_S, isolation_level=None, check_same_thread=False, uri=is_uri)


def _free_name(path: Path) -> Path:
    """Return the first free name for a corrupt file."""
    names = (path.with_name(f"{path.name}.corrupt{number}") for number in count(1))
    return next(name for name in names if not name.exists())


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
