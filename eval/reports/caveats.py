"""Answers of a run whose model calls had replies that are worse than they look: counts and lines of a report."""

from __future__ import annotations

from collections.abc import Iterator

import pandas as pd

from ...graphs.drawing.words import count_of
from ...modules.caveats.kinds import CAVEATS, CaveatKind
from .frames import CAVEAT


def caveat_counts(questions: pd.DataFrame) -> dict[str, dict[CaveatKind, int]]:
    """Count the answers of each system of a ``frames.question_frame`` with each kind of caveat; kinds without any are
    left out."""
    return {
        str(system): {kind: count for kind in CAVEATS if (count := int((part[f"{CAVEAT}{kind}"] > 0).sum()))}
        for system, part in questions.groupby("system", sort=False)
    }


def caveat_lines(questions: pd.DataFrame) -> Iterator[str]:
    """Yield lines of Markdown on answers with caveats: one a kind, with each system's share, and what to do."""
    counts = caveat_counts(questions)
    if not any(counts.values()):
        return
    answers = {str(system): len(part) for system, part in questions.groupby("system", sort=False)}
    marked = int((questions["caveats"] != "").sum())
    yield ""
    yield (
        f"{count_of(marked, 'answer')} of {len(questions):,} with replies that are worse than they look. They count "
        "in these means and in comparisons; `results.csv` names them."
    )
    yield ""
    for kind, caveat in CAVEATS.items():
        shares = [
            f"{system} {of[kind]:,} of {answers[system]:,} ({of[kind] / answers[system]:.0%})"
            for system, of in counts.items()
            if kind in of
        ]
        if shares:
            yield f"- **{caveat.noun}**: {', '.join(shares)}. {caveat.sentence} {caveat.remedy}"
    yield ""
