"""The tables of a run for a paper: cells with intervals and significance marks, and captions that explain them."""

from __future__ import annotations

import itertools
import math
import string
from collections.abc import Iterator, Sequence
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TypeVar

import pandas as pd

from ..reports.compare import Comparison
from ..reports.contenders import ALL_PAIRS, baseline_of
from ..reports.failures import incomplete_words
from ..reports.frames import COST_METRICS, is_share
from ..reports.kind_tables import failure_rows, split_columns, split_rows
from ..reports.own_scores import PREFIX
from ..reports.plots import SPLIT_WORDS
from ..reports.report import SHOWN_COSTS, Report
from ..reports.system_table import mean_cell, metric_name
from ..reports.verdicts import comparison_table, families_of
from ..tables.table import Cell, Table

T = TypeVar("T")

_MOST_COLUMNS = 6
"""Metrics in one table: what fits into the width of a column of text."""
_FEWEST_COLUMNS = 2


def paper_tables(report: Report) -> list[Table]:
    """Build the tables of a report: answers, cost, other scores, comparisons, each split, failure kinds; no empty one.

    Computes the report's comparisons, which takes seconds.
    """
    marks = _Marks(report)
    tables = [
        *_means(report, marks),
        *_comparisons(report),
        *_splits(report, marks),
        *_failures(report.failures, marks.systems),
    ]
    said = caution_words(report.cautions, report.questions, report.missing)
    return [replace(table, caption=f"{table.caption}{said}") for table in tables]


def caution_words(cautions: Sequence[str], questions: pd.DataFrame, missing: int) -> str:
    """Return what a caption says of every figure, behind a blank: ``cautions``, and answers that are not complete."""
    return "".join(f" {each}" for each in (*cautions, *incomplete_words(questions, missing))).replace("`", "")


class _Marks:
    """What marks a system as different: ``*`` from the baseline, or the letters of the others where all pairs meet."""

    def __init__(self, report: Report) -> None:
        self.systems = list(dict.fromkeys(str(system) for system in report.questions["system"]))
        self.baseline = baseline_of(self.systems, report.baseline)
        self.primary = report.primary
        self.letters = dict(zip(self.systems, _letters(), strict=False))
        self.compared = {each.paired.metric for each in report.comparisons}
        self._shown: dict[tuple[str, str, str, str], list[str]] = {}
        for each in (*report.comparisons, *report.split_comparisons):
            if each.paired.is_shown:
                for own, other in ((each.a, each.b), (each.b, each.a)):
                    self._shown.setdefault((each.split, each.part, own, each.paired.metric), []).append(other)

    def of(self, system: str, metric: str) -> str:
        return self.of_part("", "", system, metric)

    def of_part(self, split: str, part: str, system: str, metric: str) -> str:
        others = self._shown.get((split, part, system, metric), [])
        if self.baseline == ALL_PAIRS:
            return ",".join(sorted(self.letters[other] for other in others))
        return "*" if others and system != self.baseline else ""

    def name_of(self, system: str) -> Cell:
        letter = self.letters[system] if self.baseline == ALL_PAIRS and len(self.systems) > 1 else ""
        return Cell(text=system, marks=letter)

    def explained(self, comparisons: Sequence[Comparison]) -> str:
        if not comparisons:
            return ""
        of_what = (
            "Letters behind a figure name the systems that it differs from"
            if self.baseline == ALL_PAIRS
            else f"* differs from {self.baseline}"
        )
        return (
            f" {of_what} (paired tests, p < .05 after Holm's correction, and an interval of the difference without 0). "
            f"{families_of(comparisons, self.primary)}"
        )


def _letters() -> Iterator[str]:
    for size in itertools.count(1):
        yield from map("".join, itertools.product(string.ascii_lowercase, repeat=size))


def _means(report: Report, marks: _Marks) -> Iterator[Table]:
    there = list(dict.fromkeys(str(metric) for metric in report.systems["metric"]))
    scores = [metric for metric in report.shown if is_share(metric) and metric in there]
    costs = [metric for metric in there if metric in {*SHOWN_COSTS, *report.shown} & {*COST_METRICS}]
    others = [metric for metric in there if metric not in report.shown and metric.startswith(("ragas_", PREFIX))]
    population = f"{_data(report)}: means over questions with 95 % intervals."
    for name, what, metrics in (("answers", "Answers", scores), ("cost", "Cost", costs), ("scores", "Scores", others)):
        for number, part in enumerate(groups_of_columns(metrics), start=1):
            unlike = [metric for metric in part if metric in set(report.common["metric"])]
            unit = " Scores in per cent." if name == "answers" else ""
            unit = f" A question, as if no call had come out of a cache{_but(part)}." if name == "cost" else unit
            explained = marks.explained(report.comparisons) if marks.compared & {*part} else ""
            yield Table.of(
                ("System", "n", *map(_heading, part)),
                _mean_rows(report, marks, part),
                name=name if number == 1 else f"{name}-{number}",
                caption=f"{what}. {population}{unit}{explained}{not_comparable(unlike)}",
            )


def _but(metrics: Sequence[str]) -> str:
    return ", but for calls paid" if "paid_llm_calls" in metrics else ""


def not_comparable(metrics: Sequence[str]) -> str:
    """Say in a caption which means are not comparable; ``""`` without any."""
    if not metrics:
        return ""
    named = ", ".join(map(_heading, metrics))
    return f" Not comparable, since over other questions for one system than for another: {named}."


def _mean_rows(report: Report, marks: _Marks, metrics: Sequence[str]) -> Iterator[tuple[Cell, ...]]:
    means = report.systems.set_index(["system", "metric"])
    asked = report.questions.groupby("system", sort=False)["question_id"].nunique()
    for system in marks.systems:
        cells = (
            mean_cell(metric, means.loc[system, metric], int(asked[system]), marks.of(system, metric))
            if (system, metric) in means.index
            else Cell(text="")
            for metric in metrics
        )
        yield (marks.name_of(system), Cell(text=f"{asked[system]:,}"), *cells)


def _comparisons(report: Report) -> Iterator[Table]:
    if not report.comparisons:
        return
    yield comparison_table(
        report.comparisons,
        name="comparisons",
        caption=f"{_data(report)}: paired differences of complete answers, A less B (shares in points), with 95 % "
        f"intervals. {families_of(report.comparisons, report.primary)} p values are Holm's; * marks differences that "
        "were shown.",
    )


def _splits(report: Report, marks: _Marks) -> Iterator[Table]:
    for split, rows in report.splits.groupby("split", sort=False):
        for number, part in enumerate(groups_of_columns(split_columns(rows)), start=1):
            yield Table.of(
                (SPLIT_WORDS[str(split)].capitalize(), "n", *(f"{s} {_heading(m)}" for s, m in part)),
                split_rows(rows, part, partial(marks.of_part, str(split))),
                name=f"split-{split}" if number == 1 else f"split-{split}-{number}",
                caption=f"{_data(report)}, by {SPLIT_WORDS[str(split)]}: means in per cent with 95 % intervals, every "
                f"system on the same n questions.{marks.explained(report.split_comparisons)}",
            )


def _failures(failures: pd.DataFrame, systems: Sequence[str]) -> Iterator[Table]:
    if rows := list(failure_rows(failures, systems)):
        caption = "Wrong answers (exact match 0) by the first cause that explains them."
        yield Table.of(("Cause", *systems), rows, name="failures", caption=caption)


def _data(report: Report) -> str:
    """Name the data set by its file, without the folder."""
    return Path(report.dataset.partition(":")[2]).stem or report.dataset


def groups_of_columns(columns: Sequence[T], *, beside: int = 0) -> Iterator[Sequence[T]]:
    """Yield the columns in groups of about equal size, each of which fits into a table ``beside`` further columns."""
    count = math.ceil(len(columns) / max(_FEWEST_COLUMNS, _MOST_COLUMNS - beside))
    for number in range(count):
        yield columns[number * len(columns) // count : (number + 1) * len(columns) // count]


def _heading(metric: str) -> str:
    if metric in ("em", "f1"):
        return metric.upper()
    return metric_name(metric).removeprefix("ragas_").removeprefix(PREFIX).replace("_", " ")
