"""Paired comparisons in words: which system is better, by how much, and on what evidence."""

from __future__ import annotations

import math

from .statistics import PairedComparison, PairedTest

_TEST_NAMES: dict[PairedTest, str] = {"mcnemar": "exact McNemar test", "permutation": "paired permutation test"}


def format_verdict(comparison: PairedComparison, *, a: str, b: str) -> str:
    """Describe a comparison in one or two sentences; ``a`` and ``b`` are the systems' names, points are score × 100.

    A difference counts as shown only if test and interval agree (``PairedComparison.is_shown``).
    """
    difference, points = comparison.difference, " points" if comparison.unit == "points" else ""
    if comparison.is_shown:
        sign, better, worse = (1, a, b) if difference.mean > 0 else (-1, b, a)
        by = f"{format_score(comparison, sign * difference.mean)}{points} of {comparison.metric}"
        return f"{better} is better than {worse} by {by} ({_evidence(comparison, sign)})."
    return (
        f"No difference in {comparison.metric} was shown; {a} less {b} is "
        f"{format_score(comparison, difference.mean, signed=True)}{points} ({_evidence(comparison, 1, signed=True)}). "
        f"{_detectable(comparison, points)}"
    )


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
    if comparison.dialogues is not None:
        questions += f" of {comparison.dialogues:,} dialogue{'s' if comparison.dialogues != 1 else ''}"
    return f"{interval}; {_TEST_NAMES[comparison.test]}, {_format_p(comparison)}; {questions}"


def _format_p(comparison: PairedComparison) -> str:
    adjusted = comparison.adjusted_p_value
    value = comparison.p_value if adjusted is None else adjusted
    corrected = "" if adjusted is None else f" after Holm's correction for {comparison.comparisons:,} comparisons"
    is_least = comparison.test == "permutation" and comparison.p_value <= comparison.least_p_value * (1 + 1e-9) < 1
    if not is_least:
        return f"{_p(value)}{corrected}"
    if comparison.resamples is None:
        units = "questions" if comparison.dialogues is None else "dialogues"
        return f"{_p(value)}{corrected}, the least that so few differing {units} can give"
    return (
        f"p < {_two_digits_up(value):.2g}{corrected}, the least that {comparison.resamples:,} random exchanges can give"
    )


def _detectable(comparison: PairedComparison, points: str) -> str:
    if not comparison.can_be_shown:
        among = f" among {comparison.comparisons:,} comparisons" if comparison.comparisons > 1 else ""
        return f"With so few questions{among}, no difference would be shown, however large."
    if comparison.smallest_detectable is None:
        return "These questions cannot say how small a difference would be found."
    if comparison.unit == "points" and comparison.smallest_detectable > 1:
        return "With so few questions, not even the largest possible difference would be found four times out of five."
    least = f"{format_score(comparison, comparison.smallest_detectable)}{points}"
    return f"A true difference of {least} would be found four times out of five with so many questions."


def format_score(comparison: PairedComparison, score: float, *, signed: bool = False) -> str:
    """Return a score, or a difference, in the unit of a comparison: points with one digit, or the number itself."""
    sign = "+" if signed else ""
    return f"{100 * score:{sign}.1f}" if comparison.unit == "points" else f"{score:{sign}.3f}"


def _two_digits_up(value: float) -> float:
    """Round a number above 0 up to two digits, so that it stays an upper bound."""
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return math.ceil(value / unit) * unit


def _p(value: float) -> str:
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"
