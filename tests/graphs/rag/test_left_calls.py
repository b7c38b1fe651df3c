"""Journaled calls of a search that ended before it could delete them."""

from __future__ import annotations

import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.systems.judge_rag import build_judge_rag
from judgetree.modules.errors import ModelCallError, SettingsError
from judgetree.modules.journals.sql import JOURNAL_TABLES
from judgetree.modules.storage.sqlite import SqliteDatabase
from tests.graphs.bushy import outline
from tests.graphs.fakes import thread
from tests.graphs.killed_search import search
from tests.graphs.priced import llm_of, priced_context

REPO = Path(__file__).parents[3]
REFUSAL = "CREATE TRIGGER refusal BEFORE DELETE ON calls BEGIN SELECT RAISE(ABORT, 'killed'); END"


def test_calls_that_a_finished_thread_has_left_are_deleted_when_it_is_asked_again(tmp_path: Path) -> None:
    file, calls, url = tmp_path / "c-calls.sqlite", tmp_path / "calls", f"sqlite:///{tmp_path / 'c.sqlite'}"
    SqliteDatabase(file, JOURNAL_TABLES).close()
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


def test_calls_of_another_question_that_left_no_checkpoint_do_not_count(tmp_path: Path) -> None:
    """Those of a question that was killed before its first checkpoint were taken off the limit of the next one."""
    limits = {"max_rec_depth": 1, "max_llm_calls": 8}
    killed = priced_context(**limits)
    judging = llm_of(killed)._call

    async def without_answers(messages, meter, options, listeners):  # type: ignore[no-untyped-def]
        if messages[0] != ("system", "judge"):
            raise ModelCallError("down")
        return await judging(messages, meter, options, listeners)

    llm_of(killed)._call = without_answers  # type: ignore[method-assign]
    url = f"sqlite:///{tmp_path / 'c.sqlite'}"
    with build_judge_rag(checkpointer=url, context=killed) as graph, pytest.raises(ModelCallError):
        graph.invoke("one question", thread("t"))
    for file in tmp_path.glob("c.sqlite*"):
        file.unlink()
    trees = []
    for place in ("memory:", url):
        with build_judge_rag(checkpointer=place, context=priced_context(**limits)) as graph:
            graph.invoke("another question", thread("t"))
            trees.append(outline(SearchTree.from_history(graph, "t")))
    assert trees[1] == trees[0]


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
