"""Which answers of a run are not complete, and what was damaged, in words."""

from __future__ import annotations

from collections.abc import Iterator
from typing import get_args

import pandas as pd

from ...graphs.drawing.words import count_of
from ..metrics.damage import DAMAGE_KINDS, damage_in_words, in_order
from ..rows.store import Completeness


def completeness_counts(questions: pd.DataFrame) -> dict[str, dict[Completeness, int]]:
    """How many answers of each system are complete, degraded and failed; each of these is a key.

    Args:
        questions: As from ``frames.question_frame``.
    """
    return {
        str(system): {kind: int((part["completeness"] == kind).sum()) for kind in get_args(Completeness)}
        for system, part in questions.groupby("system", sort=False)
    }


def damage_lines(questions: pd.DataFrame) -> Iterator[str]:
    """Lines of Markdown on degraded answers, what damaged them in which system; none where no answer is degraded.

    Args:
        questions: As from ``frames.question_frame``.
    """
    degraded = questions[questions["completeness"] == "degraded"]
    if degraded.empty:
        return
    told = []
    for system, part in degraded.groupby("system", sort=False):
        words = damage_in_words(in_order({kind: int(part[kind].sum()) for kind in DAMAGE_KINDS}))
        told.append(f"{system} {count_of(len(part), 'answer')} ({words})")
    yield (
        f"Degraded by faults: {', '.join(told)}. They count in these means; `judgetree eval compare` leaves them out "
        "unless `--rows` says otherwise. `judgetree eval run --retry incomplete` asks them again."
    )
    yield ""
