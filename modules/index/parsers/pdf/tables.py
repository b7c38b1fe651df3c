"""Rows of tables on a page, each as a line with all its cells."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise, takewhile

from .lines import Line, joined_lines
from .rows import PARAGRAPH, Row, Span, divided


def row_text(rows: Sequence[Row], gutters: Sequence[Span], *, from_right: bool) -> str:
    """Return the rows of lines of one row of a table, cell by cell, also empty ones before the last."""
    columns = zip(*(divided(row, gutters) for row in rows), strict=True)
    cells = [
        joined_lines(
            (row.text(line, backwards=from_right and bool(gutters)), False)
            for row, line in zip(rows, column, strict=True)
        ).replace("\n", " ")
        for column in columns
    ]
    if from_right:
        cells.reverse()
    return " | ".join(cells).rstrip(" |") if any(cells[1:]) else cells[0]


def ruled_lines(
    rows: Sequence[Row], gutters: Sequence[Span], heights: Sequence[float], *, from_right: bool
) -> Iterator[Line]:
    """Yield a line for the rows between each two of the rules of a table, whose heights are sorted from below.

    Above the first rule and below the last one, only rows that stand close to it are of the table.
    """
    for place, between in groupby(rows, key=lambda row: bisect_left(heights, row.base)):
        part = list(between)
        groups = [part]
        if place == 0:
            near = _near(part, heights[0])
            groups = [part[:near], *([row] for row in part[near:])]
        elif place == len(heights):
            far = len(part) - _near(part[::-1], heights[-1])
            groups = [*([row] for row in part[:far]), part[far:]]
        for group in filter(None, groups):
            yield row_text(group, gutters, from_right=from_right), False


def _near(rows: Sequence[Row], rule: float) -> int:
    """Return the number of rows, ordered away from a rule, that follow it without the distance of a paragraph."""
    edges = [rule, *(row.base for row in rows)]
    steps = zip(pairwise(edges), rows, strict=True)
    return sum(1 for _ in takewhile(lambda step: abs(step[0][0] - step[0][1]) < PARAGRAPH * step[1].size, steps))
