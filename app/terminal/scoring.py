"""The progress and the outcome of scoring a run, in the terminal."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from .exit_status import FAILED
from .terminal import counting_bar, progress_bar, resumable, write_json, write_result

if TYPE_CHECKING:
    from ...evaluation.scoring.run_scorer import ScoringProgress, ScoringSummary


@contextmanager
def watched_scoring(
    folder: Path,
) -> Iterator[tuple[Callable[[int, int, str], None], Callable[[ScoringProgress], None]]]:
    """Give callbacks for the preparations and the samples; on Ctrl-C say what is kept."""
    with (
        resumable(lambda: f"Scores so far are kept in {folder}"),
        progress_bar() as on_setup,
        counting_bar("samples") as show,
    ):

        def on_progress(progress: ScoringProgress) -> None:
            show(progress.done, progress.total, f"{progress.failed} in vain" if progress.failed else "")

        yield on_setup, on_progress


def write_scoring(summary: ScoringSummary, folder: Path, *, as_json: bool) -> None:
    """Write a summary, and exit with 1 if a sample failed."""
    if as_json:
        counts = {name: value for name, value in asdict(summary).items() if name != "cost"}
        write_json({"run": str(folder), **counts, **summary.cost.to_document()})
    else:
        write_result(_text(summary, folder))
    if summary.failed:
        raise typer.Exit(FAILED)


def _text(summary: ScoringSummary, folder: Path) -> str:
    lines = [
        f"{summary.scored} scored, {summary.failed} of them in vain, {summary.kept} kept from before, "
        f"{summary.not_applicable} do not apply: {folder}",
    ]
    if summary.calls or summary.cached_calls:
        paid = f"{summary.calls} calls paid ({summary.cost}), {summary.cached_calls} from the cache"
        lines.append(f"{paid}, {summary.tokens} tokens")
    if summary.stopped_by:
        lines.append(f"Stopped at {summary.stopped_by}; the same command with a higher limit scores the rest.")
    if summary.failed:
        lines.append(f"The first that failed: {summary.failure}")
        lines.append("`--retry-failed` tries those again; the report's results.csv says why each was in vain.")
    lines.append(f"Next: judgetree eval report {folder}")
    return "\n".join(lines)
