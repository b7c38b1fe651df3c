"""Tables and sections in plain values: every format escapes and lays out the same cells."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Self

import pandas as pd


@dataclass(frozen=True, kw_only=True)
class Cell:
    """A text or number, the interval around it, and what marks it.

    >>> print(Cell(text="91.3", bounds=("88.0", "94.1"), note="n 64"))
    91.3 (88.0 to 94.1; n 64)
    """

    text: str
    bounds: tuple[str, str] | None = None
    """Lower and upper end of the interval."""
    note: str = ""
    """A remark behind the interval, such as "n 64"."""
    marks: str = ""
    """Marks of significance, set as a superscript: in LaTeX alone."""
    is_bold: bool = False
    """Whether the text is bold: in HTML alone."""
    href: str = ""
    """Address that the text links to: in HTML alone."""

    @property
    def around(self) -> str:
        """The interval and the note, such as "88.0 to 94.1; n 64"; ``""`` without either."""
        return "; ".join(filter(None, (" to ".join(self.bounds or ()), self.note)))

    def __str__(self) -> str:
        return f"{self.text} ({self.around})" if self.around else self.text


def estimate_cell(
    value: float,
    low: float | None,
    high: float | None,
    show: Callable[[float], str],
    *,
    note: str = "",
    marks: str = "",
    is_bold: bool = False,
) -> Cell:
    """Return the cell of a mean or another estimate; bounds that are None or NaN are left out.

    >>> print(estimate_cell(0.5, None, None, "{:.2f}".format), estimate_cell(0.5, 0.25, 1, "{:.2f}".format))
    0.50 0.50 (0.25 to 1.00)
    """
    has_bounds = not (low is None or high is None or pd.isna(low) or pd.isna(high))
    bounds = (show(low), show(high)) if has_bounds else None  # type: ignore[arg-type]
    return Cell(text=show(value), bounds=bounds, note=note, marks=marks, is_bold=is_bold)


@dataclass(frozen=True, kw_only=True)
class Table:
    """A table; ``Table.of`` makes one from texts and cells."""

    head: tuple[str, ...]
    rows: tuple[tuple[Cell, ...], ...]
    """Rows of as many cells as ``head`` has."""
    texts: int = 1
    """Number of columns at the left that hold text; the others hold numbers."""
    name: str = ""
    """Part of its label and file in a paper, such as "answers"."""
    caption: str = ""
    """Caption in a paper."""

    @classmethod
    def of(
        cls,
        head: Iterable[str],
        rows: Iterable[Iterable[Cell | str]],
        *,
        texts: int = 1,
        name: str = "",
        caption: str = "",
    ) -> Self:
        """Make a table from rows of cells; a text becomes a cell."""
        cells = tuple(tuple(Cell(text=each) if isinstance(each, str) else each for each in row) for row in rows)
        return cls(head=tuple(head), rows=cells, texts=texts, name=name, caption=caption)


Block = str | Table
"""A table, or a paragraph, list or code block in Markdown."""


@dataclass(frozen=True, kw_only=True)
class Section:
    """A part of a report, with a heading."""

    title: str
    blocks: tuple[Block, ...]
    is_folded: bool = False
    """Whether a page folds it away."""
