"""Lines of Markdown tables."""

from __future__ import annotations

from collections.abc import Sequence


def table_head(cells: Sequence[str]) -> tuple[str, str]:
    """Return the first two lines of a table: the headings, and the rule below them."""
    return table_line(cells), table_line(["---"] * len(cells))


def table_line(cells: Sequence[str]) -> str:
    """Return a line of a table.

    >>> table_line(["naive", "0.41"])
    '| naive | 0.41 |'
    """
    return f"| {' | '.join(cells)} |"
