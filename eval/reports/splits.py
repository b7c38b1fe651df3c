"""The means of a run by kind of question: by type, by hops, and by whether recursion fired."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import asdict

import pandas as pd

from .means import by_question, in_common, mean_of

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
    """A row for each split, part, system and metric: mean over questions, 95 % interval, n of questions.

    Means are over the questions that every system has a score on, so that the systems of a part can be compared.

    Columns: ``split`` ("type", "hops", "recursion"), ``part`` (text), ``system``, ``metric``, ``mean``, ``low``,
    ``high``, ``n``. A split of which the data set knows one part or none is left out, and so are questions of which the
    part is not known.

    Args:
        frame: As from ``frames.question_frame``; repeats of a question count as their mean.
        metrics: Columns of it, of values in [0, 1].
        seed: Of the bootstrap.
    """
    records = [
        {"split": split, "part": part, "system": system, "metric": metric, **asdict(interval)}
        for split, parts in _splits(frame)
        for part, rows in frame.groupby(parts, sort=True)
        for metric in metrics
        for system, own in _shared(rows, metric).groupby("system", sort=False)
        if (interval := mean_of(own, metric, scale="share", seed=seed))
    ]
    return pd.DataFrame.from_records(records, columns=["split", "part", "system", "metric", "mean", "low", "high", "n"])


def _splits(frame: pd.DataFrame) -> Iterator[tuple[str, pd.Series]]:
    types = frame["type"].where(frame["type"] != "")
    hops = frame["hops"].map(lambda hops: f"{int(hops)}", na_action="ignore")
    for split, parts in (("type", types), ("hops", hops), ("recursion", recursion_fired(frame))):
        if parts is not None and parts.nunique() > 1:
            yield split, parts


def _shared(rows: pd.DataFrame, metric: str) -> pd.DataFrame:
    values = {str(system): by_question(own, metric) for system, own in rows.groupby("system", sort=False)}
    common = in_common(values)
    return rows if common is None else rows[rows["question_id"].isin(common)]
