"""RAGAS scores in frames and reports: a column for each metric, and the reasons for missing scores."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping

import pandas as pd

from ..datasets.questions import EvalQuestion
from ..ragas.metrics import RAGAS_METRICS, WITH_SUB_ANSWERS, RagasMetric
from ..ragas.scores import RagasScore
from ..rows.store import RunRow
from ..scoring.scores import RowKey, row_key
from ..tables.table import Cell, Section, Table, estimate_cell

CurrentScores = Mapping[str, Mapping[RowKey, RagasScore]]
"""The result of ``scores.current_scores``."""

NOT_SCORED = "not scored yet"
SCORING_FAILED = "scoring failed"

_HEAD = ("system", "metric", "mean", "n", "over common rows", "n", "missing", "scored by")


def ragas_columns(row: RunRow, question: EvalQuestion, scores: CurrentScores) -> dict[str, float | str | None]:
    """Build three columns for each metric of ``scores``, in the registry's order.

    ``ragas_<metric>`` is the score or None; ``ragas_<metric>_missing`` the reason for a missing score, else ``""``;
    ``ragas_<metric>_by`` the model and the version of RAGAS.
    """
    columns: dict[str, float | str | None] = {}
    for name, metric in _variants():
        if name in scores:
            score = scores[name].get(row_key(row))
            scorer = next(iter(scores[name].values())).scorer
            columns[f"ragas_{name}"] = score.value if score is not None else None
            columns[f"ragas_{name}_missing"] = _missing(metric, row, question, score)
            scored_by = (f"{scorer.model} at {scorer.endpoint}", f"ragas {scorer.ragas}", scorer.options)
            columns[f"ragas_{name}_by"] = ", ".join(part for part in scored_by if part)
    return columns


def ragas_shares() -> frozenset[str]:
    """Return the columns with scores in [0, 1]."""
    return frozenset(f"ragas_{name}" for name, metric in _variants() if metric.lowest == 0)


def ragas_columns_in(frame: pd.DataFrame) -> list[str]:
    """Return the score columns of a frame, in the registry's order."""
    return [column for name, _ in _variants() if (column := f"ragas_{name}") in frame]


def missing_counts(frame: pd.DataFrame) -> dict[str, dict[str, dict[str, int]]]:
    """Count the rows without a score by system, column and reason, the most frequent reason first."""
    counts: dict[str, dict[str, dict[str, int]]] = {}
    for system, part in frame.groupby("system", sort=False):
        for column in ragas_columns_in(frame):
            reasons = Counter(str(text).partition(":")[0] for text in part[f"{column}_missing"] if text)
            counts.setdefault(str(system), {})[column] = dict(reasons.most_common())
    return counts


def ragas_section(frame: pd.DataFrame, means: pd.DataFrame, common: pd.DataFrame) -> Section | None:
    """Return the section on a frame's RAGAS scores; None without any.

    Args:
        frame: The result of ``frames.question_frame``.
        means: The result of ``frames.system_frame``; it has no row for a system without scores of a metric.
        common: The result of ``frames.common_frame``.
    """
    columns = ragas_columns_in(frame)
    if not columns:
        return None
    rows: list[list[Cell | str]] = []
    for system, by_column in missing_counts(frame).items():
        for column in columns:
            missing = ", ".join(f"{count} {reason}" for reason, count in by_column[column].items())
            by = str(frame[f"{column}_by"].iloc[0])
            own = _mean_and_n(means, system, column)
            shared = _mean_and_n(common, system, column) if column in set(common["metric"]) else own
            rows.append([system, column.removeprefix("ragas_"), *own, *shared, missing, by])
    explained = (
        "Means over the n questions that have a score, and over those on which every system with the metric has one, "
        "where systems can be compared; rows without a score are left out, never counted as 0. In brackets 95 % "
        "intervals. Contexts are the chunks of the whole tree, each once, or, with sub-answers, what the reader was "
        "shown. Strictness is the number of questions that answer_relevancy makes of an answer; RAGAS's own is 3."
    )
    return Section(title="RAGAS", blocks=(Table.of(_HEAD, rows, texts=2), explained))


def _mean_and_n(means: pd.DataFrame, system: str, column: str) -> tuple[Cell | str, str]:
    found = means[(means["system"] == system) & (means["metric"] == column)]
    if found.empty or pd.isna(found.iloc[0]["mean"]):
        return "", "0"
    mean, low, high, n = found.iloc[0][["mean", "low", "high", "n"]]
    return estimate_cell(mean, low, high, "{:.3f}".format), str(int(n))


def _variants() -> Iterator[tuple[str, RagasMetric]]:
    """Yield the possible names of scores, in the order of tables."""
    for metric in RAGAS_METRICS.values():
        yield metric.name, metric
        if metric.takes_contexts:
            yield f"{metric.name}{WITH_SUB_ANSWERS}", metric


def _missing(metric: RagasMetric, row: RunRow, question: EvalQuestion, score: RagasScore | None) -> str:
    if score is None:
        return metric.why_not(row, question) or NOT_SCORED
    return f"{SCORING_FAILED}: {score.problem}" if score.value is None else ""
