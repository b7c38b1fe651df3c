"""Metrics of what a reader sees."""

from __future__ import annotations

import math

import pandas as pd
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgetree.evaluation.datasets.questions import EvalQuestion
from judgetree.evaluation.metrics.context import (
    ContextFigures,
    answer_in_context,
    chunks_read,
    context_of,
    evidence_complete,
    redundancy,
    support_scores,
)
from judgetree.evaluation.reports.frames import question_frame
from judgetree.evaluation.rows.store import RowChunk
from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.tree.nodes import ChunkNode, QueryNode
from tests.eval.run_rows import run_row, tree_figures

CHUNK = RowChunk(key="a.md", chunk_id="c", depth=0, rank=0, verdict="2")


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


@pytest.mark.parametrize(
    ("system", "changes", "evidence"),
    [
        ("judge", {"tree": tree_figures()}, 0.0),
        ("naive(topk=9)", {"status": "failed"}, 0.0),
        ("llm", {"tree": tree_figures()}, None),
        ("judge", {"tree": tree_figures(), "chunks": (CHUNK,)}, None),
        ("judge", {"context": ContextFigures(passages=0, answer_in_context=0.0, redundancy=0.0, read=())}, 0.0),
        ("judge", {"context": ContextFigures(passages=1, answer_in_context=1.0, redundancy=0.0)}, None),
    ],
    ids=["found nothing", "failed", "closed book", "older row", "was shown nothing", "older figures"],
)
def test_a_search_that_showed_nothing_has_no_evidence_and_counts(
    system: str, changes: dict[str, object], evidence: float | None
) -> None:
    gold = EvalQuestion(id="q", question="Who?", answers=("Ada",), supporting=("a.md",))
    found = question_frame([run_row(system=system, **changes)], [gold])["evidence"].iloc[0]
    assert (None if pd.isna(found) else found) == evidence


def test_a_tree_whose_reader_was_shown_nothing_has_figures() -> None:
    shown_nothing = QueryNode(thread_id="t", query="?", chunks=(node("c"),))
    figures = context_of(asked("Ada"), SearchTree(root=shown_nothing))
    assert figures is not None
    assert (figures.passages, figures.read, figures.answer_in_context) == (0, (), 0.0)
    assert context_of(asked("Ada"), SearchTree(root=QueryNode(thread_id="t", query="?"))) is None


@pytest.mark.parametrize(
    ("read", "expected"),
    [
        ([["a"], ["b"]], (1.0, 1.0, 1.0)),
        ([["a"], ["x"], ["y"]], (1 / 3, 0.5, 0.4)),
        ([["a"], ["a"], ["x"], ["x"]], (0.5, 0.5, 0.5)),
        ([["x", "a"], ["b"]], (1.0, 1.0, 1.0)),
        ([["x"]], (0.0, 0.0, 0.0)),
        ([], (0.0, 0.0, 0.0)),
    ],
)
def test_supporting_documents_are_scored_as_hotpotqa_scores_its_facts(
    read: list[list[str]], expected: tuple[float, float, float]
) -> None:
    found = support_scores(["a", "b"], read)
    assert found is not None
    assert (found.precision, found.recall, found.f1) == pytest.approx(expected)
    assert support_scores([], read) is None


def test_joint_scores_multiply_those_of_answer_and_supporting_documents() -> None:
    question = asked("Bern in the Jura", supporting=("a.md", "b.md"))
    context = ContextFigures(passages=1, answer_in_context=1.0, redundancy=0.0, read=("c",))
    row = run_row(question_id="q", prediction="Bern", chunks=(CHUNK,), context=context, tree=tree_figures())
    (scores,) = question_frame([row], [question]).to_dict("records")
    assert (scores["support_precision"], scores["support_recall"]) == (1.0, 0.5)
    # The answer's precision is 1 and its recall 1/3 ("the" does not count): 1 * 1 and 1/3 * 1/2.
    assert scores["joint_f1"] == pytest.approx(2 * 1 * (1 / 6) / (1 + 1 / 6))
    assert question_frame([row], [asked("Bern")])["joint_f1"].isna().all()
