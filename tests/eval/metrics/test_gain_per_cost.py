"""What a system gains for each further call, token or cent, against other ways to the same figure."""

from __future__ import annotations

import numpy as np
import pytest

from judgetree.evaluation.metrics.gain_per_cost import gain_per_cost
from judgetree.evaluation.metrics.intervals import ratio_interval


def test_a_gain_is_the_ratio_of_the_means_in_the_amount_of_its_cost() -> None:
    gains, further = [1.0, 0.0, 0.0, 1.0] * 20, [4_000.0, 3_000.0, 5_000.0, 8_000.0] * 20
    found = gain_per_cost(gains, further, cost="prompt_tokens")
    assert found is not None
    assert found.gain.mean == pytest.approx(0.5 / 5.0)
    assert found.gain.low is not None
    assert found.gain.high is not None
    assert found.gain.low < 0.1 < found.gain.high


def test_the_interval_is_near_fieller_s() -> None:
    """Fieller's interval of a ratio of two means (1954), by its own quadratic."""
    rng = np.random.default_rng(3)
    further = rng.normal(6.0, 2.0, 400)
    gains = 0.05 * further + rng.normal(0.0, 0.4, 400)
    found = ratio_interval(gains.tolist(), further.tolist())
    (a, covariance), (_, b) = np.cov(gains, further) / 400
    top, bottom, t = gains.mean(), further.mean(), 1.966
    square = bottom**2 - t**2 * b
    centre = top * bottom - t**2 * covariance
    spread = np.sqrt(centre**2 - square * (top**2 - t**2 * a))
    assert found.low == pytest.approx((centre - spread) / square, abs=0.0015)
    assert found.high == pytest.approx((centre + spread) / square, abs=0.0015)


def test_no_gain_is_told_for_a_cost_of_which_no_difference_was_shown() -> None:
    assert gain_per_cost([1.0, 0.0] * 10, [1.0, -1.0] * 10, cost="llm_calls") is None
    assert gain_per_cost([1.0, 0.0] * 10, [2.0, 2.0] * 10, cost="llm_calls") is not None
    assert gain_per_cost([1.0, 0.0] * 10, [0.0, 0.0] * 10, cost="llm_calls") is None


def test_samples_whose_costs_cancel_are_no_reason_to_fail() -> None:
    found = ratio_interval([1.0, 0.0, 1.0], [1.0, -1.0, 1.0])
    assert found.mean == 2.0


def test_clusters_are_drawn_whole() -> None:
    rng = np.random.default_rng(0)
    of_cluster = np.repeat(rng.normal(0.3, 0.5, 40), 5)
    clusters = np.repeat(np.arange(40), 5).tolist()
    gains, further = of_cluster.tolist(), [3.0] * 200
    alone, drawn = ratio_interval(gains, further), ratio_interval(gains, further, clusters=clusters)
    assert alone.mean == pytest.approx(drawn.mean)
    widths = [float(each.high or 0) - float(each.low or 0) for each in (alone, drawn)]
    assert widths[1] > 1.8 * widths[0]


def test_a_ratio_needs_something_to_divide_by() -> None:
    with pytest.raises(ValueError, match="do not sum up to 0"):
        ratio_interval([1.0, 2.0], [1.0, -1.0])
