"""The means of a run by kind of question: by type, by hops, and by whether recursion fired."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

import pandas as pd

from ..metrics.statistics import mean_interval

JUDGE = "judge"
FIRED, QUIET = "fired", "did not fire"


def recursion_fired(frame: pd.DataFrame) -> pd.Series | None:
    """For each row whether recursion fired on its question: whether the judge's tree has a sub-run, in any repeat.

    It is asked of the question, not of the row, so that every system is measured on the same questions. Missing where
    the judge was not asked the question; None where it was asked none.

    Args:
        frame: As from ``frames.question_frame``.
    """
    if "sub_runs" not in frame or JUDGE not in set(frame["system"]):
        return None
    fired = frame[frame["system"] == JUDGE].groupby("question_id")["sub_runs"].max() > 0
    return frame["question_id"].map(fired.map({True: FIRED, False: QUIET}))


def split_frame(frame: pd.DataFrame, metrics: Sequence[str], *, seed: int = 0) -> pd.DataFrame:
    """A row for each split, part, system and metric: mean over questions, 95 % bootstrap interval, n of questions.

    Columns: ``split`` ("type", "hops", "recursion"), ``part`` (text), ``system``, ``metric``, ``mean``, ``low``,
    ``high``, ``n``. A split of which the data set knows one part or none is left out, and so are questions of which the
    part is not known.

    Args:
        frame: As from ``frames.question_frame``; repeats of a question count as their mean.
        metrics: Columns of it.
        seed: Of the bootstrap.
    """
    records = [
        {"split": split, "part": part, "system": system, "metric": metric, **asdict(mean_interval(values, seed=seed))}
        for split, parts in _splits(frame)
        for part, rows in frame.groupby(parts, sort=True)
        for system, own in rows.groupby("system", sort=False)
        for metric in metrics
        if (values := _by_question(own, metric))
    ]
    return pd.DataFrame.from_records(records, columns=["split", "part", "system", "metric", "mean", "low", "high", "n"])


def _splits(frame: pd.DataFrame) -> Iterator[tuple[str, pd.Series]]:
    types = frame["type"].where(frame["type"] != "")
    hops = frame["hops"].map(lambda hops: f"{int(hops)}", na_action="ignore")
    for split, parts in (("type", types), ("hops", hops), ("recursion", recursion_fired(frame))):
        if parts is not None and parts.nunique() > 1:
            yield split, parts


def _by_question(rows: pd.DataFrame, metric: str) -> list[float]:
    means = rows.groupby("question_id", sort=False)[metric].mean().dropna()
    return [float(value) for value in means]
