"""The systems of a run as they are compared: the scores of chosen rows by question, and who meets whom."""

from __future__ import annotations

import itertools
from collections.abc import Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal

import pandas as pd

from ...graphs.drawing.words import count_of
from ...modules.errors import SettingsError
from ..metrics.outcomes import OUTCOMES, PRIMARY
from ..rows.store import INCOMPLETE, Completeness
from .failures import completeness_counts, has_own_failure
from .means import by_question, groups_of
from .own_scores import compared_columns_in, scored_by

RowChoice = Literal["complete", "usable", "answered", "all"]
"""complete: rows without damage from outside. usable: of these, those whose replies could all be used. answered:
degraded rows too. all: failed ones too; 0 without an answer."""
CHOSEN: Mapping[RowChoice, tuple[Completeness, ...]] = {
    "usable": ("complete",),
    "complete": ("complete",),
    "answered": ("complete", "degraded"),
    "all": ("complete", "degraded", "failed"),
}
ALL_PAIRS = "all"
USUAL_BASELINE = "naive"


@dataclass(frozen=True, kw_only=True)
class Contender:
    """One system of one run."""

    run: Path
    system: str
    """What it is called in comparisons."""
    row_system: str
    """The system of its rows."""
    scores: Mapping[str, Mapping[str, float]]
    """Scores of the chosen rows by metric and question; the mean of a question's repeats."""
    usable: Mapping[str, Mapping[str, float]]
    """The same of those rows whose replies could all be used."""
    scored_by: Mapping[str, str]
    """What scored, by metric of one's own."""
    counts: Mapping[Completeness, int]
    """Numbers of all rows."""
    unusable: int
    """Number of chosen rows with replies that could not be used, before ``usable`` rows are chosen."""
    groups: Mapping[str, Hashable] | None
    """Dialogue or cluster of each question; None if all stand alone."""


def contenders_of(run: Path, frame: pd.DataFrame, rows: RowChoice, *, primary: str = PRIMARY) -> list[Contender]:
    """Collect the systems of a ``frames.question_frame``, in its order, with the scores of the chosen rows.

    They are scored by ``OUTCOMES``, by ``primary`` if that is another column, and by metrics of one's own.
    """
    own = compared_columns_in(frame)
    metrics = tuple(dict.fromkeys((*(name for name in (*OUTCOMES, primary) if name in frame), *own)))
    counts = completeness_counts(frame)
    contenders = []
    for system, part in frame.groupby("system", sort=False):
        chosen = part[part["completeness"].isin(CHOSEN[rows])]
        is_unusable = has_own_failure(chosen)
        usable = chosen[~is_unusable]
        if rows == "usable":
            chosen = usable
        contender = Contender(
            run=run,
            system=str(system),
            row_system=str(system),
            scores={metric: by_question(chosen, metric) for metric in metrics},
            usable={metric: by_question(usable, metric) for metric in metrics},
            scored_by={metric: scored_by(frame, metric) for metric in own},
            counts=counts[str(system)],
            unusable=int(is_unusable.sum()),
            groups=_groups(chosen),
        )
        contenders.append(contender)
    return contenders


def _groups(part: pd.DataFrame) -> dict[str, Hashable] | None:
    questions = [str(question) for question in part["question_id"].unique()]
    groups = groups_of(part, questions)
    return None if groups is None else dict(zip(questions, groups, strict=True))


def against(contenders: Sequence[Contender], baseline: str | None) -> list[tuple[Contender, Contender]]:
    """Pair each contender with the baseline, or all contenders for "all".

    Raises:
        SettingsError: There is no such baseline.
    """
    return against_named({contender.system: contender for contender in contenders}, baseline)


def against_named(contenders: Mapping[str, Contender], baseline: str | None) -> list[tuple[Contender, Contender]]:
    """Pair contenders that have other names than their systems, which are the keys, as ``against`` does."""
    if baseline == ALL_PAIRS:
        return list(itertools.combinations(contenders.values(), 2))
    other = contenders[baseline_of(list(contenders), baseline)]
    return [(contender, other) for contender in contenders.values() if contender is not other]


def baseline_of(systems: Sequence[str], baseline: str | None) -> str:
    """Return the system that the others are compared with: None takes naive, or else the first; "all" stays.

    Raises:
        SettingsError: There is no such system.
    """
    chosen = baseline or (USUAL_BASELINE if USUAL_BASELINE in systems else systems[0])
    if chosen != ALL_PAIRS:
        check_baseline(chosen, systems)
    return chosen


def check_baseline(baseline: str, systems: Sequence[str]) -> None:
    """Raise SettingsError if the baseline is none of the systems."""
    if baseline not in systems:
        raise SettingsError(
            f"The baseline {baseline!r} is not a system of the run. Allowed: {', '.join(systems)}, or {ALL_PAIRS} for "
            "every pair."
        )


def in_both(one: Contender, two: Contender, metric: str) -> list[str]:
    """Return the questions on which both have a score, in the order of the first."""
    return [question for question in one.scores[metric] if question in two.scores[metric]]


def format_row(parts: Iterable[tuple[str, Mapping[Completeness, int]]], kinds: Sequence[Completeness]) -> str:
    """Describe counts as "3 failed and 1 degraded of judge, 1 degraded of naive"; ``""`` without any."""
    words = [(name, [f"{counts[kind]:,} {kind}" for kind in kinds if counts.get(kind)]) for name, counts in parts]
    return ", ".join(f"{' and '.join(each)} of {name}" for name, each in words if each)


def format_unusable(contenders: Iterable[tuple[str, int]]) -> str:
    """Describe counts of rows as "3 answers of judge, 1 answer of naive"; ``""`` without any."""
    return ", ".join(f"{count_of(count, 'answer')} of {name}" for name, count in contenders if count)


def format_unused(one: Contender, two: Contender) -> str:
    """Say which rows of both were left out, and what to do; ``""`` if all are complete."""
    unusable = format_unusable((each.system, each.unusable) for each in (one, two))
    words = format_row([(each.system, each.counts) for each in (one, two)], INCOMPLETE)
    words = "; ".join(filter(None, (words, f"replies that could not be used in {unusable}" if unusable else "")))
    return f" ({words}: ask them again with `eval run --retry incomplete`, or count them with --rows)" if words else ""
