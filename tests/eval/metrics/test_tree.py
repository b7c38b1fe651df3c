"""The figures of a search tree that was drawn up by hand."""

from __future__ import annotations

from dataclasses import replace

from judgetree.evaluation.metrics.tree import TreeFigures, figures_of
from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.tree.nodes import ChunkNode, QueryNode
from judgetree.modules.judge.contract import Score, VerdictStatus
from tests.call_records import call_record


def chunk(
    chunk_id: str, score: Score | None = None, *, verdict: VerdictStatus = "judged", child: QueryNode | None = None
) -> ChunkNode:
    return ChunkNode(
        chunk_id=chunk_id, text="", metadata={"verdict": verdict, "score": score}, sub_runs=(child,) if child else ()
    )


DEEPEST = QueryNode(
    thread_id="d",
    query="deepest",
    depth=2,
    answer_status="refused",
    chunks=(chunk("a", 0), chunk("e", verdict="cancelled")),
    usage=(call_record("5"), call_record("6", kind="embedding")),
)
REFUSED = QueryNode(
    thread_id="r",
    query="refused",
    depth=1,
    answer_status="refused",
    chunks=(chunk("a", 1, child=DEEPEST), chunk("c", 2), chunk("d", verdict="unknown")),
    usage=(call_record("3", cached=True), call_record("4", error="timeout")),
)
ANSWERED = QueryNode(
    thread_id="s", query="answered", depth=1, answer_status="answered", chunks=(chunk("c", 2), chunk("b", 0))
)
ROOT = QueryNode(
    thread_id="t",
    query="root",
    answer_status="refused",
    chunks=(chunk("a", 1, child=REFUSED), chunk("b", 1, child=ANSWERED), chunk("f", verdict="pending")),
    usage=(call_record("1"), call_record("2")),
)


def test_every_figure_is_counted_over_the_whole_tree() -> None:
    assert figures_of(SearchTree(root=ROOT)) == TreeFigures(
        sub_runs=3,
        depth=2,
        chunks=10,
        duplicate_chunks=4,  # a twice again, b and c once again; d, e and f are alone
        verdicts_2=2,
        verdicts_1=3,
        verdicts_0=2,
        unknown_verdicts=1,
        cancelled_verdicts=1,
        pending_verdicts=1,
        refused_sub_answers=2,
        llm_calls=4,
        cached_llm_calls=1,
        prompt_tokens=40,
        completion_tokens=8,
        cached_seconds=0.5,
    )


def test_a_shared_question_saves_its_run_and_those_below() -> None:
    metadata = {**ROOT.chunks[2].metadata, "shared_thread_id": REFUSED.thread_id}
    root = replace(ROOT, chunks=(*ROOT.chunks[:2], replace(ROOT.chunks[2], metadata=metadata)))
    figures, below = figures_of(SearchTree(root=root)), SearchTree(root=REFUSED)
    saved = (figures.shared_questions, figures.saved_sub_runs, figures.saved_llm_calls)
    assert saved == (1, 1 + below.sub_runs, figures_of(below).llm_calls) == (1, 2, 2)
    assert figures.llm_calls == figures_of(SearchTree(root=ROOT)).llm_calls


def test_cached_calls_count_as_long_as_others_waited_for_them() -> None:
    """A verdict in two calls beside one in a single call, a sub-run below, and the answer: 2 + 1 + 1 calls in a row."""
    below = replace(ANSWERED, usage=(call_record("4", cached=True),))
    verdicts = [call_record(n, chunk_id=about, cached=n != "2") for n, about in (("1", "a"), ("2", "a"), ("3", "b"))]
    root = replace(ROOT, chunks=(chunk("a", 1, child=below),), usage=(*verdicts, call_record("5", cached=True)))
    assert figures_of(SearchTree(root=root)).cached_seconds == 1.5
    embedded = replace(ROOT, chunks=(), usage=(call_record("6", kind="embedding", cached=True),))
    assert figures_of(SearchTree(root=embedded)).cached_seconds == 0


def test_verdicts_on_linked_passages_wait_for_those_that_led_to_them() -> None:
    """Two verdicts side by side, one on a passage that they are linked with, and one a hop further: 3 in a row."""
    found = [
        replace(chunk(name, 1), metadata={"link_hop": hop}) for name, hop in (("a", 0), ("b", 0), ("c", 1), ("d", 2))
    ]
    calls = tuple(call_record(each.chunk_id, chunk_id=each.chunk_id, cached=True) for each in found)
    assert figures_of(SearchTree(root=replace(ROOT, chunks=tuple(found), usage=calls))).cached_seconds == 1.5


def test_a_tree_of_one_query_has_nothing_below_it() -> None:
    figures = figures_of(SearchTree(root=replace(ROOT, chunks=(), usage=())))
    assert figures.refused_sub_answers == 0  # the refusal of the root is no sub-answer
    assert (figures.sub_runs, figures.depth, figures.chunks, figures.duplicate_chunks) == (0, 0, 0, 0)


def test_rounds_of_a_query_are_as_deep_as_sub_runs() -> None:
    found = [
        ChunkNode(chunk_id=name, text="", metadata={"recursion_depth": number, "found_by": "q"})
        for name, number in (("a", 1), ("b", 2))  # the first search found nothing
    ]
    figures = figures_of(SearchTree(root=replace(ROOT, chunks=tuple(found), usage=())))
    assert (figures.depth, figures.sub_runs) == (2, 0)
