"""The front door: one question in, a result with its tree and its costs out."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from langgraph.graph import START, StateGraph

from judgetree import Limits, RagContext, RagGraph, RagState, RunContext
from judgetree.graphs.session import RagSession
from judgetree.graphs.threads.checkpoints import locks_of
from judgetree.modules.calls.completion import Completion
from judgetree.modules.calls.messages import Message
from judgetree.modules.errors import ModelCallError, SettingsError, StoreFailure, UnknownThread
from judgetree.modules.locks.locks import Holder
from judgetree.modules.settings import load_settings
from tests.graphs.fakes import FakeLLM
from tests.graphs.two_steps import ROOT, SUB, context_of


@pytest.fixture
def session(reader: FakeLLM, tmp_path: Path) -> Iterator[RagSession]:
    settings = load_settings(checkpoints="memory:", home=tmp_path)
    with RagSession(context=context_of(reader), settings=settings) as opened:
        yield opened


def test_result_tells_answer_tree_and_costs(session: RagSession) -> None:
    result = session.ask(ROOT)
    assert (result.answer, result.status, result.error) == ("Vellin", "answered", "")
    assert [node.query for node in result.tree.query_nodes()] == [ROOT, SUB]
    assert result.usage == result.usage_this_run
    assert result.usage["llm_calls"] == 2
    assert result.thread_id == result.tree.root.thread_id


def test_each_question_without_a_thread_gets_a_new_one(session: RagSession) -> None:
    async def both() -> set[str]:
        return {(await asked).thread_id for asked in (session.aask(ROOT), session.aask(ROOT))}

    assert len(asyncio.run(both())) == 2


def test_finished_thread_comes_back_and_this_run_cost_nothing(session: RagSession, reader: FakeLLM) -> None:
    first = session.ask(ROOT, thread_id="t")
    again = session.ask(thread_id="t", resume=True)
    assert (again.answer, again.tree.root, again.usage) == (first.answer, first.tree.root, first.usage)
    assert again.usage_this_run["llm_calls"] == 0
    assert len(reader.calls) == 2


class WatchedLLM(FakeLLM):
    """Notes at each call whether another process could take the thread that runs."""

    session: RagSession
    free: list[bool]

    async def complete(self, messages: Sequence[Message], **options: Any) -> Completion:
        [running] = [each.thread_id for each in await self.session.graph.alist_threads() if each.status == "open"]
        other = locks_of(self.session.settings.checkpoint_url)  # as another process sees them
        self.free.append(await other.take(f"thread {running}", Holder()))
        return await super().complete(messages, **options)


def test_no_other_process_runs_a_thread_at_the_same_time(tmp_path: Path) -> None:
    """It would pay for the same calls; it sees a new thread in the list as soon as that is saved."""
    llm = WatchedLLM(lambda messages: "Vellin")
    llm.free = []
    with RagSession(context=context_of(llm), settings=load_settings(home=tmp_path)) as session:
        llm.session = session
        session.ask(ROOT, thread_id="t")
        session.ask(ROOT)
    assert llm.free == [False] * 4


def test_failed_question_is_a_result_that_can_be_resumed(tmp_path: Path) -> None:
    broken = True

    def reply(messages: object) -> str:
        if broken:
            raise ModelCallError("the endpoint is down")
        return "Vellin"

    settings = load_settings(checkpoints="memory:", home=tmp_path)
    with RagSession(context=context_of(FakeLLM(reply)), settings=settings) as session:
        failed = session.ask(ROOT, thread_id="t")
        assert (failed.answer, failed.status) == ("", "failed")
        assert "the endpoint is down" in failed.error
        broken = False
        resumed = session.ask(thread_id="t", resume=True)
    assert (resumed.answer, resumed.status) == ("Vellin", "answered")


@pytest.mark.parametrize(("question", "resume"), [(None, False), (None, True), (ROOT, True)])
def test_nothing_to_resume_without_a_thread(session: RagSession, question: str | None, resume: bool) -> None:
    with pytest.raises(UnknownThread, match="give a question, or the thread_id"):
        session.ask(question, resume=resume)


@pytest.mark.parametrize(("question", "resume"), [(None, False), (ROOT, True)])
def test_unknown_thread_is_not_resumed(session: RagSession, question: str | None, resume: bool) -> None:
    with pytest.raises(UnknownThread, match="'nobody' does not exist"):
        session.ask(question, thread_id="nobody", resume=resume)


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"system": "guess"}, "llm, naive, iter_retgen"),
        ({"system": "naive"}, "name a collection"),
        ({"collection": "c", "tools": ["calculator"]}, "The system 'judge' uses no tools"),
        ({"context": RagContext(reader=FakeLLM(str)), "system": "react", "tools": ["calculator"]}, "to RagContext"),
        ({"collection": "c", "strategy": "skim"}, "strategy: .*'map_rerank' .it is 'skim'"),
    ],
)
def test_session_that_cannot_work_is_refused_at_once(options: dict[str, object], named: str) -> None:
    with pytest.raises(SettingsError, match=named):
        RagSession(**options)  # type: ignore[arg-type]


def test_search_type_beside_a_retriever_of_one_s_own_is_refused() -> None:
    with pytest.raises(SettingsError, match=r"search_type of the built-in search.*partial"):
        RagSession("oils", system="naive", retriever="my_search:Mine", search_type="dense")


def test_system_without_an_answer_says_so(tmp_path: Path) -> None:
    def build(**options: Any) -> RagGraph:
        builder = StateGraph(RagState, context_schema=RunContext)
        builder.add_node("nothing", lambda state: {})
        builder.add_edge(START, "nothing")
        return RagGraph(builder, system="silent", **options)

    settings = load_settings(checkpoints="memory:", home=tmp_path)
    with RagSession(system=build, context=RagContext(reader=FakeLLM(lambda _: "")), settings=settings) as session:
        result = session.ask("Why?")
    assert (result.status, result.answer) == ("failed", "")
    assert "build' ended without an answer: no node set answer" in result.error


@pytest.mark.parametrize("limits", [{"max_rec_depth": -1}, {"max_rec_depth": "2"}, {"max_llm_calls": 0}])
def test_impossible_limits_are_refused(limits: dict[str, Any]) -> None:
    with pytest.raises(SettingsError, match=r"is not usable: max_"):
        Limits(**limits)


def test_what_is_no_question_is_named(session: RagSession) -> None:
    with pytest.raises(SettingsError, match=r"5 is no question"):
        session.ask(5)  # type: ignore[call-overload]
    with pytest.raises(SettingsError, match=r"score_threshold: .*it is nan"):
        session.ask(ROOT, score_threshold=float("nan"))


def test_a_store_that_fails_in_mid_search_is_told_with_the_thread(tmp_path: Path) -> None:
    file = tmp_path / "c.sqlite"

    def reply(messages: Sequence[Message]) -> str:
        with closing(sqlite3.connect(file)) as connection:
            connection.execute("DROP TABLE checkpoints")
        return "Vellin"

    settings = load_settings(home=tmp_path, checkpoints=f"sqlite:///{file}", durability="sync")
    with RagSession(context=context_of(FakeLLM(reply)), settings=settings) as session:
        with pytest.raises(StoreFailure, match=r"no such table.* ask it again with --thread-id 'my own'"):
            session.ask(ROOT, thread_id="my own")
        with pytest.raises(StoreFailure, match="no such table: checkpoints") as before_the_search:
            session.ask(ROOT, thread_id="my own")
    assert "--thread-id" not in str(before_the_search.value)
