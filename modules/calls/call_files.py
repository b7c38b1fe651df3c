"""Databases of model calls, such as their journal: a file in SQLite, tables in PostgreSQL, or in memory."""

from __future__ import annotations

import re
import sqlite3
from collections.abc import Iterable, Sequence
from contextlib import nullcontext
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Protocol

from ..errors import SettingsError
from ..formats import Thing, format_of, refuse_other_format
from ..postgres import may_be_closed
from ..sqlite_cache import transaction
from ..trust.private import lock_beside, private_file

if TYPE_CHECKING:
    import psycopg

Statement = tuple[str, Sequence[object]]
"""SQL with ``?`` for each of its parameters."""


class ReadableFile(Protocol):
    """A database that can be read. Its methods block, and are called by a single thread."""

    name: str
    """The file's name in error messages."""

    def read(self, statement: Statement) -> list[tuple[object, ...]]:
        """Return the rows of a query."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class CallFile(ReadableFile, Protocol):
    """A database of calls. All but ``write_at_once`` block, and are called by a single thread."""

    def write_at_once(self, statement: Statement) -> bool:
        """Execute a statement in its own transaction if that needs no waiting; return whether it was executed."""
        ...

    def write(self, statements: Iterable[Statement]) -> None:
        """Execute all statements in one transaction; on return they survive the end of the process."""
        ...


@dataclass(frozen=True, kw_only=True)
class Tables:
    """The tables of one kind of call file."""

    thing: Thing
    """Kind of data that the format names."""
    names: tuple[str, ...]
    """Names of the tables, the table of the format last; PostgreSQL has them with the prefix ``judgetree_``."""
    create: tuple[str, ...]
    """Statements that create them if they are missing: ``{prefix}`` stands before each name, ``{bytes}`` for the type
    of binary columns."""
    remedy: str
    """Advice for a file of another format, in whole sentences."""
    exclusive: bool = False
    """Whether writers of several processes wait for each other in PostgreSQL too, as they do in SQLite."""

    def statements(self, *, prefix: str, binary: str) -> list[Statement]:
        """Return the statements that create the tables, and note their format in one that is new."""
        table = f"{prefix}{self.names[-1]}"
        made = [sql.format(prefix=prefix, bytes=binary) for sql in self.create]
        made.append(f"CREATE TABLE IF NOT EXISTS {table} (format TEXT PRIMARY KEY)")
        made.append(f"INSERT INTO {table} VALUES ('{format_of(self.thing)}') ON CONFLICT DO NOTHING")
        return [(sql, ()) for sql in made]

    def refuse_other(self, file: ReadableFile) -> None:
        """Check the format of an open file.

        Raises:
            SettingsError: It has another format.
        """
        where = f"The {self.thing.replace('-', ' ')} {file.name}"
        for (found,) in file.read((f"SELECT * FROM {self.names[-1]}", ())):
            refuse_other_format(found, self.thing, where=where, remedy=self.remedy, error=SettingsError)


_PREFIX = "judgetree_"
_BUSY_TIMEOUT_S = 30.0
_WRITES_A_CHECKPOINT = 500
"""Writes after which SQLite's log is moved into the file, which waits for the disk."""


class SqliteCallFile:
    """A SQLite file, which processes may share."""

    def __init__(self, path: Path, tables: Tables, *, keeps_log: bool = True) -> None:
        """Open the file, made for this user alone if it is missing.

        With a log beside it (WAL), writes are quick, and all writers must be on one machine; without, a commit waits
        for the disk.

        Raises:
            SettingsError: It has another format.
        """
        self.name = str(path)
        self._connection = _connect_sqlite(private_file(path), timeout=_BUSY_TIMEOUT_S)
        with lock_beside(path):
            if keeps_log:
                self._connection.execute("PRAGMA journal_mode = WAL")  # does not wait for others, whatever the timeout
            self.write(tables.statements(prefix="", binary="BLOB"))
        self._at_once = _connect_sqlite(path, timeout=0)
        self._at_once.execute("PRAGMA wal_autocheckpoint = 0")  # which would wait for the disk
        self._until_checkpoint = _WRITES_A_CHECKPOINT
        tables.refuse_other(self)

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


class MemoryCallFile:
    """Tables that live as long as their graph is open, like checkpoints in memory."""

    name = "in memory"

    def __init__(self, tables: Tables) -> None:
        """Create the tables."""
        self._connection = sqlite3.connect(":memory:", isolation_level=None, check_same_thread=False)
        self.write(tables.statements(prefix="", binary="BLOB"))

    def write_at_once(self, statement: Statement) -> bool:
        """Execute one statement."""
        self._connection.execute(*statement)
        return True

    def write(self, statements: Iterable[Statement]) -> None:
        """Execute the statements."""
        for statement in statements:
            self._connection.execute(*statement)

    def read(self, statement: Statement) -> list[tuple[object, ...]]:
        """Return all rows of a query."""
        return self._connection.execute(*statement).fetchall()

    def close(self) -> None:
        """Delete everything."""
        self._connection.close()


class PostgresCallFile:
    """Tables beside the checkpoints in PostgreSQL, so that any machine has them."""

    name = "in PostgreSQL"

    def __init__(self, url: str, tables: Tables) -> None:
        """Connect, and create the tables if they are missing.

        Raises:
            SettingsError: They have another format.
        """
        self._url = url
        self._exclusive = tables.exclusive and f"judgetree {tables.thing}"
        self._own_name = re.compile(rf"\b({'|'.join(tables.names)})\b")
        self._connection = self._connect()
        with self._connection.transaction():
            self._connection.execute("SELECT pg_advisory_xact_lock(hashtext('judgetree call journal'))")
            for sql, _ in tables.statements(prefix=_PREFIX, binary="BYTEA"):
                self._connection.execute(sql)
        tables.refuse_other(self)

    def write_at_once(self, statement: Statement) -> bool:
        """Return False: every write waits for the server."""
        return False

    def write(self, statements: Iterable[Statement]) -> None:
        """Execute the statements in one transaction, over a new connection if the server has closed the last."""
        connection, several = self._open(), list(statements)
        # A transaction's own statements would be two more round trips.
        with connection.transaction() if len(several) > 1 else nullcontext():
            if self._exclusive:
                connection.execute("SELECT pg_advisory_xact_lock(hashtext(%s))", (self._exclusive,))
            for sql, parameters in several:
                connection.execute(self._translated(sql), parameters)

    def read(self, statement: Statement) -> list[tuple[object, ...]]:
        """Return all rows of a query."""
        sql, parameters = statement
        return self._open().execute(self._translated(sql), parameters).fetchall()

    def close(self) -> None:
        """Close the connection."""
        self._connection.close()

    def _translated(self, sql: str) -> str:
        return self._own_name.sub(rf"{_PREFIX}\1", sql).replace("?", "%s")

    def _open(self) -> psycopg.Connection:
        if self._connection.closed or may_be_closed(self._connection):  # the server was restarted
            self._connection.close()
            self._connection = self._connect()
        return self._connection

    def _connect(self) -> psycopg.Connection:
        from ..postgres_answers import CONNECT_TIMEOUT_S, AnsweringConnection  # noqa: PLC0415 - the extra "postgres"

        connection = AnsweringConnection.connect(self._url, autocommit=True, connect_timeout=CONNECT_TIMEOUT_S)
        # The server need not wait for its disk: it is the killed client that must lose nothing.
        connection.execute("SET synchronous_commit TO OFF")
        return connection


def _connect_sqlite(path: Path, *, timeout: float) -> sqlite3.Connection:
    # Opened in the journal's thread; used there or on the loop; perhaps closed by the thread that ends the process.
    connection = sqlite3.connect(path, timeout=timeout, isolation_level=None, check_same_thread=False)
    # Commits reach the system at once, which a killed process does not take back; a power cut may.
    connection.execute("PRAGMA synchronous = NORMAL")
    return connection
