"""What a database holds: its tables as SQL for SQLite and PostgreSQL, and the format that it declares."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ..errors import SettingsError
from .formats import Thing, check_format, format_of

Statement = tuple[str, Sequence[object]]
"""SQL with ``?`` for each of its parameters."""


@dataclass(frozen=True, kw_only=True)
class Tables:
    """The tables of one kind of database."""

    thing: Thing
    """Kind of data that the format names."""
    names: tuple[str, ...]
    """Names of the tables, the table of the format last; PostgreSQL has them with the prefix ``judgetree_``."""
    create: tuple[str, ...]
    """Statements that create them if they are missing: ``{prefix}`` stands before each name, ``{bytes}`` for the type
    of binary columns."""
    remedy: str
    """Advice for a database of another format, in whole sentences."""
    exclusive: bool = False
    """Whether writers of several processes wait for each other in PostgreSQL too, as they do in SQLite."""

    def statements(self, *, prefix: str, binary: str) -> list[str]:
        """Return the SQL that creates the tables, and writes the format into new ones."""
        table = f"{prefix}{self.names[-1]}"
        return [
            *(sql.format(prefix=prefix, bytes=binary) for sql in self.create),
            f"CREATE TABLE IF NOT EXISTS {table} (format TEXT PRIMARY KEY)",
            f"INSERT INTO {table} SELECT '{format_of(self.thing)}' WHERE NOT EXISTS (SELECT * FROM {table})",
        ]

    def check_format(self, found: Iterable[object], *, name: str) -> None:
        """Check the formats that a database declares; none for an empty database, None for one without a format.

        Raises:
            SettingsError: One is another format; the message has the database's ``name``.
        """
        where = f"The {self.thing.replace('-', ' ')} {name}"
        for each in found:
            check_format(each, self.thing, where=where, remedy=self.remedy, error=SettingsError)
