"""Threads asked several times at once, sessions closed under their questions, and sessions in a forked process."""

from __future__ import annotations

import asyncio
import os
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from judgetree.graphs.rag.graph import RagGraph
from judgetree.graphs.rag.result import RagResult
from judgetree.graphs.session import RagSession
from judgetree.graphs.systems.closed_book import build_closed_book
from judgetree.graphs.threads.context import RagContext
from judgetree.modules.calls.completion import Completion
from judgetree.modules.calls.messages import Message
from judgetree.modules.errors import ModelCallError, ModelSetupError, SessionError, ThreadMismatch
from judgetree.modules.settings import load_settings
from tests.graphs.fakes import FakeLLM

QUESTION = "What is six by nine?"
AT_ONCE = 32


class SlowLLM(FakeLLM):
    """Answers only once it is let go; ``asked`` is set as soon as it has been asked."""

    def __init__(self, reply: Callable[[Sequence[Message]], str] = lambda _: "42") -> None:
        super().__init__(reply)
        self.asked, self.may_go = threading.Event(), threading.Event()

    async def complete(self, messages: Sequence[Message], **options: object) -> Completion:  # type: ignore[override]
        self.asked.set()
        while not self.may_go.is_set():  # noqa: ASYNC110 - it is let go from another thread
            await asyncio.sleep(0.001)
        return await super().complete(messages, **options)  # type: ignore[arg-type]


def session_of(reader: FakeLLM, home: Path) -> RagSession:
    settings = load_settings(checkpoints=f"sqlite:///{home / 'threads.sqlite'}", home=home)
    return RagSession(system="llm", context=RagContext(reader=reader), settings=settings)


def failing(error: Exception) -> Callable[[Sequence[Message]], str]:
    def fail(_: Sequence[Message]) -> str:
        raise error

    return fail


def let_go_once_asked(reader: SlowLLM) -> None:
    assert reader.asked.wait(20)
    reader.may_go.set()


@pytest.mark.parametrize("sessions", [1, 4])
def test_a_thread_that_is_asked_many_times_at_once_runs_once(tmp_path: Path, sessions: int) -> None:
    reader = SlowLLM()
    opened = [session_of(reader, tmp_path) for _ in range(sessions)]

    async def all_at_once() -> list[RagResult]:
        asked = [opened[number % sessions].aask(QUESTION, thread_id="t") for number in range(AT_ONCE)]
        results, _ = await asyncio.gather(asyncio.gather(*asked), asyncio.to_thread(let_go_once_asked, reader))
        return results

    results = asyncio.run(all_at_once())
    for session in opened:
        session.close()
    assert len(reader.calls) == 1
    assert {(result.answer, result.status, result.tree.root.thread_id) for result in results} == {
        ("42", "answered", "t")
    }
    assert sum(result.usage_this_run["llm_calls"] for result in results) == 1, "who waited has paid for nothing"


@pytest.mark.parametrize("error", [ModelCallError("down"), ModelSetupError("no key")], ids=repr)
def test_those_who_wait_share_the_failure(tmp_path: Path, error: ModelCallError) -> None:
    reader = SlowLLM(failing(error))

    async def all_at_once(session: RagSession) -> list[RagResult | BaseException]:
        asked = [session.aask(QUESTION, thread_id="t") for _ in range(4)]
        together = asyncio.gather(*asked, return_exceptions=True)
        return (await asyncio.gather(together, asyncio.to_thread(let_go_once_asked, reader)))[0]

    with session_of(reader, tmp_path) as session:
        results = asyncio.run(all_at_once(session))
        assert len(reader.calls) == 1
        for result in results:
            told = result.error if isinstance(result, RagResult) else str(result)
            assert told == str(error)
            assert isinstance(result, ModelSetupError) == isinstance(error, ModelSetupError)


def test_another_question_on_a_running_thread_is_refused_once_it_has_run() -> None:
    reader = SlowLLM()
    config = {"configurable": {"thread_id": "t"}}

    async def both(graph: RagGraph) -> list[object]:
        asked = [graph.ainvoke(question, config) for question in (QUESTION, QUESTION, "What else?")]  # type: ignore[arg-type]
        together = asyncio.gather(*asked, return_exceptions=True)
        return list((await asyncio.gather(together, asyncio.to_thread(let_go_once_asked, reader)))[0])

    with build_closed_book(context=RagContext(reader=reader)) as graph:
        first, second, third = asyncio.run(both(graph))
    assert first == second
    assert isinstance(third, ThreadMismatch)
    assert len(reader.calls) == 1


def test_closing_a_session_ends_its_questions_resumably(tmp_path: Path) -> None:
    reader = SlowLLM()
    session = session_of(reader, tmp_path)
    raised: list[BaseException] = []

    def ask() -> None:
        try:
            session.ask(QUESTION, thread_id="t")
        except SessionError as error:
            raised.append(error)

    asking = threading.Thread(target=ask)
    asking.start()
    assert reader.asked.wait(20)
    session.close()
    asking.join(20)
    (error,) = raised
    assert "closed while this question ran" in str(error)
    reader.may_go.set()
    with session:
        assert session.ask(QUESTION, thread_id="t").answer == "42"


def test_closing_a_graph_ends_its_streams_with_an_error(tmp_path: Path) -> None:
    reader = SlowLLM()
    graph = build_closed_book(context=RagContext(reader=reader))

    async def stream_and_close() -> None:
        async def stream() -> None:
            async for _ in graph.astream(QUESTION):
                pass

        streaming = asyncio.create_task(stream())
        assert await asyncio.to_thread(reader.asked.wait, 20)
        await graph.aclose()
        with pytest.raises(SessionError, match="The graph was closed"):
            await streaming

    asyncio.run(stream_and_close())


@pytest.mark.skipif(not hasattr(os, "fork") or sys.platform == "darwin", reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_a_session_that_was_opened_before_a_fork_says_so(tmp_path: Path) -> None:
    reader = FakeLLM(lambda _: "42")
    with session_of(reader, tmp_path) as session:
        session.ask(QUESTION)
        reading, writing = os.pipe()
        if not (child := os.fork()):
            try:
                session.close()
                session.ask(QUESTION)
            except SessionError as error:
                os.write(writing, str(error).encode())
            finally:
                os._exit(0)
        os.close(writing)
        with os.fdopen(reading) as told:
            said = told.read()
        os.waitpid(child, 0)
        assert "forked" in said
        assert "Make a new one after the fork" in said
        assert session.ask(QUESTION).answer == "42"
