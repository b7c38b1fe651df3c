"""Savers of LangGraph are taken as objects, or as functions where they are bound to an event loop."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.aio import AsyncSqliteSaver
from langgraph.types import Command

from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.systems.judge_rag import build_judge_rag
from judgetree.modules.errors import SettingsError
from tests.graphs.fakes import FakeLLM, thread
from tests.graphs.rag.test_interrupts import AskingJudge, asked, context_with
from tests.graphs.two_steps import ROOT, SUB, context_of

FILE = "c.sqlite"


@pytest.fixture
def connection() -> Iterator[sqlite3.Connection]:
    with closing(sqlite3.connect(FILE, check_same_thread=False)) as opened:
        yield opened


GIVEN: dict[str, Callable[[sqlite3.Connection], Any]] = {
    "memory": lambda _: InMemorySaver(),
    "sqlite": SqliteSaver,
    "a function of a context manager": lambda _: lambda: SqliteSaver.from_conn_string(FILE),
    "a function of an async one": lambda _: lambda: AsyncSqliteSaver.from_conn_string(FILE),
    "a class": lambda _: InMemorySaver,
    "a function of a saver": lambda connection: lambda: SqliteSaver(connection),
}


@pytest.mark.parametrize("given", GIVEN)
def test_a_saver_keeps_trees_and_answers(connection: sqlite3.Connection, given: str) -> None:
    checkpointer = GIVEN[given](connection)
    with build_judge_rag(checkpointer=checkpointer, context=context_with(AskingJudge("b"))) as graph:
        assert asked(graph.invoke(ROOT, thread("t"))) == ["Judge b?"]
        assert graph.invoke(Command(resume="yes"), thread("t"))["answer"] == "Vellin"
        assert [node.query for node in SearchTree.from_history(graph, "t").query_nodes()] == [ROOT, SUB]
        assert [each.thread_id for each in graph.list_threads()] == ["t"]


def test_a_saver_serves_several_graphs_and_outlives_them() -> None:
    saver, reader = InMemorySaver(), FakeLLM(lambda messages: "Vellin")
    with build_judge_rag(checkpointer=saver, context=context_of(reader)) as first:
        answered = first.invoke(ROOT, thread("t"))
    second = build_judge_rag(checkpointer=saver, context=context_of(reader))
    assert second.invoke(ROOT, thread("t")) == answered
    assert len(reader.calls) == 2
    assert first.thread_key("t") == second.thread_key("t") != build_judge_rag().thread_key("t")


def test_an_async_saver_of_another_loop_is_refused_with_the_remedy() -> None:
    async def made() -> None:
        async with AsyncSqliteSaver.from_conn_string(FILE) as saver:
            remedy = r"bound to the event loop.*checkpointer=lambda: AsyncSqliteSaver\.from_conn_string"
            with pytest.raises(SettingsError, match=remedy):
                build_judge_rag(checkpointer=saver)
            with pytest.raises(SettingsError, match=remedy):
                await build_judge_rag(
                    checkpointer=lambda: saver, context=context_of(FakeLLM(lambda messages: ""))
                ).ainvoke(ROOT)

    asyncio.run(made())


class AsyncOnly(BaseCheckpointSaver[str]):
    """Has no synchronous method."""


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (SqliteSaver.from_conn_string(FILE), r"not opened yet.*lambda"),
        (AsyncSqliteSaver.from_conn_string(FILE), r"not opened yet.*lambda"),
        (AsyncOnly(), "bound to the event loop"),
        (5, r"The checkpointer is 5\. Give a URL \(memory:"),
    ],
)
def test_what_is_no_saver_is_refused_at_once(given: Any, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        build_judge_rag(checkpointer=given)


def test_a_connection_of_one_thread_is_refused_with_the_remedy(tmp_path: Path) -> None:
    context = context_of(FakeLLM(lambda messages: ""))
    with (
        closing(sqlite3.connect(tmp_path / FILE)) as bound,
        pytest.raises(SettingsError, match="check_same_thread=False"),
    ):
        build_judge_rag(checkpointer=SqliteSaver(bound), context=context).invoke(ROOT)
