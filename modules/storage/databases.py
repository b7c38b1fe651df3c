"""Databases of statements and rows: a file in SQLite, tables in PostgreSQL, or in memory."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

from ..addresses import Address
from .sqlite import MemoryDatabase, SqliteDatabase
from .tables import Statement, Tables


class ReadableDatabase(Protocol):
    """A database that can be read. Its methods block, and are called by one thread at a time."""

    name: str
    """Where it is, for error messages."""

    def read(self, statement: Statement) -> list[tuple[object, ...]]:
        """Return all rows of a query."""
        ...

    def close(self) -> None:
        """Close the connection."""
        ...


class Database(ReadableDatabase, Protocol):
    """A database that can be written. All but ``write_at_once`` block."""

    def write_at_once(self, statement: Statement) -> bool:
        """Execute a statement in its own transaction if that needs no waiting; return whether it was executed."""
        ...

    def write(self, statements: Iterable[Statement]) -> None:
        """Execute all statements in one transaction; on return they survive the end of the process."""
        ...


def open_database(place: Path | Address | None, tables: Tables, *, keeps_log: bool = True) -> Database:
    """Open a database for reading and writing, with its tables created if they are missing; it blocks.

    Args:
        place: A SQLite file, made for this user alone if it is missing; the URL of a PostgreSQL server; or None for
            tables in memory, which end when they are closed.
        tables: Its tables.
        keeps_log: As in ``open_sqlite``.

    Raises:
        SettingsError: The tables have another format.
        ImportError: PostgreSQL without the extra ``postgres``.
    """
    if place is None:
        return MemoryDatabase(tables)
    if isinstance(place, Path):
        return SqliteDatabase(place, tables, keeps_log=keeps_log)
    from .postgres import PostgresDatabase  # noqa: PLC0415 - the extra "postgres"

    return PostgresDatabase(place.revealed(), tables)
