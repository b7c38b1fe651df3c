"""The estimate of a batch run as a table with remarks."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING

from ...graphs.drawing.words import count_of
from ...modules.calls.prices import dollars
from .terminal import Cell, say, write_rows

if TYPE_CHECKING:
    from ...evaluation.runs.pilot import Expected, RunEstimate, SystemEstimate

_HEAD = ("system", "answered", "left", "calls", "tokens", "cost", "time")


def write_estimate(estimate: RunEstimate, out: Path) -> None:
    """Write the table to standard output and the remarks to standard error; ``out`` is the run directory."""
    write_rows(_table(estimate))
    for remark in _remarks(estimate, out):
        say(remark)


def _table(estimate: RunEstimate) -> list[list[Cell]]:
    lines = [*estimate.systems, estimate.total] if len(estimate.systems) > 1 else estimate.systems
    return [[(name, "bold") for name in _HEAD], *([(cell, "") for cell in _cells(line)] for line in lines)]


def _cells(system: SystemEstimate) -> tuple[str, ...]:
    return (
        system.system,
        f"{system.answered:,}",
        f"{system.left:,}",
        _with_interval(system.calls, "{:,.0f}".format),
        _with_interval(system.tokens, "{:,.0f}".format),
        _cost(system),
        _with_interval(system.seconds, _duration),
    )


def _cost(system: SystemEstimate) -> str:
    if system.is_whole:
        return _with_interval(system.known_usd, dollars)
    return f"at least {dollars(system.known_usd.value)}" if system.known_usd.value else "unknown"


def _with_interval(expected: Expected, shown: Callable[[float], str]) -> str:
    if expected.low is None or expected.high is None:
        return shown(expected.value)
    return f"{shown(expected.value)} ({shown(expected.low)} to {shown(expected.high)})"


def _duration(seconds: float) -> str:
    """Format seconds: "40 s", "12 min", "3.5 h"."""
    if seconds < 100:
        return f"{seconds:.0f} s" if seconds >= 10 else f"{seconds:.1f} s"
    return f"{seconds / 60:.0f} min" if seconds < 100 * 60 else f"{seconds / 3600:.1f} h"


def _remarks(estimate: RunEstimate, out: Path) -> list[str]:
    asked = f"The pilot asked {count_of(estimate.pilot_asked, 'question')}, systems counted apart, and "
    remarks = [
        "For the questions that are left, as if none of their calls were kept; in brackets 95 % intervals.",
        f"{asked}cost {estimate.pilot_cost}; its rows are in {out}, and the run continues from there.",
    ]
    if estimate.rate_limit_s > estimate.total.seconds.value:
        remarks.append(f"The limits a minute make it at least {_duration(estimate.rate_limit_s)} in all.")
    if estimate.cached_share:
        share = f"{estimate.cached_share:.0%} of the calls it rests on came from the model cache"
        remarks.append(f"{share}: calls and money count them as to be paid, the time does not.")
    return remarks
