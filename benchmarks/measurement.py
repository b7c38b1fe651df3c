"""Rows of a benchmark, and their table."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass


@dataclass(frozen=True)
class Row:
    """A measured figure and its requirement, if there is one."""

    what: str
    measured: str
    required: str = ""
    holds: bool | None = None
    """Whether the requirement is met; None without one."""


def as_markdown(rows: Iterable[Row]) -> str:
    """Format the rows as a Markdown table."""
    marks = {True: "yes", False: "**no**", None: ""}
    lines = ["| what | measured | required | holds |", "|---|---|---|---|"]
    lines += [f"| {row.what} | {row.measured} | {row.required} | {marks[row.holds]} |" for row in rows]
    return "\n".join(lines)
