"""``judgetree eval``: batch runs and their reports."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from ...evaluation.rows.store import RunStore
from ...evaluation.runs.batch_run import RunOptions, run_experiment
from ...evaluation.runs.experiment import Experiment, load_experiment
from ...evaluation.runs.rerun import Rerun, load_rerun
from ...evaluation.runs.runner import Progress as RunProgress
from ...evaluation.runs.runner import RunSummary
from ...modules.errors import SettingsError, needs_extra
from ...modules.settings import load_settings
from ..terminal.exit_status import FAILED, INTERRUPTED, OK
from ..terminal.terminal import counting_bar, progress_bar, say, write_json, write_result

if TYPE_CHECKING:
    from ...evaluation.reports.compare import Comparison, RowChoice


def read_experiment(config: Path | None, source: Path | None, **keys: object) -> tuple[Experiment, Rerun | None]:
    """The experiment of a YAML file, or of the manifest ``source``, under ``keys``; and the run that is done again.

    Tells what is no longer as it was in that run.

    Raises:
        UserError: Both are named, or one of them cannot be used.
    """
    if source is None:
        return load_experiment(config, **keys), None
    if config is not None:
        raise SettingsError("--from takes the experiment from a manifest: leave out --config, or --from.")
    rerun = load_rerun(source, settings=load_settings(), **keys)
    for change in rerun.changes:
        say(f"Not as in {source}: {change}.")
    return rerun.experiment, rerun


def run_eval(experiment: Experiment, out: Path, options: RunOptions, *, as_json: bool) -> int:
    """Run, and tell what was done. 0 if every question asked now was answered or refused, 1 if some failed.

    Raises:
        UserError: Something to mend; finished rows are kept.
    """
    try:
        with progress_bar() as on_setup, question_bar() as on_progress:
            summary = run_experiment(experiment, out, options=options, on_progress=on_progress, on_setup=on_setup)
    except KeyboardInterrupt:
        say(f"Stopped. {len(RunStore(out).read_rows())} rows are kept in {out}; the same command goes on.")
        return INTERRUPTED
    if as_json:
        write_json(
            {
                "out": str(out),
                "asked": summary.asked,
                "kept": summary.kept,
                "failed": summary.failed,
                "failure": summary.failure,
                "degraded": summary.degraded,
                "kept_incomplete": summary.kept_incomplete,
                "stopped_by": summary.stopped_by,
                "calls": summary.calls,
                "cached_calls": summary.cached_calls,
                "cost_usd": summary.cost.usd,
                "cost_known_usd": summary.cost.known_usd,
            }
        )
    else:
        write_result(_told(summary, out))
    return FAILED if summary.failed else OK


def run_report(folder: Path, *, baseline: str | None, as_json: bool) -> int:
    """Score a run and write its files.

    Raises:
        UserError: There is no run, its data set has changed, or the extra ``eval`` is not installed.
    """
    with needs_extra("eval"):
        from ...evaluation.reports.page import write_report
    report = write_report(folder, baseline=baseline)
    if as_json:
        write_json(report.to_document())
    else:
        write_result(report.to_markdown())
        say(f"Written: {', '.join(str(file) for file in report.files)}")
    return OK


def run_compare(
    first: Path, second: Path | None, *, baseline: str | None, force: bool, rows: RowChoice, as_json: bool
) -> int:
    """Compare the systems of a run, or two runs, by the rows that are complete enough.

    Raises:
        UserError: There is nothing to compare, the runs are unlike, or the extra ``eval`` is not installed.
    """
    with needs_extra("eval"):
        from ...evaluation.reports.compare import compare_runs
    comparisons = compare_runs(first, second, baseline=baseline, force=force, rows=rows)
    if as_json:
        write_json([_comparison_document(each) for each in comparisons])
    else:
        write_result("\n".join(each.verdict for each in comparisons))
    return OK


def _comparison_document(comparison: Comparison) -> dict[str, object]:
    document = asdict(comparison)
    return {"verdict": comparison.verdict, **document.pop("paired"), **document}


def _told(summary: RunSummary, out: Path) -> str:
    kept = f"{summary.kept} kept from before"
    if summary.kept_incomplete:
        kept += f" ({summary.kept_incomplete} failed or degraded)"
    lines = [f"{summary.asked} asked, {kept}, {summary.failed} failed, {summary.degraded} degraded: {out}"]
    if summary.calls:
        lines.append(f"{summary.cached_share:.0%} of {summary.calls} model calls came out of the cache")
    lines.append(f"Cost of the run until now: {summary.cost}")
    if summary.stopped_by:
        lines.append(f"Stopped at {summary.stopped_by}; the same command with a higher limit goes on.")
    if summary.failed:
        lines.append(f"The first that failed: {summary.failure}")
        lines.append("`--retry failed` asks the failed ones again.")
    if summary.degraded or summary.kept_incomplete:
        lines.append("`--retry incomplete` asks failed and degraded ones again; results.csv names what was damaged.")
    lines.append(f"Next: judgetree eval report {out}")
    return "\n".join(lines)


@contextmanager
def question_bar() -> Iterator[Callable[[RunProgress], None]]:
    """What a run reports its questions to."""
    counts: Counter[str] = Counter()
    with counting_bar("questions") as show:

        def tell(progress: RunProgress) -> None:
            if progress.row is not None:
                counts[progress.row.completeness] += 1
            told = [f"{counts[kind]} {kind}" for kind in ("failed", "degraded") if counts[kind]]
            show(progress.done, progress.total, ", ".join(told))

        yield tell
