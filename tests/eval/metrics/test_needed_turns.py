"""Earlier turns that a question needs: named against gold."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgetree.evaluation.metrics.conversation import NeededScores, needed_scores

TURNS = st.sets(st.integers(1, 6))


@pytest.mark.parametrize(
    ("named", "gold", "precision", "recall", "f1"),
    [
        ([], [], None, None, 1.0),
        ([1], [1], 1.0, 1.0, 1.0),
        ([1, 2, 3], [3, 4], 1 / 3, 1 / 2, 0.4),
        ([1], [2], 0.0, 0.0, 0.0),
        ([], [2], None, 0.0, 0.0),
        ([1], [], 0.0, None, 0.0),
        ([2, 2], [2], 1.0, 1.0, 1.0),
    ],
)
def test_scores_of_sets(
    named: list[int], gold: list[int], precision: float | None, recall: float | None, f1: float
) -> None:
    assert needed_scores(named, gold) == NeededScores(precision=precision, recall=recall, f1=f1)


@given(named=TURNS, gold=TURNS)
def test_f1_is_the_harmonic_mean_and_symmetric(named: set[int], gold: set[int]) -> None:
    scores, swapped = needed_scores(named, gold), needed_scores(gold, named)
    assert (scores.precision, scores.recall, scores.f1) == (swapped.recall, swapped.precision, swapped.f1)
    if scores.precision and scores.recall:
        harmonic = 2 * scores.precision * scores.recall / (scores.precision + scores.recall)
        assert scores.f1 == pytest.approx(harmonic)
