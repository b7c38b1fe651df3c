"""Journaled calls of a search that ended before it could delete them."""

from __future__ import annotations

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest

from judgetree.modules.calls.call_files import SqliteCallFile
from judgetree.modules.calls.journal import JOURNAL_TABLES
from judgetree.modules.errors import SettingsError
from tests.graphs.killed_search import search

REFUSAL = "CREATE TRIGGER refusal BEFORE DELETE ON calls BEGIN SELECT RAISE(ABORT, 'killed'); END"


def test_calls_that_a_finished_thread_has_left_are_deleted_when_it_is_asked_again(tmp_path: Path) -> None:
    file, calls, url = tmp_path / "c-calls.sqlite", tmp_path / "calls", f"sqlite:///{tmp_path / 'c.sqlite'}"
    SqliteCallFile(file, JOURNAL_TABLES).close()
    with closing(sqlite3.connect(file, isolation_level=None)) as journal:
        journal.execute(REFUSAL)
        with pytest.raises(SettingsError, match="killed"):
            search(url, "breadth", 3, calls)
        made = calls.read_text()
        assert journal.execute("SELECT count(*) FROM calls").fetchone() == (made.count("called"),)
        journal.execute("DROP TRIGGER refusal")
        search(url, "breadth", 3, calls)
        assert calls.read_text() == made
        assert journal.execute("SELECT count(*) FROM calls").fetchone() == (0,)
