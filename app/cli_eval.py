"""The commands below ``judgetree eval``, declared here and imported only when they are run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal

import typer

# Spelled out again, since its home takes seconds to import; a test compares them.
CacheModeName = Literal["off", "read", "write", "replay"]

eval_app = typer.Typer(no_args_is_help=True, help="Measure systems over question-answer data sets.")

Out = Annotated[Path, typer.Option("--out", metavar="FOLDER", help="Run directory; goes on with what is there.")]
Json = Annotated[bool, typer.Option("--json", help="Print one JSON document.")]


@eval_app.command("run")
def run(  # noqa: PLR0913 - one parameter an option
    *,
    out: Out,
    dataset: Annotated[
        str | None, typer.Option(metavar="NAME:PATH", help="Such as hotpotqa:hotpot_dev_distractor_v1.json.")
    ] = None,
    systems: Annotated[str | None, typer.Option(metavar="llm,naive,judge", help="What is compared; all.")] = None,
    limit: Annotated[int | None, typer.Option(min=1, metavar="N", help="First N questions; the corpus stays.")] = None,
    config: Annotated[Path | None, typer.Option(metavar="FILE", help="YAML file with everything else.")] = None,
    repeats: Annotated[int | None, typer.Option("--repeat", min=1, metavar="K", help="Ask each K times.")] = None,
    concurrency: Annotated[int | None, typer.Option(min=1, metavar="N", help="Questions at once; 8.")] = None,
    cache: Annotated[CacheModeName | None, typer.Option(help="How model calls are kept; write.")] = None,
    max_calls: Annotated[int | None, typer.Option(min=1, metavar="N", help="Stop after N paid calls.")] = None,
    max_tokens: Annotated[int | None, typer.Option(min=1, metavar="N", help="Stop after N paid tokens.")] = None,
    retry_failed: Annotated[bool, typer.Option("--retry-failed", help="Ask failed questions again.")] = False,
    force: Annotated[bool, typer.Option("--force", help="Ask everything again.")] = False,
    as_json: Json = False,
) -> None:
    """Ask every question of every system; the same command goes on where it was stopped."""
    from .terminal import busy

    with busy("starting"):
        from ..evaluation.experiment import load_experiment
        from ..evaluation.run import RunOptions
        from .command_eval import run_eval

    experiment = load_experiment(
        config,
        dataset=dataset,
        systems=systems.replace(",", " ").split() if systems is not None else None,
        limit=limit,
        repeats=repeats,
        concurrency=concurrency,
        cache=cache,
        max_calls=max_calls,
        max_tokens=max_tokens,
    )
    options = RunOptions(retry_failed=retry_failed, force=force)
    raise typer.Exit(run_eval(experiment, out, options, as_json=as_json))


@eval_app.command("report")
def report(
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Run directory.")], as_json: Json = False
) -> None:
    """Score a run: a table here, and report.md, results.csv and results.parquet in its directory."""
    from .terminal import busy

    with busy("starting"):
        from .command_eval import run_report

    raise typer.Exit(run_report(folder, as_json=as_json))


@eval_app.command("compare")
def compare(
    first: Annotated[Path, typer.Argument(metavar="FOLDER", help="Run directory.")],
    second: Annotated[
        Path | None, typer.Argument(metavar="[FOLDER]", help="Another; without, the systems of the first.")
    ] = None,
    *,
    force: Annotated[
        bool, typer.Option("--force", help="Compare runs that differ in data, retriever or reader.")
    ] = False,
    as_json: Json = False,
) -> None:
    """Compare systems question by question: differences with intervals, exact tests, and a verdict in words."""
    from .terminal import busy

    with busy("starting"):
        from .command_eval import run_compare

    raise typer.Exit(run_compare(first, second, force=force, as_json=as_json))
