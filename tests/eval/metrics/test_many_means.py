"""Many columns at once give what each gives alone."""

from __future__ import annotations

import numpy as np
import pytest

from judgetree.evaluation.metrics.intervals import mean_interval
from judgetree.evaluation.metrics.many_means import means_of, sign_flip_p_values
from judgetree.evaluation.metrics.statistics import sign_flip_p_value

RNG = np.random.default_rng(1)
SCORES = np.column_stack([RNG.random(120), np.full(120, 0.1), RNG.integers(0, 2, 120)])


def test_means_have_the_intervals_that_they_have_alone() -> None:
    together = means_of(SCORES)
    for column in range(SCORES.shape[1]):
        alone = mean_interval(SCORES[:, column].tolist(), scale="amount")
        assert together.mean[column] == pytest.approx(alone.mean)
        assert (together.low[column], together.high[column]) == pytest.approx((alone.low, alone.high), abs=0.01)


def test_one_question_has_no_interval() -> None:
    assert np.isnan([means_of(SCORES[:1]).low, means_of(SCORES[:1]).high]).all()


def test_p_values_are_those_of_the_test_of_one_column() -> None:
    few, none = np.zeros(120), np.zeros(120)
    few[:5] = [1.0, 1.0, 1.0, 1.0, -0.5]
    columns = np.column_stack([RNG.normal(0.1, 1, 120), RNG.normal(0.3, 1, 120), few, none])
    alone = [sign_flip_p_value(columns[:, at]) for at in range(4)]
    together = sign_flip_p_values(columns)
    assert together == pytest.approx(alone, abs=0.05)
    assert list(together[2:]) == alone[2:] == [0.125, 1.0], "exact: 2 of 32 exchanges are as extreme, on either side"
