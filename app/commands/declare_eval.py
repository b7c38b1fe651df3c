"""The commands below ``judgetree eval``, declared here and imported only when they are run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

from .declare_eval_calibrate import calibrate
from .declare_eval_fetch import fetch
from .declare_eval_ragas import CacheModeName, ragas

eval_app = typer.Typer(no_args_is_help=True, help="Measure systems over question-answer data sets.")
eval_app.command("calibrate")(calibrate)
eval_app.command("fetch")(fetch)
eval_app.command("ragas")(ragas)

Out = Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Run directory; goes on with what is there.")]
# Spelled out again, since their homes take seconds to import; a test compares them.
RetryName = Literal["failed", "incomplete"]
RowChoiceName = Literal["complete", "answered", "all"]
Baseline = Annotated[
    str | None,
    typer.Option(
        "--baseline", metavar="SYSTEM", help="What the others are compared with, or all for every pair; naive."
    ),
]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


@eval_app.command("run")
def run(  # noqa: PLR0913 - one parameter an option
    *,
    out: Out,
    dataset: Annotated[
        str | None, typer.Option(metavar="NAME:PATH", help="Such as hotpotqa:hotpot_dev_distractor_v1.json.")
    ] = None,
    systems: Annotated[
        str | None,
        typer.Option(metavar="llm,naive,judge", help="What is compared; also ircot, iter_retgen, self_ask, react."),
    ] = None,
    split: Annotated[
        str | None, typer.Option(metavar="NAME", help="Where a data set has several in one place.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, metavar="N", help="First N questions; the corpus stays.")] = None,
    sample: Annotated[int | None, typer.Option(min=1, metavar="N", help="N questions drawn by the seed.")] = None,
    config: Annotated[Path | None, typer.Option(metavar="FILE", help="YAML file with everything else.")] = None,
    source: Annotated[
        Path | None, typer.Option("--from", metavar="MANIFEST", help="Do the run of this manifest.json again.")
    ] = None,
    repeats: Annotated[int | None, typer.Option("--repeat", min=1, metavar="K", help="Ask each K times.")] = None,
    concurrency: Annotated[int | None, typer.Option(min=1, metavar="N", help="Questions at once; 8.")] = None,
    cache: Annotated[CacheModeName | None, typer.Option(help="How model calls are kept; write.")] = None,
    max_calls: Annotated[int | None, typer.Option(min=1, metavar="N", help="Stop after N paid calls.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, metavar="N", help="Stop after N paid tokens.")] = None,
    max_cost: Annotated[float | None, typer.Option(metavar="USD", help="Stop once that much is paid.")] = None,
    fail_after: Annotated[
        float | None,
        typer.Option(
            min=0, metavar="N", help="Stop after N questions in a row, or a share of all, find no usable endpoint; 10."
        ),
    ] = None,
    dry_run: Annotated[
        bool, typer.Option("--dry-run", help="Ask a pilot only, and tell what the rest will take.")
    ] = False,
    pilot: Annotated[
        int | None, typer.Option(min=0, metavar="N", help="Questions of the pilot; 10. 0 goes by the rows there are.")
    ] = None,
    retry: Annotated[
        RetryName | None,
        typer.Option(help="Ask again what failed; incomplete: also what was answered with damage (degraded)."),
    ] = None,
    accept_changes: Annotated[
        bool, typer.Option("--accept-changes", help="Go on with other prompts, code or libraries than the rows have.")
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Ask everything again, also the models.")] = False,
    as_json: Json = False,
) -> None:
    """Ask every question of every system; the same command goes on where it was stopped."""
    from ..terminal.terminal import busy

    with busy("starting"):
        from ...evaluation.runs.batch_run import RunOptions
        from ...modules.errors import SettingsError
        from .eval import read_experiment, run_eval
        from .eval_pilot import run_pilot

    experiment, again = read_experiment(
        config,
        source,
        dataset=dataset,
        systems=systems.replace(",", " ").split() if systems is not None else None,
        split=split,
        limit=limit,
        sample=sample,
        repeats=repeats,
        concurrency=concurrency,
        cache=cache,
        max_calls=max_calls,
        max_tokens=max_tokens,
        max_cost=max_cost,
        fail_after=fail_after,
    )
    options = RunOptions(retry=retry, force=force, accept_changes=accept_changes, again=again)
    if pilot is not None and not dry_run:
        raise SettingsError("--pilot belongs to --dry-run: give both, or leave out --pilot.")
    if dry_run:
        raise typer.Exit(run_pilot(experiment, out, options, pilot=pilot, as_json=as_json))
    raise typer.Exit(run_eval(experiment, out, options, as_json=as_json))


@eval_app.command("report")
def report(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Run directory.")],
    *,
    baseline: Baseline = None,
    as_json: Json = False,
) -> None:
    """Score a run: a table here; report.html, report.md, results.csv and results.parquet in its directory."""
    from ..terminal.terminal import busy

    with busy("starting"):
        from .eval import run_report

    raise typer.Exit(run_report(folder, baseline=baseline, as_json=as_json))


@eval_app.command("compare")
def compare(
    first: Annotated[Path, typer.Argument(metavar="FOLDER", help="Run directory.")],
    second: Annotated[
        Path | None, typer.Argument(metavar="[FOLDER]", help="Another; without, the systems of the first.")
    ] = None,
    *,
    baseline: Baseline = None,
    force: Annotated[
        bool, typer.Option("--force", help="Compare runs that differ in data, retriever or reader.")
    ] = False,
    rows: Annotated[
        RowChoiceName,
        typer.Option(help="Rows that count. answered: also degraded ones; all: also failed ones, which score 0."),
    ] = "complete",
    as_json: Json = False,
) -> None:
    """Compare systems question by question: differences with intervals, exact tests, and a verdict in words."""
    from ..terminal.terminal import busy

    with busy("starting"):
        from .eval import run_compare

    raise typer.Exit(run_compare(first, second, baseline=baseline, force=force, rows=rows, as_json=as_json))
