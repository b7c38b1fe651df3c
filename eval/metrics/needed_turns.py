"""Whether a conversation finds the earlier turns that a question needs."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True)
class NeededScores:
    """How the turns that a system named agree with the gold ones; each in [0, 1], higher is better."""

    precision: float | None
    """Share of the named turns that are gold; None where none was named."""
    recall: float | None
    """Share of the gold turns that were named; None where there are none."""
    f1: float
    """Their harmonic mean; 1 where there are none and none was named."""


def needed_scores(named: Collection[int], gold: Collection[int]) -> NeededScores:
    """Compare the turns that a system named with the gold ones, by number.

    >>> needed_scores({1, 2}, {2})
    NeededScores(precision=0.5, recall=1.0, f1=0.6666666666666666)
    >>> needed_scores({1}, set())
    NeededScores(precision=0.0, recall=None, f1=0.0)
    """
    ours, theirs = set(named), set(gold)
    shared = len(ours & theirs)
    return NeededScores(
        precision=shared / len(ours) if ours else None,
        recall=shared / len(theirs) if theirs else None,
        f1=2 * shared / (len(ours) + len(theirs)) if ours or theirs else 1.0,
    )
