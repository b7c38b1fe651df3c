"""Metrics of what a reader sees."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgetree.evaluation.datasets.questions import EvalQuestion
from judgetree.evaluation.metrics.context import answer_in_context, chunks_read, evidence_complete, redundancy
from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.tree.nodes import ChunkNode, QueryNode


def asked(*answers: str, lang: str = "en", **more: object) -> EvalQuestion:
    return EvalQuestion(id="q", question="Which?", answers=answers, lang=lang, **more)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("question", "texts", "score"),
    [
        (asked("Bern"), ["It is in the Jura.", "Near Bern, they say."], 1.0),
        (asked("art"), ["Bartok lived there."], 0.0),
        (asked("Bern", "the Jura"), ["In Jura."], 1.0),
        (asked("New York"), ["New", "York"], 0.0),
        (asked("Bern"), [], 0.0),
        (asked("北京", lang="zh"), ["首都是北京。"], 1.0),
        (asked("yes", "Bern"), ["Oh yes."], 0.0),
        (asked("yes"), ["Oh yes."], None),
        (asked("The"), ["The end."], None),
        (asked(), ["Bern"], None),
    ],
)
def test_the_answer_stands_in_a_passage(question: EvalQuestion, texts: list[str], score: float | None) -> None:
    assert answer_in_context(question, texts) == score


def test_redundancy_worked_out_by_hand() -> None:
    """ "red" is in two of three passages, "ox" and "sea" in one."""
    red, ox = math.log1p(3 / 2), math.log1p(3)
    cosine = red / math.hypot(red, ox)
    assert redundancy(["red ox", "red", "sea"]) == pytest.approx((cosine + cosine + 0) / 3)
    assert redundancy(["red ox", "red ox"]) == pytest.approx(1.0)
    assert redundancy(["red", "sea"]) == redundancy(["red"]) == redundancy([]) == 0.0


@given(st.lists(st.text("abc ", max_size=12), max_size=6))
def test_redundancy_is_a_share_that_ignores_order_and_is_1_of_copies(texts: list[str]) -> None:
    assert 0 <= redundancy(texts) <= 1
    assert redundancy(texts[::-1]) == pytest.approx(redundancy(texts))
    worded = [text for text in texts if text.strip()]
    if worded:
        assert redundancy([*worded, *worded]) == pytest.approx(1.0)


def node(name: str, *, place: int | None = None, below: QueryNode | None = None, **metadata: object) -> ChunkNode:
    shown = {} if place is None else {"shown_place": place}
    return ChunkNode(
        chunk_id=name, text=name, metadata={**shown, **metadata}, sub_runs=() if below is None else (below,)
    )


def test_what_readers_saw_on_the_way_to_the_answer() -> None:
    """A sub-question that was refused hands nothing on, and what no reader was shown was found for nothing."""
    deeper = QueryNode(thread_id="d", query="?", depth=2, chunks=(node("deep", place=0), node("unread")))
    known = QueryNode(thread_id="k", query="?", depth=1, chunks=(node("low", place=0, below=deeper, sub_answer="A"),))
    refused = QueryNode(thread_id="r", query="?", depth=1, chunks=(node("lost", place=0),))
    root = QueryNode(
        thread_id="t",
        query="?",
        chunks=(
            node("second", place=1, below=known, sub_answer="It is in Bern."),
            node("first", place=0, below=refused, sub_answer="The passages do not say."),
            node("never shown"),
            node("round", round_answer="Ada"),
        ),
    )
    assert list(chunks_read(SearchTree(root=root))) == ["first", "second", "round", "low", "deep"]


def test_evidence_is_complete_if_all_gold_was_read() -> None:
    assert evidence_complete(("a", "b"), [("a", "x"), ("b",)]) == 1.0
    assert evidence_complete(("a", "b"), [("a",)]) == 0.0
    assert evidence_complete(("a",), ()) == 0.0
    assert evidence_complete((), [("a",)]) is None
