"""Files of the journal of model calls: in SQLite, or as a table in PostgreSQL."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterable
from contextlib import nullcontext
from pathlib import Path
from typing import TYPE_CHECKING

from filelock import FileLock

from ..errors import SettingsError
from ..formats import format_of, refuse_other_format
from ..postgres import may_be_closed
from ..sqlite_cache import transaction
from .journal import Statement

if TYPE_CHECKING:
    import psycopg

_TABLES = (
    "CREATE TABLE IF NOT EXISTS {prefix}format (format TEXT PRIMARY KEY)",
    "CREATE TABLE IF NOT EXISTS {prefix}calls (call_key {bytes} PRIMARY KEY, root TEXT NOT NULL, "
    "booked_to TEXT NOT NULL, estimate TEXT NOT NULL, kept TEXT, lost INTEGER NOT NULL)",
    "CREATE INDEX IF NOT EXISTS {prefix}calls_by_root ON {prefix}calls (root)",
    "CREATE INDEX IF NOT EXISTS {prefix}calls_by_book ON {prefix}calls (booked_to)",
    "INSERT INTO {prefix}format VALUES ('{format}') ON CONFLICT DO NOTHING",
)
_BUSY_TIMEOUT_S = 30.0
_WRITES_A_CHECKPOINT = 500
"""Writes after which SQLite's log is moved into the file, which waits for the disk."""
_FORMAT = format_of("call-journal")
_REMEDY = "Move it away; unfinished questions then start over."


class SqliteJournal:
    """A journal in a SQLite file, which processes may share."""

    def __init__(self, path: Path) -> None:
        """Open the file, created if missing.

        Raises:
            SettingsError: It has another format.
        """
        self.name = str(path)
        path.parent.mkdir(parents=True, exist_ok=True)
        self._connection = _connect_sqlite(path, timeout=_BUSY_TIMEOUT_S)
        with FileLock(path.with_name(path.name + ".lock")):
            self._connection.execute("PRAGMA journal_mode = WAL")  # does not wait for others, whatever the timeout
            self.write((table.format(prefix="", bytes="BLOB", format=_FORMAT), ()) for table in _TABLES)
        self._at_once = _connect_sqlite(path, timeout=0)
        self._at_once.execute("PRAGMA wal_autocheckpoint = 0")  # which would wait for the disk
        self._until_checkpoint = _WRITES_A_CHECKPOINT
        _refuse_other(self.read(("SELECT format FROM format", ())), self.name)

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
            for sql, parameters in statements:
                self._connection.execute(sql, parameters)

    def read(self, statement: Statement) -> list[tuple[object, ...]]:
        """Return all rows of a query."""
        sql, parameters = statement
        return self._connection.execute(sql, parameters).fetchall()

    def close(self) -> None:
        """Close both connections."""
        self._at_once.close()
        self._connection.close()


class PostgresJournal:
    """A journal beside the checkpoints in PostgreSQL, so that any machine can resume."""

    name = "in PostgreSQL"

    def __init__(self, url: str) -> None:
        """Connect, and create the tables ``judgetree_calls`` and ``judgetree_format`` if they are missing.

        Raises:
            SettingsError: They have another format.
        """
        self._url = url
        self._connection = self._connect()
        with self._connection.transaction():
            self._connection.execute("SELECT pg_advisory_xact_lock(hashtext('judgetree call journal'))")
            for table in _TABLES:
                self._connection.execute(table.format(prefix="judgetree_", bytes="BYTEA", format=_FORMAT))
        _refuse_other(self.read(("SELECT format FROM format", ())), self.name)

    def write_at_once(self, statement: Statement) -> bool:
        """Return False: every write waits for the server."""
        return False

    def write(self, statements: Iterable[Statement]) -> None:
        """Execute the statements in one transaction, over a new connection if the server has closed the last."""
        connection, several = self._open(), list(statements)
        # A transaction's own statements would be two more round trips.
        with connection.transaction() if len(several) > 1 else nullcontext():
            for sql, parameters in several:
                connection.execute(_in_postgres(sql), parameters)

    def read(self, statement: Statement) -> list[tuple[object, ...]]:
        """Return all rows of a query."""
        sql, parameters = statement
        return self._open().execute(_in_postgres(sql), parameters).fetchall()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _open(self) -> psycopg.Connection:
        if self._connection.closed or may_be_closed(self._connection):  # the server was restarted
            self._connection.close()
            self._connection = self._connect()
        return self._connection

    def _connect(self) -> psycopg.Connection:
        import psycopg  # noqa: PLC0415 - the extra "postgres"

        connection = psycopg.connect(self._url, autocommit=True, connect_timeout=10)
        # The server need not wait for its disk: it is the killed client that must lose nothing.
        connection.execute("SET synchronous_commit TO OFF")
        return connection


def _connect_sqlite(path: Path, *, timeout: float) -> sqlite3.Connection:
    # Opened in the journal's thread; used there or on the loop; perhaps closed by the thread that ends the process.
    connection = sqlite3.connect(path, timeout=timeout, isolation_level=None, check_same_thread=False)
    # Commits reach the system at once, which a killed process does not take back; a power cut may.
    connection.execute("PRAGMA synchronous = NORMAL")
    return connection


def _in_postgres(sql: str) -> str:
    return sql.replace("?", "%s").replace("calls", "judgetree_calls").replace("FROM format", "FROM judgetree_format")


def _refuse_other(found: list[tuple[object, ...]], name: str) -> None:
    for (each,) in found:
        refuse_other_format(each, "call-journal", where=f"The call journal {name}", remedy=_REMEDY, error=SettingsError)
