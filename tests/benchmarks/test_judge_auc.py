"""The figures of judges, on cases that were worked out by hand."""

from __future__ import annotations

import asyncio
import json
import math
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from benchmarks.judge_auc import (
    PASSAGE_CHARACTERS,
    Case,
    Rating,
    as_table,
    best_threshold,
    case_of,
    figures_of,
    load_cases,
    rate_all,
)
from judgetree.evaluation.calibration.data import Bm25

# --- threshold ---


@pytest.mark.parametrize(
    ("gold", "others", "threshold", "accuracy"),
    [
        ([0.8, 0.6], [0.4, 0.2], 0.5, 1.0),
        ([0.9, 0.3], [0.5, 0.1], 0.7, 0.75),
        ([0.9, 0.8, 0.2], [0.7, 0.1], 0.75, 5 / 6),
        ([0.5], [0.5], 0.5, 0.5),
    ],
)
def test_best_threshold_is_the_balanced_one(
    gold: list[float], others: list[float], threshold: float, accuracy: float
) -> None:
    assert best_threshold(gold, others) == (pytest.approx(threshold), pytest.approx(accuracy))


floats = st.lists(st.floats(0, 1), min_size=1, max_size=8)


@given(floats, floats)
def test_best_threshold_is_no_worse_than_calling_all_gold(gold: list[float], others: list[float]) -> None:
    threshold, accuracy = best_threshold(gold, others)
    assert accuracy >= 0.5
    found = sum(x >= threshold for x in gold) / len(gold) + sum(x < threshold for x in others) / len(others)
    assert found / 2 == pytest.approx(accuracy)


# --- BM25 and the cases ---


def test_bm25_of_one_word_is_the_formula() -> None:
    # Two of three passages hold "cat" (idf = ln(1 + 1.5/2.5) = ln 1.6); all have the mean length, so tf=1 weighs 1.
    search = Bm25(["cat sat", "cat ran", "dog ran"])
    assert search.scores("cat") == [pytest.approx(math.log(1.6)), pytest.approx(math.log(1.6)), 0.0]
    assert search.scores("cat cat bird") == [2 * score for score in search.scores("cat")]


def test_bm25_prefers_the_rare_word_and_the_shorter_text() -> None:
    rare, common, _ = Bm25(["cat x", "dog x", "dog y"]).scores("cat dog")
    assert rare > common
    short, long = Bm25(["cat", "cat and much else besides"]).scores("cat")
    assert short > long


@pytest.mark.parametrize(("query", "passages"), [("cat", []), ("", ["cat"]), ("cat", ["", ""]), ("?", ["!"])])
def test_bm25_of_nothing_is_zero(query: str, passages: list[str]) -> None:
    assert Bm25(passages).scores(query) == [0.0] * len(passages)


PARAGRAPHS = [
    ("Ridley Scott", ["Born in South Shields."]),
    ("Aliens", ["Aliens is a film by James Cameron."]),
    ("Alien", ["Alien is a film.", " It was made by Ridley Scott."]),
    ("Bread", ["Bread is food."]),
    ("Film", ["A film by a director is a film."]),
]
QUESTION = "Where was the director of the film Alien born?"


def test_case_has_the_gold_paragraphs_and_the_likeliest_others() -> None:
    case = case_of(QUESTION, PARAGRAPHS, ["Alien", "Ridley Scott", "Alien"])
    assert case.gold == ("Ridley Scott. Born in South Shields.", "Alien. Alien is a film. It was made by Ridley Scott.")
    assert [passage.partition(".")[0] for passage in case.distractors] == ["Film", "Aliens"]


def test_passages_are_cut() -> None:
    case = case_of("Who?", [("A", ["x" * 2000]), ("B", ["y" * 2000])], ["A"])
    assert [len(passage) for passage in (*case.gold, *case.distractors)] == [PASSAGE_CHARACTERS] * 2


def test_cases_are_the_first_questions_of_a_file(tmp_path: Path) -> None:
    row = {"question": QUESTION, "context": PARAGRAPHS, "supporting_facts": [["Alien", 0], ["Alien", 1]]}
    path = tmp_path / "hotpotqa.json"
    path.write_text(json.dumps([row, {**row, "question": "Who?"}, row]), encoding="utf-8")
    assert [case.question for case in load_cases(path, 2)] == [QUESTION, "Who?"]


# --- the row of a method ---


def rating(value: float | None, verdict: str = "", seconds: float = 1.0) -> Rating:
    return Rating(value=value, verdict=verdict, seconds=seconds)


def test_figures_are_means_over_questions() -> None:
    first = ([rating(0.9, "1", 1.0), rating(0.8, "1", 2.0)], [rating(0.1, "0", 3.0), rating(0.2, "0", 4.0)])
    second = ([rating(0.3, "2", 5.0), rating(None, "unknown", 6.0)], [rating(0.5, "1", 7.0), rating(0.2, "0", 8.0)])
    row = figures_of("logprob", [first, second], seed=0)
    # Within the second question: 0.3 loses to 0.5 and beats 0.2, the unknown ties twice.
    assert row.auc == pytest.approx((1.0 + 0.5) / 2)
    assert (row.low, row.high) == (0.5, 1.0)
    assert row.median_s == pytest.approx(4.5)
    assert row.p90_s == pytest.approx(7.3)
    assert row.verdicts == {"0": 0.375, "1": 0.375, "2": 0.125, "unknown": 0.125}
    assert "| logprob | 0.750 | 0.500 to 1.000 | 4.50 | 7.30 | 0: 38%, 1: 38%, 2: 12%, unknown: 12% |" in as_table(
        [row]
    )


def test_ratings_belong_to_their_passages() -> None:
    async def by_length(question: str, passage: str) -> Rating:
        return rating(float(len(question + passage)))

    cases = [Case(question="q", gold=("a", "bb"), distractors=("ccc",)), Case(question="qq", gold=(), distractors=())]
    found = asyncio.run(rate_all(by_length, cases))
    assert [[[each.value for each in side] for side in row] for row in found] == [[[2.0, 3.0], [4.0]], [[], []]]
