"""Rows of a benchmark, and their table."""

from __future__ import annotations

from collections.abc import Iterable

from pydantic import ConfigDict
from pydantic.dataclasses import dataclass

MARKS = {True: "yes", False: "**no**", None: ""}
"""How a table says whether a requirement is met."""
NOT_MEASURED = "not measured: "
"""How the figure of a row begins that holds none."""


@dataclass(frozen=True, config=ConfigDict(extra="forbid"))
class Row:
    """A measured figure and its requirement, if there is one."""

    what: str
    """Name of the figure: the same in every run, so that runs can be compared, and without its neighbours clear."""
    measured: str
    """The figure as a reader sees it, with its unit."""
    required: str = ""
    holds: bool | None = None
    """Whether the requirement is met; None without one."""
    values: tuple[float, ...] = ()
    """The number in ``measured`` that a plot of several runs shows, then those behind it; empty where none is."""
    unit: str = ""
    """Unit of ``values``; "" for shares and ratios."""
    interval: tuple[float, float] | None = None
    """Lower and upper end of the 95 % interval of the first value."""
    note: str = ""
    """What else was so in this run: sizes, counts, how often."""

    @property
    def figure(self) -> str:
        """The figure with its interval and its note."""
        interval = f", 95 % interval {self.interval[0]:.4g} to {self.interval[1]:.4g}" if self.interval else ""
        return f"{self.measured}{interval}{f' ({self.note})' if self.note else ''}"


def not_measured(what: str, why: str, required: str = "") -> Row:
    """Return the row of a figure that this machine cannot measure; no run keeps it."""
    return Row(what, f"{NOT_MEASURED}{why}", required)


def as_markdown(rows: Iterable[Row]) -> str:
    """Format the rows as a Markdown table."""
    lines = ["| what | measured | required | holds |", "|---|---|---|---|"]
    lines += [f"| {row.what} | {row.figure} | {row.required} | {MARKS[row.holds]} |" for row in rows]
    return "\n".join(lines)
