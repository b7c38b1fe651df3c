"""What a judge of anybody's gave, as a verdict that can be saved."""

from __future__ import annotations

import math
from typing import cast, get_args

from ..calls.completion import storable
from .contract import Score, Verdict, VerdictStatus


def checked_verdict(given: object) -> Verdict:
    """The verdict with Python's own numbers and storable texts; an unknown one that names what cannot be used.

    Numbers of numpy and whole floats are converted. A score must be 0, 1 or 2, a confidence None or in [0, 1].

    >>> checked_verdict(Verdict(status="judged", score=3)).problem
    'The judge gave score 3. Allowed: 0, 1, 2.'
    """
    if not isinstance(given, Verdict):
        return _unknown(f"{type(given).__name__} in place of a Verdict", "judgetree.Verdict")
    if given.status not in get_args(VerdictStatus):
        return _unknown(f"status {given.status!r}", ", ".join(get_args(VerdictStatus)))
    for name in ("reason", "next_query", "problem"):
        if not isinstance(text := getattr(given, name), str):
            return _unknown(f"{name} {text!r}", "text")
    score = _number(given.score)
    if given.status == "judged" and score not in get_args(Score):
        return _unknown(f"score {given.score!r}", "0, 1, 2")
    confidence = _number(given.confidence)
    if given.confidence is not None and (confidence is None or not 0.0 <= confidence <= 1.0):
        return _unknown(f"confidence {given.confidence!r}", "None, or 0 to 1")
    whole = cast(Score, int(cast(float, score))) if given.status == "judged" else None
    return Verdict(
        status=given.status,
        score=whole,
        confidence=confidence,
        reason=storable(given.reason),
        next_query=storable(given.next_query),
        problem=storable(given.problem),
    )


def _number(value: object) -> float | None:
    """As a float of Python's; None for what is no number, such as text, a truth value or NaN."""
    if isinstance(value, str | bytes | bool) or type(value).__name__ == "bool":
        return None
    try:
        number = float(value)  # type: ignore[arg-type]
    except (TypeError, ValueError, OverflowError):
        return None
    return None if math.isnan(number) else number


def _unknown(what: str, allowed: str) -> Verdict:
    return Verdict(status="unknown", problem=f"The judge gave {storable(what)[:200]}. Allowed: {allowed}.")
