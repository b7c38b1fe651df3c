"""Confidence that answers state, and how far it is from how often they are right, as BrowseComp-Plus defines both.

The definitions are those of its evaluation script (github.com/texttron/BrowseComp-Plus), which takes them from
BrowseComp (Wei et al. 2025, arXiv:2504.12516).
"""

from __future__ import annotations

import math
import re
from collections.abc import Sequence

SURE = 100.0
"""Confidence of an answer that states none."""
BIN = 100
"""Number of answers in a bin."""
_STATED = re.compile(r"\bconfidence\b[*_`\s]{0,5}[:：][*_`\s]{0,5}(?P<percent>\d{1,9}(?:\.\d{1,9})?)", re.IGNORECASE)


def stated_confidence(answer: str) -> float:
    """Return the confidence that an answer states last, in [0, 100]; 100 where it states none.

    >>> stated_confidence("Exact Answer: Vellin\\nConfidence: 85%"), stated_confidence("Vellin")
    (85.0, 100.0)
    """
    stated = [float(found["percent"]) for found in _STATED.finditer(answer)]
    return min(stated[-1], SURE) if stated else SURE


def calibration_error(confidences: Sequence[float], are_right: Sequence[bool]) -> float | None:
    """Compute the root mean square of confidence less accuracy over bins, in [0, 100]; None for fewer than 100 answers.

    Answers are sorted by confidence into bins of 100, the last of which takes what is left; equal confidences keep
    their order. As in the benchmark's script the last bin counts in the total and adds no error of its own, so that up
    to 199 answers give 0.

    Args:
        confidences: In [0, 100].
        are_right: ``are_right[i]`` belongs to ``confidences[i]``.
    """
    total = len(confidences)
    if total < BIN:
        return None
    pairs = sorted(zip(confidences, are_right, strict=True), key=lambda pair: pair[0])
    squares = 0.0
    for place in range(total // BIN - 1):
        part = pairs[place * BIN : (place + 1) * BIN]
        confidence, accuracy = sum(each for each, _ in part) / BIN, 100 * sum(right for _, right in part) / BIN
        squares += BIN / total * (confidence - accuracy) ** 2
    return math.sqrt(squares)
