"""``judgetree eval run``: asks systems the questions of a data set."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

import typer

from ....evaluation.runs.experiment import Experiment
from ....modules.errors import SettingsError, needs_extra
from ...terminal.exit_status import FAILED
from ...terminal.terminal import busy, counting_bar, progress_bar, resumable, say, write_json, write_result
from ..config_options import takes
from ..options import Json, Questions, RayAddress, ray_address
from .sweep import is_sweep_file, sweep

if TYPE_CHECKING:
    from ....evaluation.runs.batch_run import RunOptions
    from ....evaluation.runs.rerun import Rerun
    from ....evaluation.runs.runner import Progress as RunProgress
    from ....evaluation.runs.runner import RunSummary
    from ....evaluation.runs.workers import Workers

Out = Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Run directory; an existing run is continued.")]
# Copied, as in ``options``.
RetryName = Literal["failed", "incomplete"]


@takes(Experiment, without=("conversation",), apart=True)
def run(  # noqa: PLR0913 - one parameter an option
    *,
    out: Out,
    questions: Questions = None,
    source: Annotated[
        Path | None,
        typer.Option(
            "--from", metavar="MANIFEST", rich_help_panel="Asking again", help="Do the run of this manifest.json again."
        ),
    ] = None,
    dry_run: Annotated[
        bool,
        typer.Option(
            "--dry-run", rich_help_panel="Estimate", help="Ask a pilot only, and estimate what the rest takes."
        ),
    ] = False,
    pilot: Annotated[
        int | None,
        typer.Option(
            min=0,
            metavar="N",
            rich_help_panel="Estimate",
            help="Questions of the pilot; default: 10. 0 estimates from the rows there are.",
        ),
    ] = None,
    retry: Annotated[
        RetryName | None,
        typer.Option(
            rich_help_panel="Asking again",
            help="Ask failed questions again; incomplete: also degraded ones, answered though a call failed.",
        ),
    ] = None,
    accept_changes: Annotated[
        bool,
        typer.Option(
            "--accept-changes",
            rich_help_panel="Asking again",
            help="Continue with other prompts, code or libraries than those of the rows there are.",
        ),
    ] = False,
    force: Annotated[
        bool,
        typer.Option(
            "--force", rich_help_panel="Asking again", help="Ask all questions again, with new replies of the models."
        ),
    ] = False,
    workers: Annotated[
        int | None,
        typer.Option(
            min=1,
            metavar="N",
            rich_help_panel="Processes",
            help="Ask the questions in N processes (extra ray); default: this one.",
        ),
    ] = None,
    ray: RayAddress = None,
    as_json: Json = False,
    config: dict[str, object],
    config_file: Path | None,
) -> None:
    """Ask every system every question; after a stop, the same command continues the run.

    Examples:
        judgetree eval run --questions my.csv --corpus handbook --out runs/first
        judgetree eval run --config experiment.yaml --out runs/first --dry-run
        judgetree eval run --from runs/first/manifest.json --out runs/again
    """
    with busy():
        from ....evaluation.runs.batch_run import RunOptions

    if pilot is not None and not dry_run:
        raise SettingsError("--pilot belongs to --dry-run: give both, or leave out --pilot.")
    if dry_run and (force or retry is not None):
        raise SettingsError("--dry-run estimates what was never asked: leave out --force and --retry.")
    config |= {"questions": questions} if questions is not None else {}
    if source is None and is_sweep_file(config_file, config):
        options = RunOptions(retry=retry, force=force, accept_changes=accept_changes)
        sweep(config_file, config, out, options, dry_run=dry_run, pilot=pilot, as_json=as_json)
        return
    experiment, again = _read_experiment(config_file, source, **config)
    options = RunOptions(
        retry=retry, force=force, accept_changes=accept_changes, again=again, workers=_workers(workers, ray)
    )
    if dry_run:
        _estimate(experiment, out, options, pilot=pilot, as_json=as_json)
    else:
        _run(experiment, out, options, as_json=as_json)


def _workers(count: int | None, address: str | None) -> Workers | None:
    from ....evaluation.runs.workers import Workers

    given = ray_address(count, address)
    return None if count is None else Workers(count=count, address=given)


def _read_experiment(config: Path | None, source: Path | None, **keys: object) -> tuple[Experiment, Rerun | None]:
    """Read the experiment of a YAML file or of the manifest ``source``, changed by ``keys``.

    Returns the run to repeat too, if ``source`` names one, and prints what has changed since that run.
    """
    from ....evaluation.runs.experiment import load_experiment
    from ....evaluation.runs.rerun import load_rerun
    from ....modules.settings import load_settings

    if source is None:
        return load_experiment(config, **keys), None
    if config is not None:
        raise SettingsError("--from takes the experiment from a manifest: leave out --config, or --from.")
    rerun = load_rerun(source, settings=load_settings(), **keys)
    for change in rerun.changes:
        say(f"Not as in {source}: {change}.")
    return rerun.experiment, rerun


def _run(experiment: Experiment, out: Path, options: RunOptions, *, as_json: bool) -> None:
    from ....evaluation.matching.matched_run import run_matched

    with _watched(out) as (on_setup, on_progress):
        summary = run_matched(experiment, out, options=options, on_progress=on_progress, on_setup=on_setup)
    if as_json:
        write_json(
            {
                "out": str(out),
                **{name: value for name, value in vars(summary).items() if name != "cost"},
                **summary.cost.to_document(),
            }
        )
    else:
        write_result(_summary_text(summary, out))
    if summary.failed:
        raise typer.Exit(FAILED)


def _estimate(experiment: Experiment, out: Path, options: RunOptions, *, pilot: int | None, as_json: bool) -> None:
    with busy(), needs_extra("eval"):
        from ....evaluation.matching.matched_run import match_budget
        from ....evaluation.runs.pilot import PILOT, estimate_run
        from ...terminal.run_estimate import write_estimate

    questions = PILOT if pilot is None else pilot
    with _watched(out) as (on_setup, on_progress):
        matched = match_budget(experiment, out, options=options, on_progress=on_progress, on_setup=on_setup)
        estimate = estimate_run(
            matched.experiment,
            out,
            pilot=questions,
            options=matched.options,
            on_progress=on_progress,
            on_setup=on_setup,
        )
    if as_json:
        write_json({"out": str(out), **estimate.to_document()})
    else:
        write_estimate(estimate, out)


def _summary_text(summary: RunSummary, out: Path) -> str:
    kept = f"{summary.kept} kept from before"
    if summary.kept_incomplete:
        kept += f" ({summary.kept_incomplete} failed or degraded)"
    lines = [
        *summary.opponents,
        f"{summary.asked} asked, {kept}, {summary.failed} failed, {summary.degraded} degraded: {out}",
    ]
    if summary.calls or summary.cached_calls:
        lines.append(f"{summary.calls:,} model calls paid, {summary.cached_calls:,} out of the cache")
    lines.append(f"Cost of the run until now: {summary.cost}")
    if summary.stopped_by:
        lines.append(f"Stopped at {summary.stopped_by}; the same command with a higher limit continues.")
    if summary.failed:
        lines.append(f"The first that failed: {summary.failure}")
        lines.append("`--retry failed` asks the failed ones again.")
    if summary.degraded or summary.kept_incomplete:
        lines.append("`--retry incomplete` asks failed and degraded ones again; results.csv names what was damaged.")
    if summary.unusable:
        lines.append(f"{summary.unusable} with replies that could not be used, which counts against their systems.")
    lines.append(f"Next: judgetree eval report {out}")
    return "\n".join(lines)


@contextmanager
def _watched(out: Path) -> Iterator[tuple[Callable[[int, int, str], None], Callable[[RunProgress], None]]]:
    """Give callbacks for the preparations and the questions of a run; on Ctrl-C say what the run directory keeps."""
    from ....evaluation.rows.store import RunStore

    counts: Counter[str] = Counter()
    with (
        resumable(lambda: f"{len(RunStore(out).read_rows())} rows are kept in {out}"),
        progress_bar() as on_setup,
        counting_bar("questions") as show,
    ):

        def on_progress(progress: RunProgress) -> None:
            if progress.row is not None:
                counts[progress.row.completeness] += 1
            remarks = [f"{counts[kind]} {kind}" for kind in ("failed", "degraded") if counts[kind]]
            show(progress.done, progress.total, ", ".join(remarks))

        yield on_setup, on_progress
