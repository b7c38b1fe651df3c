"""Sweeps in ``judgetree eval run`` and ``report``: an experiment file whose keys list values, and its folder."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING

import typer

from ....modules.errors import SettingsError, needs_extra
from ...terminal.exit_status import FAILED
from ...terminal.terminal import busy, counting_bar, progress_bar, resumable, say, write_json, write_result

if TYPE_CHECKING:
    from ....evaluation.runs.batch_run import RunOptions
    from ....evaluation.runs.pilot import RunEstimate
    from ....evaluation.runs.runner import Progress as RunProgress
    from ....evaluation.sweeps.grid import Point
    from ....evaluation.sweeps.run_sweep import SweepSummary, Watch


def is_sweep_file(config: Path | None, keys: Mapping[str, object]) -> bool:
    """Whether a key of the experiment file lists values that it takes one of."""
    if config is None and not any(isinstance(value, list) for value in keys.values()):
        return False
    from ....evaluation.sweeps.grid import is_sweep

    return is_sweep(config, **keys)


def is_sweep_folder(folder: Path) -> bool:
    """Whether a folder holds a sweep."""
    with busy(), needs_extra("eval"):
        from ....evaluation.rows.folder_kinds import is_sweep_folder as holds_sweep

    return holds_sweep(folder)


def sweep(
    config: Path | None,
    keys: Mapping[str, object],
    out: Path,
    options: RunOptions,
    *,
    dry_run: bool,
    pilot: int | None,
    as_json: bool,
) -> None:
    """Run every combination of a sweep, or estimate it."""
    with busy():
        from ....evaluation.sweeps.grid import load_sweep
        from ....evaluation.sweeps.run_sweep import run_sweep

    grid = load_sweep(config, **keys)
    with resumable(lambda: f"Finished questions are kept in {out}"), ExitStack() as bars:
        if dry_run:
            _estimate(config, keys, out, options, pilot=pilot, as_json=as_json, watch=_watch(bars))
            return
        summary = run_sweep(grid, out, options=options, watch=_watch(bars))
    failed = sum(run.failed for _, run in summary.runs)
    if as_json:
        write_json(_document(summary, out))
    else:
        write_result(_text(summary, out, len(grid.points)))
    if failed:
        raise typer.Exit(FAILED)


def _estimate(
    config: Path | None,
    keys: Mapping[str, object],
    out: Path,
    options: RunOptions,
    *,
    pilot: int | None,
    as_json: bool,
    watch: Watch,
) -> None:
    with needs_extra("eval"):
        from ....evaluation.runs.pilot import PILOT
        from ....evaluation.sweeps.grid import load_sweep
        from ....evaluation.sweeps.run_sweep import estimate_sweep

    estimates = estimate_sweep(
        load_sweep(config, **keys), out, pilot=PILOT if pilot is None else pilot, options=options, watch=watch
    )
    if as_json:
        combinations = [{"values": dict(point.values), **each.to_document()} for point, each in estimates]
        write_json({"out": str(out), "combinations": combinations, "calls": _calls(estimates)})
        return
    lines = [
        f"{point.label}: {each.total.calls.value:,.0f} calls, {each.total.tokens.value:,.0f} tokens for "
        f"{each.total.left:,} answers"
        for point, each in estimates
    ]
    paid = sum(each.pilot_asked for _, each in estimates)
    lines.append(f"In all {_calls(estimates):,.0f} calls for what is left, as if none of them were kept.")
    lines.append(f"The pilots asked {paid:,} questions; their rows are in {out}, and the sweep continues from there.")
    write_result("\n".join(lines))


def _calls(estimates: list[tuple[Point, RunEstimate]]) -> float:
    return sum(each.total.calls.value for _, each in estimates)


def _watch(bars: ExitStack) -> Watch:
    """Announce each combination, and show its progress in bars that end with it."""

    def watch(
        point: Point, place: int, count: int
    ) -> tuple[Callable[[int, int, str], None], Callable[[RunProgress], None]]:
        bars.close()
        say(f"[{place}/{count}] {point.label}")
        on_setup, show = bars.enter_context(progress_bar()), bars.enter_context(counting_bar("questions"))
        return on_setup, lambda progress: show(progress.done, progress.total, "")

    return watch


def _document(summary: SweepSummary, out: Path) -> dict[str, object]:
    runs = [
        {
            "values": dict(point.values),
            "out": str(out / point.name),
            **{name: value for name, value in vars(run).items() if name != "cost"},
        }
        for point, run in summary.runs
    ]
    return {"out": str(out), "combinations": runs, **summary.cost.to_document(), "stopped_by": summary.stopped_by}


def _text(summary: SweepSummary, out: Path, count: int) -> str:
    lines = [
        f"{point.label}: {run.asked} asked, {run.kept} kept from before, {run.failed} failed, {run.degraded} degraded"
        for point, run in summary.runs
    ]
    lines.append(f"Cost of the sweep until now: {summary.cost}")
    if summary.stopped_by:
        there = f"{len(summary.runs)} of {count} combinations begun"
        lines.append(f"Stopped at {summary.stopped_by}, {there}; the same command with a higher limit continues.")
    if failures := [run.failure for _, run in summary.runs if run.failure]:
        lines.append(f"The first that failed: {failures[0]}")
        lines.append("`--retry failed` asks the failed ones again.")
    lines.append(f"Next: judgetree eval report {out}")
    return "\n".join(lines)


def report_sweep(
    folder: Path, *, latex: Path | None, refused: Mapping[str, object], spreadsheet: bool, as_json: bool
) -> None:
    """Write the report of a sweep and of each of its runs."""
    if any(given is not None for given in refused.values()):
        raise SettingsError(
            f"{folder} is a sweep: --csv, --plots and --baseline belong to its runs. Its CSV files are written anyway."
        )
    with busy(), needs_extra("eval"):
        from ....evaluation.papers.files import write_tables
        from ....evaluation.rows.provenance import provenance_words
        from ....evaluation.sweeps.sweep_page import write_sweep_report

    report = write_sweep_report(folder, spreadsheet=spreadsheet)
    made_of = provenance_words(report.provenance)
    tables = write_tables(report.tables(), latex, made_of=made_of) if latex is not None else ()
    files = [*report.files, *tables]
    if as_json:
        write_json(report.to_document())
    else:
        write_result(report.to_markdown())
        say(f"Written: {', '.join(map(str, files))}, and the report of each run in its folder")
