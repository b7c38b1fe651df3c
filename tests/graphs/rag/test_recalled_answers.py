"""Answers of earlier trees that a later one of the same conversation takes, and those that it does not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import pytest
from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig

from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.systems.judge_rag import build_judge_rag
from judgetree.graphs.threads.context import RagContext
from judgetree.graphs.tree.nodes import QueryNode, walk_chunks
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.errors import ModelCallError
from judgetree.modules.judge.contract import Verdict
from tests.graphs.bushy import ROOT, BushyJudge, bushy_context, draw
from tests.graphs.fakes import FakeLLM


def sharing_context(seed: int = 0, **limits: int) -> RagContext:
    given: dict[str, int | str] = {"topk": 3, "topics": 7, "max_rec_depth": 4, "sharing": "equal"}
    return bushy_context("breadth", seed=seed, suffices=0.0, **(given | limits))  # type: ignore[arg-type]


class FailingJudge(BushyJudge):
    """Its endpoint fails at few chunks."""

    async def judge(self, query: str, chunk: Document, *, meter: CallMeter, expand: bool = True) -> Verdict:
        if draw("down", chunk.metadata["chunk_id"]) < 0.04:
            raise ModelCallError("HTTP 503")
        return await super().judge(query, chunk, meter=meter, expand=expand)


def failing(context: RagContext) -> RagContext:
    assert isinstance(context.judge, BushyJudge)
    judge = context.judge
    return replace(context, judge=FailingJudge(judge.seed, judge.timing, judge.suffices, judge.topics))


def two_trees(context: RagContext) -> tuple[SearchTree, SearchTree]:
    """Search for two questions, of which the second may take answers of the first."""
    with build_judge_rag(context=context) as graph:
        for question, own, earlier in ((ROOT, "t", []), ("another", "u", ["t"])):
            config: RunnableConfig = {"configurable": {"thread_id": own, "earlier_threads": earlier}}
            assert graph.invoke(question, config)["status"] == "answered"
        return SearchTree.from_history(graph, "t"), SearchTree.from_history(graph, "u")


def left_out(node: QueryNode) -> list[str]:
    """What kept an answer from being what it might have been."""
    return [
        each.skipped or each.verdict_label
        for _, each in walk_chunks(node)
        if each.skipped or each.sub_run_error or each.budget_spent or each.verdict_label == "unknown"
    ]


@pytest.mark.parametrize(
    "context",
    [
        lambda: sharing_context(2, max_rec_depth=2, topics=12, max_llm_calls=25),
        lambda: failing(sharing_context(2, max_rec_depth=2, topics=12, max_llm_calls=400)),
    ],
    ids=["limit", "judge"],
)
def test_an_answer_below_which_something_failed_or_was_left_out_is_asked_anew(
    context: Callable[[], RagContext],
) -> None:
    earlier, later = two_trees(context())
    queries = {node.thread_id: node for node in earlier.query_nodes()}
    taken = [queries[each.shared_thread_id] for each in later.chunk_nodes() if each.is_shared_from_elsewhere]
    assert taken
    assert [left_out(node) for node in taken] == [[]] * len(taken)
    asked = {node.query for node in later.query_nodes()}
    assert any(node.query in asked and left_out(node) for node in earlier.query_nodes() if node is not earlier.root)


def test_an_answer_that_was_cut_is_asked_anew_and_so_is_what_rests_on_it() -> None:
    context = sharing_context(2, max_rec_depth=2, topics=12, max_llm_calls=400)
    earlier, later = two_trees(replace(context, reader=FakeLLM(lambda messages: "half an", lambda reply: "length")))
    assert {node.handed_on for node in earlier.query_nodes()} == {""}
    assert not any(each.is_shared_from_elsewhere for each in later.chunk_nodes())
