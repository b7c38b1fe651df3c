"""A run with its report, scored once for the doors that need the whole."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from ....modules.settings import Settings
from .folder import FoundRun, RunsFolder

if TYPE_CHECKING:
    from ....evaluation.reports.loaded_run import LoadedRun
    from ....evaluation.reports.report import Report

_KEPT = 2
"""Runs whose rows and scores stay in memory."""


@dataclass(frozen=True, kw_only=True)
class ScoredRun:
    """A run, its rows and its report."""

    run: LoadedRun
    report: Report


async def scored(runs: RunsFolder, name: str) -> ScoredRun:
    """Return a run with its report.

    Raises:
        ApiError: There is no such run, or it cannot be read.
    """
    return await runs.made_of(runs.find(name), _score, keep=_KEPT)


async def drawn(runs: RunsFolder, name: str) -> str:
    """Return the page of a run, as ``judgetree eval report`` writes it.

    Raises:
        ApiError: There is no such run, or it cannot be read.
    """
    return await runs.made_of(runs.find(name), _draw, keep=_KEPT)


def _score(found: FoundRun, settings: Settings) -> ScoredRun:
    from ....evaluation.reports.loaded_run import load_run
    from ....evaluation.reports.report import report_of

    run = load_run(found.path, settings)
    return ScoredRun(run=run, report=report_of(run))


def _draw(found: FoundRun, settings: Settings) -> str:
    from ....evaluation.reports.page import draw_report

    scored = _score(found, settings)
    return draw_report(scored.run, scored.report)
