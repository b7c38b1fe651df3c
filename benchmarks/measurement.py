"""What a benchmark gives back, and how a table of it is written."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """One measured figure, and what it must reach where that was fixed beforehand."""

    what: str
    measured: str
    required: str = ""
    holds: bool | None = None
    """Whether the requirement is met; None where there is none."""


def as_markdown(rows: Iterable[Row]) -> str:
    """A Markdown table, a row a figure."""
    marks = {True: "yes", False: "**no**", None: ""}
    lines = ["| what | measured | required | holds |", "|---|---|---|---|"]
    lines += [f"| {row.what} | {row.measured} | {row.required} | {marks[row.holds]} |" for row in rows]
    return "\n".join(lines)
