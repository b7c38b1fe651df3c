"""Journaled calls of a search that ended before it could delete them."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from judgetree.modules.calls.call_files import SqliteCallFile
from judgetree.modules.calls.journal import JOURNAL_TABLES
from judgetree.modules.errors import SettingsError
from tests.graphs.killed_search import search

REPO = Path(__file__).parents[3]
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


@pytest.mark.slow
def test_calls_that_were_paid_before_the_first_checkpoint_count(tmp_path: Path) -> None:
    """They did not, so that the search that went on exceeded its limit."""
    calls, url = tmp_path / "calls", f"sqlite:///{tmp_path / 'c.sqlite'}"
    command = [
        sys.executable,
        "-m",
        "tests.graphs.killed_search",
        url,
        "breadth",
        "1",
        str(calls),
        "sub_question",
        "12",
    ]
    assert subprocess.run(command, cwd=REPO, capture_output=True, check=False).returncode == 9
    for file in tmp_path.glob("c.sqlite*"):
        file.unlink()
    resumed = search(url, "breadth", 1, calls)
    whole = tmp_path / "whole"
    assert resumed == search(f"sqlite:///{tmp_path / 'w.sqlite'}", "breadth", 1, whole)
    assert calls.read_text().count("called") - whole.read_text().count("called") <= 4, "the calls that were in flight"
