"""Intervals of means: cases worked out by hand, laws over generated values, and coverage on simulations."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from judgetree.evaluation.metrics.intervals import ClusterTotals, MeanInterval, Scale, mean_interval

FEW = 200  # resamples that are enough for a law


@pytest.mark.parametrize(
    ("values", "low", "high"),
    [([1.0, 1.0], 0.3424, 1.0), ([0.0] * 10, 0.0, 0.2775), ([1.0] * 3 + [0.0], 0.3006, 0.9544), ([1.0], 0.2065, 1.0)],
)
def test_a_share_has_wilson_s_interval(values: list[float], low: float, high: float) -> None:
    interval = mean_interval(values, scale="share")
    assert (interval.low, interval.high) == (pytest.approx(low, abs=1e-4), pytest.approx(high, abs=1e-4))


def test_a_share_between_0_and_1_has_the_bootstrap_s() -> None:
    graded = [0.0, 1.0, 0.5, 0.25]
    assert mean_interval(graded, scale="share") == mean_interval(graded, scale="amount")


def test_an_amount_that_never_varies_is_a_point() -> None:
    assert mean_interval([1.0] * 5, scale="amount") == MeanInterval(mean=1.0, low=1.0, high=1.0, n=5)


def test_one_amount_has_no_interval() -> None:
    assert mean_interval([3.0], scale="amount") == MeanInterval(mean=3.0, low=None, high=None, n=1)
    alone = mean_interval([3.0, 5.0], scale="amount", clusters=["d", "d"])
    assert (alone.mean, alone.low, alone.n) == (4.0, None, 2)


def test_the_same_seed_gives_the_same_interval_and_another_seed_another() -> None:
    values = np.random.default_rng(5).random(40).tolist()
    assert mean_interval(values, scale="amount", seed=1) == mean_interval(values, scale="amount", seed=1)
    assert mean_interval(values, scale="amount", seed=1) != mean_interval(values, scale="amount", seed=2)


@settings(max_examples=30)
@example([5.5157177261734015e-251] * 2)
@given(st.lists(st.floats(0, 1), min_size=2, max_size=20))
def test_an_interval_lies_within_the_values_and_around_the_mean(values: list[float]) -> None:
    interval = mean_interval(values, scale="amount", resamples=FEW)
    assert interval.low is not None
    assert interval.high is not None
    assert min(values) - 1e-9 <= interval.low <= interval.high <= max(values) + 1e-9
    assert min(values) - 1e-9 <= interval.mean <= max(values) + 1e-9


@settings(max_examples=50)
@given(st.lists(st.tuples(st.sampled_from([0.0, 1.0]), st.integers(0, 3)), min_size=1, max_size=20))
def test_a_share_s_interval_holds_it_and_stays_in_the_unit_interval(values: list[tuple[float, int]]) -> None:
    clusters = [cluster for _, cluster in values]
    interval = mean_interval([value for value, _ in values], scale="share", clusters=clusters)
    assert interval.low is not None
    assert interval.high is not None
    assert 0 <= interval.low <= interval.mean <= interval.high <= 1
    totals = ClusterTotals.of(np.array([value for value, _ in values]), clusters)
    assert 1 <= totals.observations <= len(values)


def test_turns_that_go_alike_count_as_their_dialogues() -> None:
    values = [1.0] * 50 + [0.0] * 50
    by_fives = [number // 5 for number in range(100)]
    together, alone = (mean_interval(values, scale="share", clusters=each) for each in (by_fives, None))
    twenty = mean_interval([1.0] * 10 + [0.0] * 10, scale="share")
    assert together.low == pytest.approx(twenty.low, abs=0.01)
    assert (together.low or 0) < (alone.low or 0) - 0.1
    all_right = mean_interval([1.0] * 100, scale="share", clusters=by_fives)
    assert all_right.low == pytest.approx(mean_interval([1.0] * 20, scale="share").low)


def test_dialogues_are_drawn_as_a_whole() -> None:
    values = [9.0] * 8 + [1.0] * 2
    interval = mean_interval(values, scale="amount", clusters=["long"] * 8 + ["short"] * 2)
    assert (interval.low, interval.high) == (1.0, 9.0), "a quarter of the draws hold but the one or the other"


@pytest.mark.parametrize("share", [0.4, 0.95])
def test_the_interval_covers_the_true_share_about_as_often_as_it_says(share: float) -> None:
    rng = np.random.default_rng(7)
    covered = 0
    for _ in range(400):
        interval = mean_interval((rng.random(60) < share).astype(float).tolist(), scale="share")
        covered += interval.low is not None and interval.high is not None and interval.low <= share <= interval.high
    # Binomial(400, .95) lies in here with more than 99.9 %.
    assert 366 <= covered <= 396


def test_the_interval_of_dialogues_covers_the_true_share() -> None:
    rng = np.random.default_rng(11)
    clusters = [number // 6 for number in range(180)]
    covered = {"dialogues": 0, "turns": 0}
    for _ in range(300):
        # Each dialogue has a share of its own, drawn from Beta(1, 1): mean .5, turns of one dialogue alike.
        values = (rng.random(180) < np.repeat(rng.random(30), 6)).astype(float).tolist()
        for name, by in (("dialogues", clusters), ("turns", None)):
            interval = mean_interval(values, scale="share", clusters=by)
            covered[name] += (interval.low or 0) <= 0.5 <= (interval.high or 0)
    assert covered["dialogues"] >= 273, "about 95 % of 300"
    assert covered["turns"] <= 260


@pytest.mark.parametrize(
    ("values", "scale", "clusters", "said"),
    [
        ([0.5, None], "amount", None, "values must be finite numbers, but index 1 is None"),
        ([0.5, math.nan], "amount", None, "values must be finite numbers, but index 1 is nan"),
        ([0.5, math.inf], "amount", None, "values must be finite numbers, but index 1 is inf"),
        ([], "amount", None, "There are no values"),
        ([0.5, 2.0], "share", None, r"A share lies in \[0, 1\], but the values reach from 0.5 to 2"),
        ([0.5, 1.0], "amount", ["d"], "2 values and 1 cluster"),
    ],
)
def test_values_that_do_not_fit_are_refused(
    values: list[float | None], scale: Scale, clusters: list[str] | None, said: str
) -> None:
    with pytest.raises(ValueError, match=said):
        mean_interval(values, scale=scale, clusters=clusters)
