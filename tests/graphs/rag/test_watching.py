"""Trees that are watched while they grow."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Iterator, Sequence
from contextlib import aclosing
from functools import partial
from pathlib import Path

import pytest
from langchain_core.runnables import RunnableConfig
from langgraph.types import StateSnapshot

from judgetree.graphs.rag.graph import RagGraph
from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.rag.watching import Pace, TreeState, TreeWatch
from judgetree.graphs.systems.judge_rag import build_judge_rag
from judgetree.graphs.threads.checkpoints import thread_marks
from judgetree.graphs.threads.context import RagContext
from judgetree.graphs.tree.following import TreeFollower
from judgetree.modules.background_loop import background_loop
from judgetree.modules.calls.messages import Message
from judgetree.modules.errors import ModelCallError, UnknownThread
from tests.graphs.bushy import bushy_context
from tests.graphs.fakes import FakeLLM, thread
from tests.graphs.two_steps import ROOT as QUESTION
from tests.graphs.two_steps import context_of

QUICK = Pace(least_s=0.001, most_s=0.01, share=1.0, failed_s=0.05)
ROOT = "t"


@pytest.fixture
def store(tmp_path: Path) -> str:
    return f"sqlite:///{tmp_path}/trees.sqlite"


@pytest.fixture
def reading(store: str) -> Iterator[RagGraph]:
    """A graph that only reads, as in another process."""
    with build_judge_rag(checkpointer=store) as graph:
        yield graph


class Counted:
    """Counts the threads that are read."""

    def __init__(self, graph: RagGraph) -> None:
        self._graph = graph
        self.read: list[str] = []

    def get_state_history(self, config: RunnableConfig, *, limit: int | None = None) -> Iterator[StateSnapshot]:
        raise AssertionError("nothing here blocks")

    def aget_state_history(self, config: RunnableConfig, *, limit: int | None = None) -> AsyncIterator[StateSnapshot]:
        self.read.append(config["configurable"]["thread_id"])
        return self._graph.aget_state_history(config, limit=limit)


def states_of(watch: TreeWatch) -> AsyncGenerator[TreeState]:
    return background_loop().aiterate(watch.states())


async def collected(watch: TreeWatch) -> list[TreeState]:
    return [state async for state in states_of(watch)]


@pytest.mark.slow
def test_a_big_tree_is_seen_growing_and_then_is_what_was_read(store: str, reading: RagGraph) -> None:
    context = bushy_context("breadth", topk=4, max_rec_depth=5, max_llm_calls=700, suffices=0.0, seed=3)

    async def run() -> list[TreeState]:
        with build_judge_rag(checkpointer=store, context=context) as graph:
            asking = asyncio.create_task(graph.ainvoke("q", thread(ROOT)))
            while (await reading.aget_state(thread(ROOT))).created_at is None:  # noqa: ASYNC110 - another process's
                await asyncio.sleep(0)
            seen = await collected(TreeWatch(reading, ROOT, QUICK))
            await asking
            return seen

    states = asyncio.run(run())
    assert len(states) > 1
    assert states[-1].tree == SearchTree.from_history(reading, ROOT)
    assert states[-1].tree.sub_runs > 50
    assert len({state.digest for state in states}) == len(states)


@pytest.mark.parametrize("checks_marks", [True, False])
def test_only_threads_that_may_have_changed_are_read_again(store: str, reading: RagGraph, checks_marks: bool) -> None:
    async def run() -> list[list[str]]:
        graph = Counted(reading)
        saver = await reading.aopen_store()
        assert saver is not None
        follower = TreeFollower(graph, ROOT, marks=partial(thread_marks, saver) if checks_marks else None)
        reads = []
        for _ in range(3):
            await follower.read()
            reads.append(graph.read.copy())
            graph.read.clear()
        return reads

    with build_judge_rag(checkpointer=store, context=_failing(at=QUESTION)) as graph, pytest.raises(ModelCallError):
        graph.invoke(QUESTION, thread(ROOT))
    first, second, third = background_loop().run(run())
    tree = SearchTree.from_history(reading, ROOT)
    ended = [node.thread_id for node in tree.query_nodes() if node.status == "finished"]
    unended = [node.thread_id for node in tree.query_nodes() if node.status != "finished"]
    assert ended
    assert unended == [ROOT]
    assert sorted(first) == sorted([*ended, *unended])
    assert sorted(second) == sorted(unended)
    assert sorted(third) == sorted([] if checks_marks else unended)


def test_watchers_share_one_reading_and_the_last_one_ends_it(store: str, reading: RagGraph) -> None:
    with build_judge_rag(checkpointer=store, context=_failing()) as graph, pytest.raises(ModelCallError):
        graph.invoke(QUESTION, thread(ROOT))
    watch = TreeWatch(reading, ROOT, Pace(failed_s=600))

    async def run() -> list[int]:
        before = asyncio.all_tasks()
        async with aclosing(watch.states()) as one, aclosing(watch.states()) as two:
            assert (await anext(one)).digest == (await anext(two)).digest
            counts = [watch.watchers, len(asyncio.all_tasks() - before)]
        await asyncio.sleep(0)
        await asyncio.sleep(0)
        return [*counts, watch.watchers, len(asyncio.all_tasks() - before)]

    assert background_loop().run(run()) == [2, 1, 0, 0]


def test_who_comes_after_the_last_one_left_sees_the_tree(store: str, reading: RagGraph) -> None:
    with build_judge_rag(checkpointer=store, context=_failing()) as graph, pytest.raises(ModelCallError):
        graph.invoke(QUESTION, thread(ROOT))
    watch = TreeWatch(reading, ROOT, Pace(failed_s=600))

    async def run() -> list[str]:
        seen = []
        for _ in range(3):
            async with aclosing(watch.states()) as states:
                seen.append((await anext(states)).digest)
        return seen

    assert len(set(background_loop().run(run()))) == 1


def test_a_failed_tree_ends_once_it_rests(store: str, reading: RagGraph) -> None:
    with build_judge_rag(checkpointer=store, context=_failing()) as graph, pytest.raises(ModelCallError):
        graph.invoke(QUESTION, thread(ROOT))
    states = asyncio.run(collected(TreeWatch(reading, ROOT, QUICK)))
    assert [state.tree.root.status for state in states] == ["failed"]


def test_a_thread_that_is_not_there_or_is_deleted_ends_with_an_error(store: str, reading: RagGraph) -> None:
    with pytest.raises(UnknownThread):
        asyncio.run(collected(TreeWatch(reading, "none", QUICK)))
    with build_judge_rag(checkpointer=store, context=_failing()) as graph, pytest.raises(ModelCallError):
        graph.invoke(QUESTION, thread(ROOT))

    async def run() -> None:
        watch = TreeWatch(reading, ROOT, Pace(least_s=0.001, most_s=0.01, failed_s=600))
        async with aclosing(watch.states()) as states:
            await anext(states)
            saver = await reading.aopen_store()
            assert saver is not None
            await saver.adelete_thread(ROOT)
            await anext(states)

    with pytest.raises(UnknownThread):
        background_loop().run(run())


def test_a_run_that_is_saved_at_its_end_appears_whole(store: str, reading: RagGraph) -> None:
    context = bushy_context("breadth", max_rec_depth=1, max_llm_calls=30)
    with build_judge_rag(checkpointer=store, context=context, durability="exit") as graph:
        graph.invoke("q", thread(ROOT))
    (state,) = asyncio.run(collected(TreeWatch(reading, ROOT, QUICK)))
    assert state.tree == SearchTree.from_history(reading, ROOT)


def _failing(*, at: str = "") -> RagContext:
    """A context whose reader fails at the prompts that hold this text."""

    def reply(messages: Sequence[Message]) -> str:
        if any(at in text for _, text in messages):
            raise ModelCallError("the model is away")
        return "Vellin"

    return context_of(FakeLLM(reply))
