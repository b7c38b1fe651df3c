"""Confidence that answers state, and the calibration error of BrowseComp-Plus, by hand."""

from __future__ import annotations

import math

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgetree.evaluation.metrics.confidence import calibration_error, stated_confidence


@pytest.mark.parametrize(
    ("answer", "confidence"),
    [
        ("Exact Answer: Vellin\nConfidence: 85%", 85),
        ("**Confidence:** 7.5 %", 7.5),
        ("Confidence: 20%\nNo, confidence: 30", 30),
        ("confidence：400%", 100),
        ("I am confident.", 100),
        ("", 100),
    ],
)
def test_an_answer_states_its_confidence_last_and_else_is_sure(answer: str, confidence: float) -> None:
    assert stated_confidence(answer) == confidence


def test_the_error_is_the_root_mean_square_over_bins_without_the_last() -> None:
    confidences = [90.0] * 100 + [10.0] * 100 + [50.0] * 100 + [99.0] * 30
    right = [True] * 60 + [False] * 40 + [True] * 20 + [False] * 80 + [True] * 100 + [False] * 30
    # Sorted: 100 at 10 (20 right), 100 at 50 (all right), 100 at 90 (60 right) with 30 at 99, the last bin.
    wanted = math.sqrt(100 / 330 * (10 - 20) ** 2 + 100 / 330 * (50 - 100) ** 2)
    assert calibration_error(confidences, right) == pytest.approx(wanted)


@pytest.mark.parametrize(("answers", "error"), [(0, None), (99, None), (100, 0), (199, 0), (200, 100 * 0.5**0.5)])
def test_few_answers_have_no_error(answers: int, error: float | None) -> None:
    assert calibration_error([100.0] * answers, [False] * answers) == pytest.approx(error)


@given(st.lists(st.tuples(st.floats(0, 100), st.booleans()), min_size=100, max_size=350))
def test_it_is_a_percentage_and_does_not_depend_on_order_without_ties(pairs: list[tuple[float, bool]]) -> None:
    error = calibration_error([each for each, _ in pairs], [right for _, right in pairs])
    assert error is not None
    assert 0 <= error <= 100
