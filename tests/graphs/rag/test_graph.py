from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest
from langchain_core.runnables import RunnableConfig, RunnableLambda
from langgraph.checkpoint.base import empty_checkpoint

from judgetree.graphs.rag.graph import RagGraph
from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.systems.closed_book import build_closed_book
from judgetree.graphs.systems.judge_rag import build_judge_rag
from judgetree.graphs.systems.naive_rag import build_naive_rag
from judgetree.graphs.threads.context import RagContext
from judgetree.modules.background_loop import background_loop
from judgetree.modules.calls.messages import Message
from judgetree.modules.errors import ModelCallError, SettingsError, ThreadMismatch, UnknownThread
from tests.graphs.fakes import FakeLLM, thread
from tests.graphs.two_steps import ROOT, SUB, context_of


@pytest.fixture
def graph(reader: FakeLLM) -> RagGraph:
    return build_judge_rag(context=context_of(reader))


def test_invoke_twice_and_from_two_threads(graph: RagGraph) -> None:
    answers: list[str] = []
    workers = [threading.Thread(target=lambda: answers.append(graph.invoke(ROOT)["answer"])) for _ in range(2)]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert [*answers, graph.invoke({"query": ROOT})["answer"]] == ["Vellin"] * 3


def test_async_calls_from_several_event_loops(graph: RagGraph) -> None:
    async def ask() -> tuple[str, list[str], list[str]]:
        final = await graph.ainvoke(ROOT, thread("t"))
        updates = [name async for update in graph.astream(ROOT, stream_mode="updates") for name in update]
        started = [event["name"] async for event in graph.astream_events(ROOT) if event["event"] == "on_chain_start"]
        return final["answer"], updates, started

    for _ in range(2):
        answer, updates, started = asyncio.run(ask())
        assert answer == "Vellin"
        assert updates == ["retrieve", "judge", "plan_sub_runs", "call_new_rag", "augment", "generate"]
        assert started.count("judge_rag") == 2, "the events of the sub-run are there too"


def test_sync_invoke_inside_a_running_loop(graph: RagGraph) -> None:
    async def cell() -> str:
        return graph.invoke(ROOT)["answer"]

    assert asyncio.run(cell()) == "Vellin"


def test_it_composes_as_a_runnable(graph: RagGraph) -> None:
    chain = graph | RunnableLambda(lambda state: state["answer"].upper())
    assert chain.invoke(ROOT) == "VELLIN"
    assert graph.batch([ROOT, ROOT])[1]["answer"] == "Vellin"


def test_a_finished_thread_is_returned_without_a_call(graph: RagGraph, reader: FakeLLM) -> None:
    first = graph.invoke(ROOT, thread("t"))
    calls = len(reader.calls)
    assert graph.invoke(ROOT, thread("t")) == first
    assert graph.invoke(None, thread("t")) == first
    assert list(graph.stream(ROOT, thread("t"))) == [first]
    assert len(reader.calls) == calls == 2


@pytest.mark.parametrize(
    ("question", "depth", "named"), [("Another question?", 3, "query: "), (ROOT, 2, "max_rec_depth: 3 then, 2 now")]
)
def test_a_thread_is_refused_to_another_question_or_other_settings(
    graph: RagGraph, reader: FakeLLM, question: str, depth: int, named: str
) -> None:
    graph.invoke(ROOT, thread("t"))
    with pytest.raises(ThreadMismatch, match=named):
        graph.invoke(question, thread("t"), context=context_of(reader, depth=depth))


def test_resuming_an_unknown_thread_is_an_error(graph: RagGraph) -> None:
    with pytest.raises(UnknownThread, match="does not exist"):
        graph.invoke(None, thread("nobody"))


def test_a_thread_killed_before_its_question_begins_anew(graph: RagGraph) -> None:
    async def kill() -> None:
        store = await graph.aopen_store()
        assert store is not None
        config: RunnableConfig = {"configurable": {"thread_id": "t", "checkpoint_ns": ""}}
        await store.aput(config, empty_checkpoint(), {"source": "input", "step": -1, "parents": {}}, {})

    background_loop().run(kill())
    with pytest.raises(UnknownThread):
        graph.invoke(None, thread("t"))
    assert graph.invoke(ROOT, thread("t"))["answer"] == "Vellin"


@pytest.mark.parametrize("question", [5, float("nan"), {"query": 5}, ["words"]])
def test_a_question_that_is_no_text_is_refused(graph: RagGraph, question: object) -> None:
    with pytest.raises(SettingsError, match=r"is no text\. Give a string"):
        graph.invoke(question, thread("t"))  # type: ignore[arg-type]


@pytest.mark.parametrize("question", ["", "   ", {}, {"query": ""}])
def test_an_empty_question_is_refused(graph: RagGraph, question: object) -> None:
    with pytest.raises(SettingsError, match="question is empty"):
        graph.invoke(question)  # type: ignore[arg-type]


def test_a_graph_without_services_says_so() -> None:
    with pytest.raises(SettingsError, match="RagContext"):
        build_naive_rag().invoke(ROOT)


def test_a_failed_run_is_resumed_elsewhere_without_paying_twice(tmp_path: Path) -> None:
    url = f"sqlite:///{tmp_path / 'c.sqlite'}"
    failing = {ROOT}

    def reply(messages: Sequence[Message]) -> str:
        if messages[1][1].splitlines()[0].removeprefix("Question: ") in failing:
            raise ModelCallError("endpoint down")
        return "Vellin"

    reader = FakeLLM(reply)
    with build_judge_rag(checkpointer=url, context=context_of(reader)) as graph:
        with pytest.raises(ModelCallError, match="endpoint down"):
            graph.invoke(ROOT, thread("t"))
        assert SearchTree.from_history(graph, "t").root.status == "failed"
    failing.clear()
    calls = len(reader.calls)
    with build_judge_rag(checkpointer=url, context=context_of(reader)) as graph:
        assert graph.invoke(None, thread("t"))["answer"] == "Vellin"
        assert len(reader.calls) == calls + 1, "only the root's answer was missing"
        assert [summary.thread_id for summary in graph.list_threads()] == ["t"]
        assert SearchTree.from_history(graph, "t").usage["llm_calls"] == 2, "each answer is booked once"


def test_without_a_checkpointer_it_still_answers(reader: FakeLLM) -> None:
    graph = build_judge_rag(checkpointer=None, context=context_of(reader))
    assert graph.invoke(ROOT)["answer"] == "Vellin"
    assert graph.list_threads() == []


def test_naive_and_closed_book_graphs_use_the_same_interface(reader: FakeLLM) -> None:
    naive = build_naive_rag(context=context_of(reader)).invoke(ROOT)
    closed = build_closed_book(context=RagContext(reader=reader)).invoke(ROOT)
    assert naive["answer"] == closed["answer"] == "Vellin"
    assert [found.metadata["chunk_id"] for found in naive["similar_chunks"]] == ["a"]
    assert "KS-1 is class Delta." in naive["evidence"]
    assert closed.get("similar_chunks") in (None, [])


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
def test_every_durability_leaves_a_readable_tree(reader: FakeLLM, durability: str) -> None:
    graph = build_judge_rag(context=context_of(reader), durability=durability)  # type: ignore[arg-type]
    graph.invoke(ROOT, thread("t"))
    assert [node.query for node in SearchTree.from_history(graph, "t").query_nodes()] == [ROOT, SUB]
