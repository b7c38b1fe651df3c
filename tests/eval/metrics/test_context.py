"""Metrics of what a reader sees."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgetree.evaluation.datasets.questions import EvalQuestion
from judgetree.evaluation.metrics.context import answer_in_context, redundancy


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
