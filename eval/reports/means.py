"""Means over the questions of a frame: with intervals, over common questions, by kind of question, and their noise."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from dataclasses import asdict

import numpy as np
import pandas as pd

from ...graphs.config.variants import system_name
from ..metrics.intervals import MeanInterval, Scale, mean_interval
from ..metrics.statistics import noise_floor


def mean_of(rows: pd.DataFrame, metric: str, *, scale: Scale, seed: int = 0) -> MeanInterval | None:
    """Compute the mean of a column over questions with its 95 % interval; None without values.

    Repeats of a question count as one observation, their mean. The bootstrap draws whole dialogues
    (``metrics.intervals``).

    Args:
        rows: Rows of one system from ``frames.question_frame``.
        metric: One of its columns.
        scale: Whether the values are shares.
        seed: Seed of the bootstrap.
    """
    values = by_question(rows, metric)
    if not values:
        return None
    dialogues = groups_of(rows, list(values))
    return mean_interval(list(values.values()), scale=scale, clusters=dialogues, seed=seed)


def by_question(rows: pd.DataFrame, metric: str) -> dict[str, float]:
    """Average a column by question, in the order of the rows; missing values are left out."""
    means = pd.to_numeric(rows[metric]).groupby(rows["question_id"], sort=False).mean().dropna()
    return {str(question): float(value) for question, value in means.items()}


def worst_em(questions: pd.DataFrame) -> pd.DataFrame:
    """Return the EM of each question (row) by each system (column); of repeats the worst, missing where unknown.

    A question counts as right (1.0) if every repeat was. ``questions`` is a ``frames.question_frame``.
    """
    return questions.groupby(["question_id", "system"], sort=False)["em"].min().unstack()


def groups_of(rows: pd.DataFrame, questions: Sequence[str]) -> list[Hashable] | None:
    """Return the dialogue of each question, or its cluster, or itself if it stands alone; None if all stand alone."""
    if "dialogue_id" not in rows or not rows["dialogue_id"].notna().any():
        if "cluster" not in rows:
            return None
        clusters = dict(zip(rows["question_id"], rows["cluster"], strict=True))
        found: list[Hashable] = [("cluster", clusters[question]) for question in questions]
        return found if len({*found}) < len(found) else None
    turns = rows[rows["dialogue_id"].notna()]
    known = dict(zip(turns["question_id"], turns["dialogue_id"], strict=True))
    return [("dialogue", known[question]) if question in known else ("question", question) for question in questions]


def in_common(values: Mapping[str, Mapping[str, float]]) -> set[str] | None:
    """Return the questions that every system has a value on; None if all systems have the same questions.

    ``values`` are by system and question; a system without any value is ignored.
    """
    populations = [set(own) for own in values.values() if own]
    if not populations or all(population == populations[0] for population in populations):
        return None
    return set.intersection(*populations)


JUDGE = "judge"
FIRED, QUIET = "fired", "did not fire"


def recursion_fired(frame: pd.DataFrame) -> pd.Series | None:
    """Mark each row by whether recursion fired on its question: a tree of a judge has a sub-run in some repeat.

    The mark belongs to the question, so every system is measured on the same questions. Missing if the judge was not
    asked the question; None if the run has no judge. ``frame`` is a ``frames.question_frame``.
    """
    judged = frame[frame["system"].map(system_name) == JUDGE]
    if "sub_runs" not in frame or judged.empty:
        return None
    fired = judged.groupby("question_id")["sub_runs"].max() > 0
    return frame["question_id"].map(fired.map({True: FIRED, False: QUIET}))


def split_frame(frame: pd.DataFrame, metrics: Sequence[str], *, seed: int = 0) -> pd.DataFrame:
    """Compute a row for each split, part, system and metric: mean over questions, 95 % interval, number of questions.

    Means are over the questions that every system has a score on, so the systems of a part are comparable.

    Columns: ``split`` ("type", "hops", "recursion"), ``part`` (text), ``system``, ``metric``, ``mean``, ``low``,
    ``high``, ``n``. Splits with fewer than two parts are left out, and so are questions with an unknown part.

    Args:
        frame: The result of ``frames.question_frame``; repeats of a question count as their mean.
        metrics: Columns of the frame with values in [0, 1].
        seed: Seed of the bootstrap.
    """
    records = [
        {"split": split, "part": part, "system": system, "metric": metric, **asdict(interval)}
        for split, parts in splits_of(frame)
        for part, rows in frame.groupby(parts, sort=True)
        for metric in metrics
        for system, own in _shared(rows, metric).groupby("system", sort=False)
        if (interval := mean_of(own, metric, scale="share", seed=seed))
    ]
    return pd.DataFrame.from_records(records, columns=["split", "part", "system", "metric", "mean", "low", "high", "n"])


def splits_of(frame: pd.DataFrame) -> Iterator[tuple[str, pd.Series]]:
    """Yield each split with two parts or more, and the part of each row of a ``frames.question_frame``."""
    types = frame["type"].where(frame["type"] != "")
    hops = frame["hops"].map(lambda hops: f"{int(hops)}", na_action="ignore")
    for split, parts in (("type", types), ("hops", hops), ("recursion", recursion_fired(frame))):
        if parts is not None and parts.nunique() > 1:
            yield split, parts


def _shared(rows: pd.DataFrame, metric: str) -> pd.DataFrame:
    values = {str(system): by_question(own, metric) for system, own in rows.groupby("system", sort=False)}
    common = in_common(values)
    return rows if common is None else rows[rows["question_id"].isin(common)]


NOISE_METRICS = ("em", "f1")
_COLUMNS = ["system", "metric", "repeats", "sd_of_means", "flipped_share", "n"]


def noise_frame(questions: pd.DataFrame) -> pd.DataFrame:
    """Compute a row for each system and metric with several repeats; see ``metrics.statistics.NoiseFloor``.

    Questions of the ``frames.question_frame`` without a score in some repeat are left out.
    """
    records = []
    for system, part in questions.groupby("system", sort=False):
        for metric in NOISE_METRICS:
            runs = part.pivot(index="question_id", columns="repeat", values=metric).dropna()
            if len(runs) and runs.shape[1] > 1:
                floor = asdict(noise_floor(np.stack([runs[repeat].astype(np.float64) for repeat in runs])))
                records.append({"system": system, "metric": metric, "repeats": len(floor.pop("means")), **floor})
    return pd.DataFrame.from_records(records, columns=_COLUMNS)


def noise_remarks(noise: pd.DataFrame) -> Iterator[str]:
    """Yield a sentence for each row of ``noise_frame``, in points (score × 100)."""
    for row in noise.itertuples():
        chance = " A difference of that size comes by chance." if row.sd_of_means else ""
        yield (
            f"Noise of {row.system}, {row.metric}: the means of {row.repeats} repeats have a standard deviation of "
            f"{100 * row.sd_of_means:.1f} points, and {row.flipped_share:.1%} of {row.n} questions did not score the "
            f"same each time.{chance}"
        )
