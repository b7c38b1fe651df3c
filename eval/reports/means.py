"""Means over the questions of a frame, with intervals; and over the questions that all systems have in common."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence

import pandas as pd

from ..metrics.intervals import MeanInterval, Scale, mean_interval


def mean_of(rows: pd.DataFrame, metric: str, *, scale: Scale, seed: int = 0) -> MeanInterval | None:
    """The mean of a column over questions, with its 95 % interval; None where no question has a value.

    Repeats of a question count as their mean, so that they are one observation. Turns of one dialogue are drawn
    together: see ``metrics.intervals``.

    Args:
        rows: Of one system, as from ``frames.question_frame``.
        metric: One of its columns.
        scale: What its values are.
        seed: Of the bootstrap.
    """
    values = by_question(rows, metric)
    if not values:
        return None
    dialogues = dialogues_of(rows, list(values))
    return mean_interval(list(values.values()), scale=scale, clusters=dialogues, seed=seed)


def by_question(rows: pd.DataFrame, metric: str) -> dict[str, float]:
    """The values of a column by question, repeats as their mean, in the order of the rows; missing ones left out."""
    means = pd.to_numeric(rows[metric]).groupby(rows["question_id"], sort=False).mean().dropna()
    return {str(question): float(value) for question, value in means.items()}


def dialogues_of(rows: pd.DataFrame, questions: Sequence[str]) -> list[Hashable] | None:
    """The dialogue of each question, or the question itself where it stands alone; None where all of them do."""
    if "dialogue_id" not in rows or not rows["dialogue_id"].notna().any():
        return None
    turns = rows[rows["dialogue_id"].notna()]
    known = dict(zip(turns["question_id"], turns["dialogue_id"], strict=True))
    return [("dialogue", known[question]) if question in known else ("question", question) for question in questions]


def in_common(values: Mapping[str, Mapping[str, float]]) -> set[str] | None:
    """The questions that each system has a value on; None where all have theirs on the same questions.

    Args:
        values: By system, then by question; a system without any value is left out of the account.
    """
    populations = [set(own) for own in values.values() if own]
    if not populations or all(population == populations[0] for population in populations):
        return None
    return set.intersection(*populations)
