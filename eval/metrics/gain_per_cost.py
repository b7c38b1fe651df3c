"""What a system gains over another for each further call, token or dollar that it takes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from .intervals import Clusters, MeanInterval, mean_interval, ratio_interval

COSTS: Mapping[str, tuple[float, str]] = {
    "llm_calls": (1, "a further call"),
    "prompt_tokens": (1_000, "1,000 further prompt tokens"),
    "cost_usd": (0.01, "a further US cent"),
}
"""Column of a cost, the amount that a gain is told for, and its words."""


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
        The gain with the interval of the paired bootstrap; None where the 95 % interval of the further cost does not
        lie on one side of 0, since a gain for hardly any cost has no bounds.
    """
    spent = mean_interval(further, scale="amount", clusters=groups)
    if spent.low is None or spent.high is None or spent.low <= 0 <= spent.high:
        return None
    amount = COSTS[cost][0]
    gain = ratio_interval(gains, (np.asarray(further) / amount).tolist(), clusters=groups)
    return GainPerCost(cost=cost, amount=amount, gain=gain)
