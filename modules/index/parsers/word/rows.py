"""Rows of the tables of a Word document as lines."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from dataclasses import dataclass

MOST_REPEATED = 200
"""Most characters of a cell that is repeated in the columns and rows that it spans."""
_MOST_CHARACTERS = 1_000
"""Most characters of a row of a table; one with more is a layout."""


@dataclass(frozen=True, kw_only=True)
class WordCell:
    """A cell of a row."""

    start: int
    """Number of its first column."""
    end: int
    text: str
    own: str
    """Its text unless that of another cell reaches over it."""
    is_nested: bool
    """True if it holds a table."""


def row_text(cells: Sequence[WordCell], starts: Sequence[int]) -> str:
    """Return a row of a table as a line; a short cell is repeated in the columns that it spans.

    A row of a layout, with a table in a cell or with long ones, is a block for each cell.

    Args:
        cells: Its cells.
        starts: The columns in which cells of the table begin, sorted; others have no width.
    """
    if not any(cell.text.strip() for cell in cells):
        return ""
    own = [cell.own for cell in cells if cell.own.strip()]
    if any(cell.is_nested for cell in cells) or sum(map(len, own)) > _MOST_CHARACTERS:
        return "\n".join(own)
    texts: list[str] = []
    for cell in cells:
        texts += [""] * (bisect_left(starts, cell.start) - len(texts))
        text = cell.text.replace("\n", " ") if len(cells) > 1 else cell.text
        count = bisect_left(starts, cell.end) - len(texts)
        texts += [text, *[text if len(text) <= MOST_REPEATED else ""] * (count - 1)]
    return " | ".join(texts)
