"""Tables of a report by kind of question and by cause of wrong answers."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence

import pandas as pd

from ..tables.table import Cell
from .failures import FAILURE_KINDS, FAILURE_WORDS, FailureKind
from .system_table import mean_cell

Column = tuple[str, str]
"""A system and a metric."""


def split_columns(rows: pd.DataFrame) -> list[Column]:
    """Return the systems and metrics of one split of ``means.split_frame``, in order."""
    return list(dict.fromkeys(zip(rows["system"], rows["metric"], strict=True)))


def split_rows(
    rows: pd.DataFrame, columns: Sequence[Column], marks_of: Callable[[str, str, str], str] | None = None
) -> Iterator[tuple[Cell, ...]]:
    """Yield a row for each part of a split: its name, the number of questions, and the mean of each column.

    Args:
        rows: The rows of one split of ``means.split_frame``.
        columns: Some of its ``split_columns``.
        marks_of: Returns the marks behind a mean by part, system and metric.
    """
    by_place = rows.set_index(["part", "system", "metric"])
    for part in dict.fromkeys(rows["part"]):
        n = int(rows[rows["part"] == part]["n"].max())
        means = (
            mean_cell(metric, by_place.loc[part, system, metric], n, marks_of(part, system, metric) if marks_of else "")
            if (part, system, metric) in by_place.index
            else Cell(text="")
            for system, metric in columns
        )
        yield (Cell(text=part), Cell(text=f"{n:,}"), *means)


def failure_rows(
    failures: pd.DataFrame, systems: Sequence[str], href_of: Callable[[FailureKind, str], str] | None = None
) -> Iterator[tuple[Cell, ...]]:
    """Yield a row for each cause that occurs: its name, and its number of wrong answers by each system.

    Args:
        failures: The result of ``frames.failure_frame``.
        systems: Its systems.
        href_of: Returns the address of the questions behind a number; with it, each cause is explained.
    """
    counts: Mapping[tuple[str, str], int] = failures.set_index(["kind", "system"])["answers"].to_dict()
    for kind in FAILURE_KINDS:
        if any((kind, system) in counts for system in systems):
            name, explained = FAILURE_WORDS[kind]
            cells = []
            for system in systems:
                count = counts.get((kind, system), 0)
                cells.append(Cell(text=f"{count:,}", href=href_of(kind, system) if href_of and count else ""))
            yield (Cell(text=name, note=explained if href_of else ""), *cells)
