"""Rows of tables on a page, each as a line with all its cells."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Iterator, Sequence
from itertools import groupby

from .pdf_lines import Line, joined_lines
from .pdf_rows import Row, Span, divided


def row_text(rows: Sequence[Row], gutters: Sequence[Span]) -> str:
    """Return the rows of lines of one row of a table, cell by cell, also empty ones before the last."""
    columns = zip(*(divided(row, gutters) for row in rows), strict=True)
    cells = [
        joined_lines((" ".join(each.text for each in line), False) for line in column).replace("\n", " ")
        for column in columns
    ]
    return " | ".join(cells).rstrip(" |") if any(cells[1:]) else cells[0]


def ruled_lines(rows: Sequence[Row], gutters: Sequence[Span], heights: Sequence[float]) -> Iterator[Line]:
    """Yield a line for the rows between each two of the rules of a table, whose heights are sorted from below."""
    for _, between in groupby(rows, key=lambda row: bisect_left(heights, row.base)):
        yield row_text(list(between), gutters), False
