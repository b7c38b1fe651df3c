"""What a system gains over another for each further call, token or dollar that it takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .intervals import Clusters, MeanInterval, mean_interval, ratio_interval


@dataclass(frozen=True, kw_only=True)
class CostUnit:
    """The amount of a cost by which a gain is divided."""

    amount: float
    """In the unit of the cost's column."""
    words: str
    """What sentences call it."""
    column: str
    """Name of the gain in tables of comparisons."""


COSTS: Mapping[str, CostUnit] = {
    "llm_calls": CostUnit(amount=1, words="a further call", column="gain_per_call"),
    "prompt_tokens": CostUnit(amount=1_000, words="1,000 further prompt tokens", column="gain_per_1000_prompt_tokens"),
    "cost_usd": CostUnit(amount=0.01, words="a further US cent", column="gain_per_us_cent"),
}
"""By column of the cost."""
_CONFIDENCE = 0.999


@dataclass(frozen=True, kw_only=True)
class GainPerCost:
    """A gain for an amount of a cost."""

    cost: str
    """The column, one of ``COSTS``."""
    amount: float
    """What the gain is for, in the unit of the column."""
    gain: MeanInterval
    """In the unit of the outcome."""


def gain_per_cost(
    gains: Sequence[float], further: Sequence[float], *, cost: str, groups: Clusters | None = None
) -> GainPerCost | None:
    """Divide the mean gain of a system over another by the mean cost that it takes more.

    Args:
        gains: The outcome of A less that of B, for each question.
        further: The cost of A less that of B.
        cost: The column of the cost, one of ``COSTS``.
        groups: The dialogue or cluster of each question; None for questions that stand alone.

    Returns:
        The gain with the interval of the paired bootstrap; None where the 99.9 % interval of the further cost does not
        lie on one side of 0, since a gain for hardly any cost has no bounds.
    """
    spent = mean_interval(further, scale="amount", clusters=groups, confidence=_CONFIDENCE)
    if spent.low is None or spent.high is None or spent.low <= 0 <= spent.high:
        return None
    amount = COSTS[cost].amount
    gain = ratio_interval(gains, (np.asarray(further) / amount).tolist(), clusters=groups)
    return GainPerCost(cost=cost, amount=amount, gain=gain)
