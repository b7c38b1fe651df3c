"""Paired comparisons in words: which system is better, by how much, and on what evidence."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from ...graphs.drawing.words import count_of
from .gain_per_cost import COSTS, GainPerCost
from .statistics import PairedComparison, PairedTest, Unit

_SHOWN: Mapping[Unit, tuple[int, int]] = {
    **{"points": (100, 1), "score": (1, 3), "count": (1, 2), "tokens": (1, 0), "USD": (1, 5), "seconds": (1, 2)},
}
"""Factor and digits of each unit."""
_TEST_NAMES: dict[PairedTest, str] = {"mcnemar": "exact McNemar test", "permutation": "paired permutation test"}


def format_verdict(comparison: PairedComparison, *, a: str, b: str) -> str:
    """Describe a comparison in one or two sentences; ``a`` and ``b`` are the systems' names, points are score × 100.

    A difference counts as shown only if test and interval agree (``PairedComparison.is_shown``).
    """
    difference, points = comparison.difference, " points" if comparison.unit == "points" else ""
    score = comparison.title or comparison.metric
    if comparison.is_shown:
        sign, more, less = (1, a, b) if difference.mean > 0 else (-1, b, a)
        by = format_score(comparison, sign * difference.mean)
        evidence = _evidence(comparison, sign)
        if comparison.better == "lower" and comparison.unit == "score":
            return f"{less} is better than {more} by {by} of {score} ({evidence})."
        if comparison.better == "lower":
            return f"{more} takes more {score} than {less}, by {by} ({evidence})."
        return f"{more} is better than {less} by {by}{points} of {score} ({evidence})."
    return (
        f"No difference in {score} was shown; {a} less {b} is "
        f"{format_score(comparison, difference.mean, signed=True)}{points} ({_evidence(comparison, 1, signed=True)}). "
        f"{_detectable(comparison, points)}"
    )


def format_equivalence(comparison: PairedComparison) -> str:
    """Say whether the systems are equivalent within the margin that was given; ``""`` without one."""
    found = comparison.equivalence
    if found is None:
        return ""
    margin = f"{format_score(comparison, found.margin)}{' points' if comparison.unit == 'points' else ''}"
    if found.low is None or found.high is None:
        return f"Whether they are equivalent within {margin} cannot be said: no interval follows."
    bounds = " to ".join(format_score(comparison, bound, signed=True) for bound in (found.low, found.high))
    said = "They are equivalent" if found.is_shown else "That they are equivalent was not shown"
    return f"{said} within {margin} ({100 * found.confidence:.3g} % interval {bounds}, two one-sided tests)."


def format_gains(comparison: PairedComparison, gains: Sequence[GainPerCost]) -> str:
    """Say what is gained for each cost, with intervals; ``""`` without any."""
    if not gains:
        return ""
    first, *others = gains
    points = " points" if comparison.unit == "points" else ""
    changes = f"changes {comparison.title or comparison.metric} by"
    said = [
        f"{COSTS[first.cost].words} {changes} {_gain(comparison, first)}{points}{_between(comparison, first)}",
        *(f"{COSTS[each.cost].words} by {_gain(comparison, each)}{_between(comparison, each)}" for each in others),
    ]
    sentence = ", ".join(said)
    return f"{sentence[0].upper()}{sentence[1:]}."


def _gain(comparison: PairedComparison, each: GainPerCost) -> str:
    return format_score(comparison, each.gain.mean, signed=True)


def _between(comparison: PairedComparison, each: GainPerCost) -> str:
    if each.gain.low is None or each.gain.high is None:
        return ""
    low, high = (format_score(comparison, bound, signed=True) for bound in (each.gain.low, each.gain.high))
    return f" ({low} to {high})"


def _evidence(comparison: PairedComparison, sign: int, *, signed: bool = False) -> str:
    low, high, n = comparison.difference.low, comparison.difference.high, comparison.difference.n
    interval = "no interval"
    if n > 1 and (low is None or high is None):
        which = "difference" if comparison.difference.mean else "score"
        interval = f"the same {which} on each of them, from which no interval follows"
    elif low is not None and high is not None:
        bounds = " to ".join(
            format_score(comparison, bound, signed=signed) for bound in sorted((sign * low, sign * high))
        )
        interval = f"95 % interval {bounds}"
    questions = f"{n:,} question{'s' if n != 1 else ''}"
    if comparison.groups is not None:
        questions += f" of {count_of(comparison.groups, 'dialogue' if comparison.are_dialogues else 'cluster')}"
    return f"{interval}; {_TEST_NAMES[comparison.test]}, {_format_p(comparison)}; {questions}"


def _format_p(comparison: PairedComparison) -> str:
    adjusted = comparison.adjusted_p_value
    value = comparison.p_value if adjusted is None else adjusted
    corrected = "" if adjusted is None else f" after Holm's correction for {_family(comparison)}"
    is_least = comparison.test == "permutation" and comparison.p_value <= comparison.least_p_value * (1 + 1e-9) < 1
    if not is_least:
        return f"{_p(value)}{corrected}"
    if comparison.resamples is None:
        units = "questions" if comparison.groups is None else "dialogues" if comparison.are_dialogues else "clusters"
        return f"{_p(value)}{corrected}, the least that so few differing {units} can give"
    return (
        f"p < {_two_digits_up(value):.2g}{corrected}, the least that {comparison.resamples:,} random exchanges can give"
    )


def _family(comparison: PairedComparison) -> str:
    return " ".join(filter(None, (f"{comparison.comparisons:,} comparisons", comparison.family)))


def _detectable(comparison: PairedComparison, points: str) -> str:
    if not comparison.can_be_shown:
        among = f" among {_family(comparison)}" if comparison.comparisons > 1 else ""
        return f"With so few questions{among}, no difference would be shown, however large."
    if comparison.smallest_detectable is None:
        return "These questions cannot say how small a difference would be found."
    if comparison.unit == "points" and comparison.smallest_detectable > 1:
        return "With so few questions, not even the largest possible difference would be found four times out of five."
    least = f"{format_score(comparison, comparison.smallest_detectable)}{points}"
    return f"A true difference of {least} would be found four times out of five with so many questions."


def format_score(comparison: PairedComparison, score: float, *, signed: bool = False) -> str:
    """Return a score, or a difference, in the unit of a comparison."""
    factor, digits = _SHOWN[comparison.unit]
    shown = round(factor * score, digits) + 0.0  # no minus before a 0
    return f"{shown:{'+' if signed else ''},.{digits}f}"


def _two_digits_up(value: float) -> float:
    """Round a number above 0 up to two digits, so that it stays an upper bound."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return math.ceil(value / unit) * unit


def _p(value: float) -> str:
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"
