"""Power of McNemar's exact test, against simulations of the test itself."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import stats

from judgetree.evaluation.metrics.power import detectable_difference, mcnemar_power, questions_needed


def simulated(questions: int, discordance: float, difference: float, comparisons: int) -> float:
    """The share of 20,000 runs in which the exact test shows the difference."""
    shares = [(discordance + difference) / 2, (discordance - difference) / 2, 1 - discordance]
    drawn = np.random.default_rng(0).multinomial(questions, shares, size=20_000)
    better, worse = drawn[:, 0], drawn[:, 1]
    p_values = np.minimum(1, 2 * stats.binom.cdf(np.minimum(better, worse), better + worse, 0.5))
    return float((p_values <= 0.05 / comparisons).mean())


@pytest.mark.parametrize("comparisons", [1, 4, 12])
@pytest.mark.parametrize(("questions", "discordance"), [(40, 0.5), (100, 0.1), (200, 0.3), (1_000, 0.2)])
def test_statements_of_power_hold_in_a_simulation(questions: int, discordance: float, comparisons: int) -> None:
    difference = detectable_difference(questions, discordance=discordance, comparisons=comparisons)
    assert difference is not None
    share = max(discordance, difference)
    power = mcnemar_power(questions, discordance=share, difference=difference, comparisons=comparisons)
    assert power == pytest.approx(0.8, abs=0.01)
    assert simulated(questions, share, difference, comparisons) == pytest.approx(0.8, abs=0.02)
    needed = questions_needed(difference, discordance=discordance, comparisons=comparisons)
    assert needed == pytest.approx(questions, rel=0.08)


def test_the_level_is_kept_and_what_cannot_be_shown_is_said() -> None:
    assert mcnemar_power(200, discordance=0.3, difference=0.0) <= 0.05
    assert detectable_difference(5, discordance=0.2) is None, "five questions have no p value below .05"
    assert questions_needed(0.001, discordance=0.9) is None
    assert questions_needed(1.0, discordance=0.2) == 6
    assert questions_needed(0.00443, discordance=0.2) == pytest.approx(80_500, rel=0.01)
    assert mcnemar_power(100, discordance=0.0, difference=0.0) == 0.0
