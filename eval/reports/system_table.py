"""The table of systems: means with intervals and numbers of questions."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial

import pandas as pd

from ...modules.calls.prices import dollars
from ..metrics.dictionary import column_of
from ..tables.table import Block, Cell, Table, estimate_cell
from .failures import completeness_counts
from .frames import is_share


def system_table(questions: pd.DataFrame, systems: pd.DataFrame, metrics: Sequence[str]) -> Table:
    """Return a row for each system: questions, failed, degraded and refused answers, and the mean of each metric.

    A mean over fewer questions than were asked states their number, as in "81.2 (70.1 to 88.9; n 64)".

    Args:
        questions: The result of ``frames.question_frame``.
        systems: The result of ``frames.system_frame``.
        metrics: Metrics to show, in this order.
    """
    counts = completeness_counts(questions)
    rows: list[list[Cell | str]] = []
    for system, part in questions.groupby("system", sort=False):
        asked = part["question_id"].nunique()
        refused = int((part["status"] == "refused").sum())
        answers = [str(count) for count in (counts[str(system)]["failed"], counts[str(system)]["degraded"], refused)]
        means = _cells(systems, str(system), metrics, asked)
        rows.append([str(system), str(asked), *answers, *means])
    return Table.of(["system", "n", "failed", "degraded", "refused", *map(metric_name, metrics)], rows)


def count_remarks(questions: pd.DataFrame, missing: int) -> Iterator[str]:
    """Yield a note on the counts of repeated questions, and a warning about missing answers.

    ``questions`` is a ``frames.question_frame``, ``missing`` the number of answers that the run still lacks.
    """
    if missing:
        yield (
            f"**Warning: the run is not finished: {missing:,} of {missing + len(questions):,} answers are missing. "
            "Those that are there came first, and may be those of easier questions.**"
        )
    answers = questions["system"].value_counts(sort=False)
    if questions.duplicated(["system", "question_id"]).any():
        counts = ", ".join(f"{count:,} of {system}" for system, count in answers.items())
        yield f"Questions were repeated: failed, degraded and refused are counts of answers ({counts})."


def common_blocks(questions: pd.DataFrame, common: pd.DataFrame, metrics: Sequence[str]) -> Iterator[Block]:
    """Yield a warning and a second table if systems were measured on different questions; nothing otherwise.

    ``common`` is the ``frames.common_frame`` of ``questions``; ``metrics`` are those of the first table.
    """
    unlike = [metric for metric in metrics if metric in set(common["metric"])]
    asked = questions.groupby("system", sort=False)["question_id"].agg(set)
    if any(own != asked.iloc[0] for own in asked):
        counts = ", ".join(f"{system} {len(own):,}" for system, own in asked.items())
        shared = len(set.intersection(*asked))
        yield (
            f"**Warning: the systems were not asked the same questions ({counts}; {shared:,} in common), so that their "
            "means above cannot be compared.**"
        )
    if not unlike:
        return
    yield (
        "Some means above are over other questions for one system than for another. Over the questions on which every "
        "system that has the figure has it:"
    )
    yield Table.of(
        ["system", *map(metric_name, unlike)],
        ([str(system), *_cells(common, str(system), unlike, None)] for system in asked.index),
    )


def metric_name(metric: str) -> str:
    """Return the table heading of a metric."""
    column = column_of(metric)
    title = (column.title if column else "").replace("@k", f"@{metric.partition('@')[2]}")
    return title or metric


def _cells(means: pd.DataFrame, system: str, metrics: Sequence[str], asked: int | None) -> Iterator[Cell | str]:
    own = means[means["system"] == system].set_index("metric")
    for metric in metrics:
        yield mean_cell(metric, own.loc[metric], asked) if metric in own.index else ""


def mean_cell(metric: str, row: pd.Series, asked: int | None, marks: str = "") -> Cell:
    """Return the cell of a row of ``frames.system_frame``; a mean over another number than ``asked`` states it."""
    n = "" if row["n"] == asked else f"n {int(row['n']):,}"
    if pd.isna(row["mean"]):
        return Cell(text="unknown", note=n)
    return estimate_cell(row["mean"], row["low"], row["high"], partial(shown_value, metric), note=n, marks=marks)


def shown_value(metric: str, value: float) -> str:
    """Format a mean: a share in per cent, money in dollars, tokens as whole numbers."""
    if metric in ("cost_usd", "paid_cost_usd"):
        return dollars(value)
    if metric.endswith("_tokens"):
        return f"{value:,.0f}"
    return f"{value * 100:.1f}" if is_share(metric) else f"{value:.2f}"
