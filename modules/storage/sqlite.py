"""SQLite files: one way to open them for writing, and one for reading alone."""

from __future__ import annotations

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from ..trust.private import private_file
from .file_locks import lock_beside
from .tables import Statement, Tables

_BUSY_TIMEOUT_S = 30.0
"""Seconds that a statement waits for other writers, or for a program that has locked the file, such as a backup."""
_QUICK_COMMITS = "PRAGMA synchronous = NORMAL"
"""With a log, a commit reaches the system and does not wait for the disk."""
_WRITES_A_CHECKPOINT = 500
"""Writes after which SQLite's log is moved into the file, which waits for the disk."""


def open_sqlite(
    path: Path, tables: Tables | None = None, *, keeps_log: bool = True, autocommit: bool = True
) -> sqlite3.Connection:
    """Open a file for reading and writing, made for this user alone if it is missing; it blocks.

    Any thread may use the connection, one at a time. A killed process loses no commit; a power cut may take the last.

    Args:
        path: The file.
        tables: Created if they are missing, while other processes that open the file wait; None creates nothing.
        keeps_log: Whether the file has a log beside it (WAL): commits are quick, and all processes must be on one
            machine. Without, a commit waits for the disk.
        autocommit: Whether statements outside of ``transaction`` are committed at once; otherwise as Python does it.

    Raises:
        SettingsError: The file has another format; it is unchanged.
        sqlite3.Error: It cannot be opened, or is not a database.
        OSError: The lock beside it cannot be made.
    """
    with suppress(OSError):  # SQLite says better what is wrong
        private_file(path)
    connection = _connect(path, autocommit=autocommit)
    try:
        # Switching to WAL fails at once while another process does it, whatever the timeout.
        with lock_beside(path):
            if tables is not None:
                tables.check_format(_formats_in(connection, tables), name=str(path))
            if keeps_log:
                connection.execute("PRAGMA journal_mode = WAL")
            connection.execute(_QUICK_COMMITS)
            if tables is not None:
                with transaction(connection):
                    _create(connection, tables)
    except BaseException:
        connection.close()
        raise
    return connection


def read_sqlite(path: Path, tables: Tables, *, disk_is_full: bool = False) -> sqlite3.Connection:
    """Open a file that is only read, also where no file can be made beside it.

    Args:
        path: The file, which exists.
        tables: Its tables.
        disk_is_full: Whether no process can write any more.

    Raises:
        SettingsError: The file has another format.
        sqlite3.Error: It cannot be opened, or is not a database.
    """
    # SQLite reads a log with the help of a further file. Without a log, "immutable" spares that file, but must not be
    # said of a file that another process may write meanwhile.
    log = path.with_name(f"{path.name}-wal")
    has_log = log.exists() and (not disk_is_full or log.stat().st_size > 0)
    is_fixed = not has_log and (disk_is_full or not os.access(path.parent, os.W_OK))
    connection = _connect(f"{path.resolve().as_uri()}?mode=ro{'&immutable=1' if is_fixed else ''}")
    try:
        tables.check_format(_formats_in(connection, tables), name=str(path))
    except BaseException:
        connection.close()
        raise
    return connection


def is_sound(path: Path) -> bool:
    """Return whether SQLite finds no damage in a file, which it reads completely."""
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


class _ReadableSqlite:
    """What one connection reads."""

    def __init__(self, connection: sqlite3.Connection, name: str) -> None:
        self._connection = connection
        self.name = name

    def read(self, statement: Statement) -> list[tuple[object, ...]]:
        """Return all rows of a query."""
        return self._connection.execute(*statement).fetchall()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()


class SqliteReader(_ReadableSqlite):
    """A SQLite file that is only read."""

    def __init__(self, path: Path, tables: Tables) -> None:
        """Open the file as ``read_sqlite`` does."""
        super().__init__(read_sqlite(path, tables), str(path))


class SqliteDatabase(_ReadableSqlite):
    """A SQLite file, which processes may share."""

    def __init__(self, path: Path, tables: Tables, *, keeps_log: bool = True) -> None:
        """Open the file as ``open_sqlite`` does."""
        super().__init__(open_sqlite(path, tables, keeps_log=keeps_log), str(path))
        self._at_once = _connect(path, timeout_s=0)
        self._at_once.execute(_QUICK_COMMITS)
        self._at_once.execute("PRAGMA wal_autocheckpoint = 0")  # which would wait for the disk
        self._until_checkpoint = _WRITES_A_CHECKPOINT

    def write_at_once(self, statement: Statement) -> bool:
        """Execute one statement unless another writer or a due checkpoint of SQLite's log would make it wait."""
        self._until_checkpoint -= 1
        if self._until_checkpoint <= 0:
            return False
        try:
            self._at_once.execute(*statement)
        except sqlite3.OperationalError as error:
            if error.sqlite_errorcode != sqlite3.SQLITE_BUSY:
                raise
            return False
        return True

    def write(self, statements: Iterable[Statement]) -> None:
        """Execute the statements in one transaction, which also makes a due checkpoint."""
        self._until_checkpoint = _WRITES_A_CHECKPOINT
        with transaction(self._connection):
            for statement in statements:
                self._connection.execute(*statement)

    def close(self) -> None:
        """Close both connections."""
        self._at_once.close()
        super().close()


class MemoryDatabase(_ReadableSqlite):
    """Tables in memory, which end when they are closed."""

    def __init__(self, tables: Tables) -> None:
        """Create the tables."""
        super().__init__(_connect(":memory:"), "in memory")
        _create(self._connection, tables)

    def write_at_once(self, statement: Statement) -> bool:
        """Execute one statement."""
        self._connection.execute(*statement)
        return True

    def write(self, statements: Iterable[Statement]) -> None:
        """Execute the statements."""
        for statement in statements:
            self._connection.execute(*statement)


def _connect(place: Path | str, *, timeout_s: float = _BUSY_TIMEOUT_S, autocommit: bool = True) -> sqlite3.Connection:
    """Connect to a file, a URI of one, or ``:memory:``."""
    return sqlite3.connect(
        place,
        timeout=timeout_s,
        isolation_level=None if autocommit else "DEFERRED",
        check_same_thread=False,
        uri=isinstance(place, str),
    )


def _formats_in(connection: sqlite3.Connection, tables: Tables) -> list[object]:
    """Return the formats that a file declares: none for an empty one, [None] for one of another program."""
    table = tables.names[-1]
    known = {str(name) for (name,) in connection.execute("SELECT name FROM sqlite_master WHERE type = 'table'")}
    if table in known:
        return [found for (found,) in connection.execute(f"SELECT format FROM {table}")]
    return [None] if known else []


def _create(connection: sqlite3.Connection, tables: Tables) -> None:
    for sql in tables.statements(prefix="", binary="BLOB"):
        connection.execute(sql)
