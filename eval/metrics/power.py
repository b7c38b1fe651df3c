"""Power of McNemar's exact test: how many questions show a difference of EM, and which difference so many show.

A question on which exactly one of two systems is right is discordant; the others say nothing. All figures are exact
sums over the number of discordant questions, at the level that the first step of Holm's correction asks for.
"""

from __future__ import annotations

import functools

import numpy as np
from scipy import stats

from .intervals import ALPHA

POWER = 0.8
MOST_QUESTIONS = 100_000
_STEPS = 14
"""Halvings of the interval in which a difference lies: to within a ten-thousandth."""


def mcnemar_power(questions: int, *, discordance: float, difference: float, comparisons: int = 1) -> float:
    """Compute the probability that the test shows a true difference.

    Args:
        questions: Number of questions, 1 or more.
        discordance: Share of questions on which exactly one system is right, in [``difference``, 1].
        difference: Share of the questions that the one has right more often, in [0, 1].
        comparisons: How many comparisons are corrected together.

    >>> round(mcnemar_power(200, discordance=.2, difference=.1), 2)
    0.88
    """
    differing = np.arange(questions + 1)
    weights = stats.binom.pmf(differing, questions, discordance)
    differing, weights = differing[weights > 1e-12], weights[weights > 1e-12]
    level = ALPHA / comparisons
    # The most questions of the worse system with which the test still shows a difference; -1 for none.
    most = stats.binom.ppf(level / 2, differing, 0.5).astype(int)
    most -= 2 * stats.binom.cdf(most, differing, 0.5) > level
    better = (discordance + difference) / (2 * discordance) if discordance else 0.5
    shown = stats.binom.cdf(most, differing, better) + stats.binom.sf(differing - most - 1, differing, better)
    return float(weights @ np.where(most >= 0, shown, 0.0))


def questions_needed(difference: float, *, discordance: float, comparisons: int = 1) -> int | None:
    """Return the number of questions with which a true difference is shown with a power of .8.

    ``discordance`` counts as ``difference`` where it is less. None for more than ``MOST_QUESTIONS``.

    >>> questions_needed(.1, discordance=.2)
    168
    """
    share = max(discordance, difference)

    def suffice(questions: int) -> bool:
        power = mcnemar_power(questions, discordance=share, difference=difference, comparisons=comparisons)
        return power >= POWER

    low, high = 2, 4
    while not suffice(high):
        if high == MOST_QUESTIONS:
            return None
        low, high = high, min(2 * high, MOST_QUESTIONS)
    while high - low > 1:  # power grows in teeth, so that this may be some questions off the least number
        middle = (low + high) // 2
        low, high = (low, middle) if suffice(middle) else (middle, high)
    return high


@functools.lru_cache(maxsize=1024)
def detectable_difference(questions: int, *, discordance: float, comparisons: int = 1) -> float | None:
    """Return the true difference that so many questions show with a power of .8; None if they show none so often.

    >>> round(detectable_difference(200, discordance=.2), 3)
    0.091
    """
    low, high = 0.0, 1.0
    if mcnemar_power(questions, discordance=1.0, difference=1.0, comparisons=comparisons) < POWER:
        return None
    for _ in range(_STEPS):
        middle = (low + high) / 2
        share = max(discordance, middle)
        found = mcnemar_power(questions, discordance=share, difference=middle, comparisons=comparisons) >= POWER
        low, high = (low, middle) if found else (middle, high)
    return high
