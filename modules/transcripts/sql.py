"""Transcripts in SQL: a SQLite file, or tables in PostgreSQL. Each text is kept once."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import groupby
from operator import itemgetter
from pathlib import Path

from ..addresses import Address
from ..storage.databases import Database, ReadableDatabase, open_database
from ..storage.sqlite import SqliteReader
from ..storage.tables import Statement, Tables
from .rows import FoundRow, TranscriptRow

TRANSCRIPT_TABLES = Tables(
    thing="transcripts",
    names=("transcripts", "transcript_parts", "transcript_texts", "transcript_format"),
    create=(
        "CREATE TABLE IF NOT EXISTS {prefix}transcripts (call_key {bytes} PRIMARY KEY, root TEXT NOT NULL, "
        "owner TEXT NOT NULL, record {bytes} NOT NULL)",
        "CREATE INDEX IF NOT EXISTS {prefix}transcripts_by_root ON {prefix}transcripts (root)",
        "CREATE INDEX IF NOT EXISTS {prefix}transcripts_by_owner ON {prefix}transcripts (owner)",
        "CREATE TABLE IF NOT EXISTS {prefix}transcript_parts (call_key {bytes} NOT NULL, place INTEGER NOT NULL, "
        "role TEXT NOT NULL, digest {bytes} NOT NULL, PRIMARY KEY (call_key, place))",
        "CREATE TABLE IF NOT EXISTS {prefix}transcript_texts (digest {bytes} PRIMARY KEY, content {bytes} NOT NULL)",
    ),
    remedy="Move it away; what earlier calls were sent is lost with it, and nothing else.",
    exclusive=True,
)

_INSERT = "INSERT INTO {} VALUES ({}) ON CONFLICT DO NOTHING"
_MOST_KEYS = 500
"""Calls that one query reads; SQLite takes 32,766 parameters."""
_SELECT = (
    "SELECT transcripts.call_key, record, role, content FROM transcripts "
    "JOIN transcript_parts ON transcript_parts.call_key = transcripts.call_key "
    "JOIN transcript_texts ON transcript_texts.digest = transcript_parts.digest "
    "WHERE {} ORDER BY transcripts.call_key, place"
)


class SqlReader:
    """Reads the tables of a database; see ``ReadableTranscripts``."""

    def __init__(self, database: ReadableDatabase) -> None:
        """Read from a database, and close it."""
        self._readable = database

    def read(self, keys: Sequence[bytes], root: str) -> Iterator[FoundRow]:
        """Read the rows with these keys, and those of a root unless it is ``""``, in no order."""
        queries: list[Statement] = [(_SELECT.format("transcripts.root = ?"), (root,))] if root else []
        for start in range(0, len(keys), _MOST_KEYS):
            some = keys[start : start + _MOST_KEYS]
            queries.append((_SELECT.format(f"transcripts.call_key IN ({', '.join('?' * len(some))})"), some))
        for query in queries:
            for key, group in groupby(self._readable.read(query), key=itemgetter(0)):
                rows = list(group)
                parts = tuple((str(role), _bytes(content)) for _, _, role, content in rows)
                yield FoundRow(key=_bytes(key), record=_bytes(rows[0][1]), parts=parts)

    def close(self) -> None:
        """Close the database."""
        self._readable.close()


class SqlTranscripts(SqlReader):
    """Writes and reads the tables of a database; see ``TranscriptFile``."""

    def __init__(self, database: Database) -> None:
        """Use a database, and close it."""
        super().__init__(database)
        self._database = database

    def add(self, rows: Sequence[TranscriptRow]) -> None:
        """Write rows in one transaction; one whose key is there already stays as it is."""
        self._database.write([statement for row in rows for statement in _statements_of(row)])

    def delete(self, names: Iterable[str]) -> None:
        """Delete the rows of roots and owners, and the texts that no other row needs."""
        self._database.write(_delete_statements(names))


def open_sql_transcripts(place: Path | Address, *, keeps_log: bool) -> SqlTranscripts:
    """Open a file or tables for writing, created if missing; see ``open_database``."""
    return SqlTranscripts(open_database(place, TRANSCRIPT_TABLES, keeps_log=keeps_log))


def read_sql_transcripts(file: Path) -> SqlReader:
    """Open a file for reading alone."""
    return SqlReader(SqliteReader(file, TRANSCRIPT_TABLES))


def _statements_of(row: TranscriptRow) -> list[Statement]:
    statements: list[Statement] = [
        (_INSERT.format("transcripts", "?, ?, ?, ?"), (row.key, row.root, row.owner, row.record))
    ]
    for place, (role, digest, content) in enumerate(row.parts):
        statements += [
            (_INSERT.format("transcript_parts", "?, ?, ?, ?"), (row.key, place, role, digest)),
            (_INSERT.format("transcript_texts", "?, ?"), (digest, content)),
        ]
    return statements


def _delete_statements(names: Iterable[str]) -> list[Statement]:
    """Return the statements that delete the transcripts of roots and owners, and the texts that no call needs then."""
    chosen = "SELECT call_key FROM transcripts WHERE root = ? OR owner = ?"
    statements: list[Statement] = []
    for name in names:
        statements.append((f"DELETE FROM transcript_parts WHERE call_key IN ({chosen})", (name, name)))
        statements.append(("DELETE FROM transcripts WHERE root = ? OR owner = ?", (name, name)))
    unused = "DELETE FROM transcript_texts WHERE digest NOT IN (SELECT digest FROM transcript_parts)"
    return [*statements, (unused, ())]


def _bytes(value: object) -> bytes:
    return bytes(value)  # type: ignore[call-overload, no-any-return]
