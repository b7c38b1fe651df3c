"""Scores of metrics of one's own in frames and reports: a column for each metric, and what scored it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

import pandas as pd

from ..rows.store import RunRow
from ..scoring.own_metric import MetricScore, MetricScorer
from ..scoring.scores import current_scores, row_key
from ..tables.table import Cell, Section, Table, estimate_cell

PREFIX = "score_"
LOWER_IS_BETTER = "lower is better"
"""Ends what scored the scores of a metric whose lower values are better."""
_BY = "_by"
_MISSING = "_missing"
_FAILED = "scoring failed"
_MOST_FAILED = 0.5
"""Share of the rows on which a metric may fail and still be compared."""
_HEAD = ("system", "metric", "mean", "n", "missing", "range", "scored by")


class OwnScores:
    """The newest scores of a run by metrics of one's own."""

    def __init__(self, scores: Iterable[MetricScore]) -> None:
        self._current = current_scores(scores)
        self._short = _short_names(list(self._current))

    def columns(self, row: RunRow) -> dict[str, float | str | None]:
        """Build three columns for each metric: ``score_<name>``, why it is missing, and what scored it.

        The name is that of the function or plug-in, or the whole import path where two metrics are named alike.
        """
        columns: dict[str, float | str | None] = {}
        for metric, scores in self._current.items():
            column, scorer = f"{PREFIX}{self._short[metric]}", next(iter(scores.values())).scorer
            score = scores.get(row_key(row))
            columns[column] = None if score is None else score.value
            columns[f"{column}{_MISSING}"] = _why(score)
            columns[f"{column}{_BY}"] = _words(scorer)
        return columns


def own_columns_in(frame: pd.DataFrame) -> list[str]:
    """Return the score columns of a frame, in the order in which the metrics were first used."""
    return [name for name in map(str, frame.columns) if name.startswith(PREFIX) and not name.endswith((_BY, _MISSING))]


def compared_columns_in(frame: pd.DataFrame) -> list[str]:
    """Return the score columns by which systems are compared: those whose metric did not fail on most rows."""
    return [name for name in own_columns_in(frame) if not _failed_share(frame, name) > _MOST_FAILED]


def _failed_share(frame: pd.DataFrame, column: str) -> float:
    return float(frame[f"{column}{_MISSING}"].str.startswith(_FAILED).mean())


def scored_by(frame: pd.DataFrame, column: str) -> str:
    """Say what gave the scores of a column: range, metric, version, source and model."""
    return str(frame[f"{column}{_BY}"].iloc[0])


def own_section(frame: pd.DataFrame, means: pd.DataFrame) -> Section | None:
    """Return the section on a frame's scores by metrics of one's own; None without any.

    ``frame`` is a ``frames.question_frame``, ``means`` its ``frames.system_frame``.
    """
    columns = own_columns_in(frame)
    if not columns:
        return None
    rows: list[list[Cell | str]] = []
    for system, part in frame.groupby("system", sort=False):
        for column in columns:
            reasons = part[f"{column}{_MISSING}"].map(lambda text: text.partition(":")[0]).value_counts()
            missing = ", ".join(f"{count} {reason}" for reason, count in reasons.items() if reason)
            bounds, _, by = scored_by(part, column).partition("; ")
            own = means[(means["system"] == system) & (means["metric"] == column)]
            shown: list[Cell | str] = ["", "0"]
            if not own.empty:
                mean, low, high, n = own.iloc[0][["mean", "low", "high", "n"]]
                shown = [estimate_cell(mean, low, high, "{:.3f}".format), str(int(n))]
            rows.append([str(system), column.removeprefix(PREFIX), *shown, missing, bounds, by])
    explained = (
        "Means over the n questions that have a score, with 95 % intervals; higher is better unless the metric says "
        "otherwise. A failed question has the worst score of the range; rows for which a metric has no score are left "
        "out."
    )
    left = ", ".join(each.removeprefix(PREFIX) for each in columns if each not in compared_columns_in(frame))
    remarks = (f"**{left} failed on most rows, so that systems are not compared by it.**",) if left else ()
    return Section(title="Own metrics", blocks=(Table.of(_HEAD, rows, texts=2), *remarks, explained))


def _short_names(metrics: list[str]) -> Mapping[str, str]:
    shorts = [metric.rpartition(":")[2] for metric in metrics]
    return {
        metric: short if shorts.count(short) == 1 else metric for metric, short in zip(metrics, shorts, strict=True)
    }


def _why(score: MetricScore | None) -> str:
    if score is None:
        return "not scored yet"
    if score.problem:
        return f"{_FAILED}: {score.problem}"
    return "no score" if score.value is None else ""


def _words(scorer: MetricScorer) -> str:
    known = (
        scorer.metric,
        scorer.version,
        f"source {scorer.source}" if scorer.source else "",
        f"{scorer.model} at {scorer.endpoint}" if scorer.model else "",
        "" if scorer.higher_is_better else LOWER_IS_BETTER,
    )
    return f"{scorer.lowest:g} to {scorer.highest:g}; {', '.join(filter(None, known))}"
