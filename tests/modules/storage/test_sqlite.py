"""SQLite files: what is refused is left as it was, and what is opened is quick and private."""

from __future__ import annotations

import sqlite3
import stat
from contextlib import closing
from dataclasses import replace
from pathlib import Path

import pytest

from judgetree.modules.errors import SettingsError
from judgetree.modules.storage.sqlite import SqliteDatabase, SqliteReader, open_sqlite
from judgetree.modules.storage.tables import Tables

TABLES = Tables(
    thing="labels",
    names=("kept", "kept_format"),
    create=("CREATE TABLE IF NOT EXISTS {prefix}kept (content {bytes})",),
    remedy="Move it away.",
)


def test_a_file_of_another_format_is_refused_and_unchanged(tmp_path: Path) -> None:
    file = tmp_path / "a.sqlite"
    open_sqlite(file, replace(TABLES, thing="rows")).close()
    before = file.read_bytes()
    for opening in (SqliteDatabase, SqliteReader):
        with pytest.raises(SettingsError, match=r"The labels .* has the format 'judgetree-rows/.*Move it away\."):
            opening(file, TABLES)
    assert file.read_bytes() == before


def test_a_file_of_another_program_is_refused_and_unchanged(tmp_path: Path) -> None:
    file = tmp_path / "a.sqlite"
    with closing(sqlite3.connect(file)) as other:
        other.execute("CREATE TABLE theirs (x)")
    before = file.read_bytes()
    with pytest.raises(SettingsError, match="has no format"):
        open_sqlite(file, TABLES)
    assert file.read_bytes() == before


def test_a_new_file_is_private_and_has_a_log_unless_machines_share_it(tmp_path: Path) -> None:
    for keeps_log, journal in ((True, "wal"), (False, "delete")):
        file = tmp_path / f"{journal}.sqlite"
        with closing(open_sqlite(file, TABLES, keeps_log=keeps_log)) as connection:
            assert connection.execute("PRAGMA journal_mode").fetchone() == (journal,)
            assert connection.execute("PRAGMA synchronous").fetchone() == (1,)
        assert stat.S_IMODE(file.stat().st_mode) & 0o077 == 0


def test_what_is_written_is_read_without_writing(tmp_path: Path) -> None:
    with closing(SqliteDatabase(tmp_path / "a.sqlite", TABLES)) as database:
        database.write([("INSERT INTO kept VALUES (?)", (b"1",))])
        assert database.write_at_once(("INSERT INTO kept VALUES (?)", (b"2",)))
        with closing(SqliteReader(tmp_path / "a.sqlite", TABLES)) as reader:
            assert reader.read(("SELECT content FROM kept ORDER BY content", ())) == [(b"1",), (b"2",)]
            with pytest.raises(sqlite3.OperationalError, match="readonly"):
                reader.read(("DELETE FROM kept", ()))
