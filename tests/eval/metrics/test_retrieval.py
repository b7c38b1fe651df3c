"""Retrieval metrics: cases worked out by hand, and laws over generated rankings; gold marks by chunk."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgetree.evaluation.datasets.questions import EvalQuestion
from judgetree.evaluation.metrics.retrieval import (
    GoldMark,
    RetrievalScores,
    all_supporting,
    gold_mark,
    normalized_gain,
    reciprocal_rank,
    score_retrieval,
    supporting_recall,
)

RANKED = ["x", "g1", "x", "g1", "y", "g2"]  # x, g1, y, g2 once each


@pytest.mark.parametrize(
    ("k", "recall", "complete"), [(1, 0, 0), (2, 0.5, 0), (3, 0.5, 0), (4, 1, 1), (10, 1, 1), (None, 1, 1)]
)
def test_k_counts_documents_by_first_appearance(k: int | None, recall: float, complete: float) -> None:
    assert supporting_recall(RANKED, ["g1", "g2"], k=k) == recall
    assert all_supporting(RANKED, ["g1", "g2"], k=k) == complete


@pytest.mark.parametrize(
    ("ranked", "expected"), [(["g1"], 1), (RANKED, 0.5), (["x", "x", "y", "g2", "g1"], 1 / 3), (["x"], 0), ([], 0)]
)
def test_reciprocal_rank_is_that_of_the_first_gold_document(ranked: list[str], expected: float) -> None:
    assert reciprocal_rank(ranked, ["g1", "g2"]) == expected


@pytest.mark.parametrize(
    ("ranked", "k", "expected"),
    [
        (["g1", "g2"], 2, 1.0),
        (["g2", "g1", "x"], 3, 1.0),
        (RANKED, 4, (1 / 1.584963 + 1 / 2.321928) / (1 + 1 / 1.584963)),  # at ranks 2 and 4
        (RANKED, 2, (1 / 1.584963) / (1 + 1 / 1.584963)),
        (["g1", "x"], 1, 1.0),
        (["x"], 3, 0.0),
        ([("g1", "g2"), "x"], 3, 1.0),
    ],
)
def test_gain_is_discounted_by_rank_and_set_against_the_best_order(ranked: list[str], k: int, expected: float) -> None:
    assert normalized_gain(ranked, ["g1", "g2"], k=k) == pytest.approx(expected, abs=1e-6)


def test_a_question_without_gold_has_no_score() -> None:
    assert score_retrieval(RANKED, RANKED, []) is None


def test_finding_nothing_scores_zero() -> None:
    assert supporting_recall([], ["g1"], k=3) == all_supporting([], ["g1"]) == 0


@pytest.mark.parametrize("k", [0, -1])
def test_k_below_one_is_refused(k: int) -> None:
    with pytest.raises(ValueError, match=f"k is {k}; it must be 1 or more"):
        supporting_recall(RANKED, ["g1"], k=k)


def test_the_tree_is_scored_beside_the_root() -> None:
    scores = score_retrieval(["x", "g1", "y"], {"x", "g1", "y", "g2"}, ["g1", "g2", "g1"], ks=(1, 3))
    assert scores == RetrievalScores(
        recall_at={1: 0.0, 3: 0.5},
        all_at={1: 0.0, 3: 0.0},
        ndcg_at={1: 0.0, 3: pytest.approx(0.386853, abs=1e-6)},
        reciprocal_rank=0.5,
        tree_recall=1.0,
        tree_all=1.0,
    )


keys = st.lists(st.sampled_from("abcdefg"), max_size=10)
gold = st.lists(st.sampled_from("abcdefg"), min_size=1, max_size=4)
ks = st.integers(1, 12)


@given(keys, gold, ks)
def test_recall_grows_with_k_and_is_bounded(ranked: list[str], wanted: list[str], k: int) -> None:
    at_k, next_k = supporting_recall(ranked, wanted, k=k), supporting_recall(ranked, wanted, k=k + 1)
    assert 0 <= at_k <= next_k <= 1


@given(keys, gold, ks)
def test_all_is_found_exactly_when_recall_is_one(ranked: list[str], wanted: list[str], k: int) -> None:
    assert all_supporting(ranked, wanted, k=k) == (supporting_recall(ranked, wanted, k=k) == 1)


@given(keys, gold, ks)
def test_repetitions_change_nothing(ranked: list[str], wanted: list[str], k: int) -> None:
    once = list(dict.fromkeys(ranked))
    assert supporting_recall(ranked, wanted, k=k) == supporting_recall(once, wanted * 2, k=k)
    assert reciprocal_rank(ranked, wanted) == reciprocal_rank(once, wanted * 2)


@given(keys, gold)
def test_without_k_the_order_does_not_matter(found: list[str], wanted: list[str]) -> None:
    assert supporting_recall(found, wanted) == supporting_recall(set(found), wanted[::-1])


@given(keys, gold, ks)
def test_reciprocal_rank_tells_where_recall_starts(ranked: list[str], wanted: list[str], k: int) -> None:
    rank = reciprocal_rank(ranked, wanted)
    recall = supporting_recall(ranked, wanted, k=k)
    assert (rank >= 1 / k) == (recall > 0)


# --- gold marks ---

FACT = "Dorsan withstands up to 212 °C in service"
QUESTION = EvalQuestion(
    id="q", question="?", answers=("212 °C",), supporting=("gaskets", "bolts"), facts=(("gaskets", FACT),)
)


@pytest.mark.parametrize(
    ("key", "text", "mark"),
    [
        ("gaskets", f"KV-207. {FACT}; above that it chars.", "fact"),
        ("gaskets", "DORSAN withstands\nup to  212 °C in service.", "fact"),
        ("gaskets", "Gaskets are stored flat and dry.", ""),
        ("gaskets", "and so on. Dorsan withstands up to 212", "fact"),
        ("gaskets", "up to 212 °C in service. Above that", "fact"),
        ("gaskets", "and so on. Dorsan", ""),
        ("bolts", "Bolts are tightened crosswise.", "document"),
        ("ladders", FACT, ""),
    ],
)
def test_chunk_is_gold_by_the_words_that_it_holds(key: str, text: str, mark: GoldMark) -> None:
    assert gold_mark(QUESTION, key, text) == mark


def test_documents_of_one_text_share_a_rank() -> None:
    root = [("a", "b"), "x", ("a", "c"), "y"]
    scores = score_retrieval(root, root, ["b", "c", "y"], ks=(1, 2, 3))
    assert scores is not None
    assert scores.recall_at == pytest.approx({1: 1 / 3, 2: 1 / 3, 3: 2 / 3})
    assert (scores.reciprocal_rank, scores.tree_all) == (1.0, 1.0)


@pytest.mark.parametrize("group", [("b", "c"), ("c", "b")])
def test_documents_of_which_any_one_will_do_are_one_whichever_is_named_first(group: tuple[str, ...]) -> None:
    question = EvalQuestion(id="q", question="?", answers=(), supporting=("d", group[0]), alternatives=(group,))
    found = [(key, *question.stood_for([key])) for key in ("a", "b", "c", "d")]
    scores = score_retrieval(found, found, question.supporting, ks=(2, 3))
    assert scores is not None
    assert (dict(scores.recall_at), dict(scores.all_at)) == ({2: 0.5, 3: 1.0}, {2: 0.0, 3: 1.0})
    assert scores.ndcg_at[3] == pytest.approx((1 / math.log2(3) + 1 / 2) / (1 + 1 / math.log2(3)))
