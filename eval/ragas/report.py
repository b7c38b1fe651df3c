"""RAGAS scores in frames and reports: a column a metric, and beside each mean how many rows have no score, and why."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence

import pandas as pd

from ..datasets.questions import EvalQuestion
from ..runs.store import RunRow
from .metrics import RAGAS_METRICS, MetricName, RagasMetric
from .scores import RagasScore, RowKey, row_key

CurrentScores = Mapping[MetricName, Mapping[RowKey, RagasScore]]
"""As from ``scores.current_scores``."""

NOT_SCORED = "not scored yet"
SCORING_FAILED = "scoring failed"

_HEAD = ("system", "metric", "mean", "n", "missing", "scored by")


def ragas_columns(row: RunRow, question: EvalQuestion, scores: CurrentScores) -> dict[str, float | str | None]:
    """Three columns for each metric of ``scores``, in the registry's order.

    ``ragas_<metric>`` is the score, None where there is none; ``ragas_<metric>_missing`` says why there is none, else
    ``""``; ``ragas_<metric>_by`` says which model and which version of RAGAS scored.
    """
    columns: dict[str, float | str | None] = {}
    for name, metric in RAGAS_METRICS.items():
        if name in scores:
            score = scores[name].get(row_key(row))
            scorer = next(iter(scores[name].values())).scorer
            name_of_column = ragas_column(metric)
            columns[name_of_column] = score.value if score is not None else None
            columns[f"{name_of_column}_missing"] = _missing(metric, row, question, score)
            columns[f"{name_of_column}_by"] = f"{scorer.model}, ragas {scorer.ragas}"
    return columns


def ragas_column(metric: RagasMetric) -> str:
    """The column of a metric's scores."""
    return f"ragas_{metric.name}"


def ragas_shares() -> frozenset[str]:
    """The columns whose scores lie in [0, 1]."""
    return frozenset(ragas_column(metric) for metric in RAGAS_METRICS.values() if metric.lowest == 0)


def ragas_columns_in(frame: pd.DataFrame) -> list[str]:
    """The columns of scores that a frame has, in the registry's order."""
    return [column for metric in RAGAS_METRICS.values() if (column := ragas_column(metric)) in frame]


def missing_counts(frame: pd.DataFrame) -> dict[str, dict[str, dict[str, int]]]:
    """By system and column of scores: how many rows have none, by reason, the most frequent first."""
    counts: dict[str, dict[str, dict[str, int]]] = {}
    for system, part in frame.groupby("system", sort=False):
        for column in ragas_columns_in(frame):
            reasons = Counter(str(text).partition(":")[0] for text in part[f"{column}_missing"] if text)
            counts.setdefault(str(system), {})[column] = dict(reasons.most_common())
    return counts


def ragas_lines(frame: pd.DataFrame, means: pd.DataFrame) -> list[str]:
    """A Markdown table of a frame's RAGAS scores, empty where it has none.

    Args:
        frame: As from ``frames.question_frame``.
        means: As from ``frames.system_frame``; a system without any score of a metric has no row there.
    """
    columns = ragas_columns_in(frame)
    if not columns:
        return []
    lines = ["", "## RAGAS", "", _line(_HEAD), _line(["---"] * len(_HEAD))]
    by_place = means.set_index(["system", "metric"])
    for system, by_column in missing_counts(frame).items():
        for column in columns:
            mean, n = "", 0
            if (system, column) in by_place.index:
                found = by_place.loc[(system, column)]
                mean, n = _shown(found), int(found["n"])
            missing = ", ".join(f"{count} {reason}" for reason, count in by_column[column].items())
            by = str(frame[f"{column}_by"].iloc[0])
            lines.append(_line([system, column.removeprefix("ragas_"), mean, str(n), missing, by]))
    return [
        *lines,
        "",
        "Means over the n questions that have a score; rows without one are left out, never counted as 0. In brackets "
        "95 % intervals.",
    ]


def _shown(found: pd.Series) -> str:
    if pd.isna(found["low"]):  # one question has no interval
        return f"{found['mean']:.3f}"
    return f"{found['mean']:.3f} ({found['low']:.3f} to {found['high']:.3f})"


def _missing(metric: RagasMetric, row: RunRow, question: EvalQuestion, score: RagasScore | None) -> str:
    if score is None:
        return metric.why_not(row, question) or NOT_SCORED
    return f"{SCORING_FAILED}: {score.problem}" if score.value is None else ""


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(cells)} |"
