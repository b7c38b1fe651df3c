"""Caches in SQLite files, which degrade to empty where a file cannot be used."""

from __future__ import annotations

import logging
import sqlite3
import threading
import weakref
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from pathlib import Path
from typing import Self, TypeVar

from .file_locks import lock_beside
from .formats import Thing
from .sqlite import is_sound, open_sqlite, read_sqlite
from .tables import Tables

logger = logging.getLogger(__name__)

T = TypeVar("T")

_REMEDY = "Delete the file; what it held is computed again when it is needed."
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
        create = tuple(filter(str.strip, schema.split(";")))
        self._tables = Tables(thing=thing, names=("format",), create=create, remedy=_REMEDY)
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
                connection = open_sqlite(self.path, self._tables)
            except (sqlite3.OperationalError, OSError) as error:
                primary = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_IOERR) & 0xFF
                if primary not in _NO_ROOM or not self.path.is_file():
                    raise
                self._read_only(error)
                connection = read_sqlite(self.path, self._tables, disk_is_full=True)
            self._connection = connection
            self._closer = weakref.finalize(self, connection.close)
        return self._connection

    def _read_only(self, error: Exception) -> None:
        self._writable = False
        logger.warning("The %s %s cannot be written, and is only read: %s", self._what, self.path, error)

    def _rebuild(self, error: Exception) -> None:
        self.close()
        with lock_beside(self.path):
            if is_sound(self.path):  # another process was faster
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


def _free_name(path: Path) -> Path:
    """Return the first free name for a corrupt file."""
    names = (path.with_name(f"{path.name}.corrupt{number}") for number in count(1))
    return next(name for name in names if not name.exists())
