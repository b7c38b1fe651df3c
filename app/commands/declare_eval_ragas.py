"""``judgetree eval ragas``: its declaration; what it does is imported only when it is run."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, get_args

import typer

# Spelled out again, since their homes take seconds to import; a test compares them.
CacheModeName = Literal["off", "read", "write", "refresh", "replay"]
MetricNames = Literal[
    "faithfulness",
    "answer_relevancy",
    "context_precision",
    "context_recall",
    "answer_correctness",
    "factual_correctness",
]


def ragas(  # noqa: PLR0913 - one parameter an option
    folder: Annotated[Path, typer.Argument(metavar="FOLDER", help="Run directory.")],
    *,
    metrics: Annotated[
        str | None, typer.Option(metavar="NAME,…", help=f"Some of {', '.join(get_args(MetricNames))}; all.")
    ] = None,
    systems: Annotated[str | None, typer.Option(metavar="NAME,…", help="Some of the run's systems; all.")] = None,
    llm: Annotated[str | None, typer.Option(metavar="SPEC", help="Model that judges, as JUDGETREE_LLM.")] = None,
    embeddings: Annotated[
        str | None, typer.Option(metavar="SPEC", help="Embedder of two metrics, as JUDGETREE_EMBEDDINGS.")
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, metavar="N", help="First N questions of the run.")] = None,
    with_sub_answers: Annotated[
        bool,
        typer.Option("--with-sub-answers", help="Contexts as the reader saw them, not the chunks of the whole tree."),
    ] = False,
    concurrency: Annotated[int, typer.Option(min=1, metavar="N", help="Samples at once.")] = 8,
    cache: Annotated[CacheModeName, typer.Option(help="How model calls are kept.")] = "write",
    retry_failed: Annotated[
        bool, typer.Option("--retry-failed", help="Try again what failed; with --cache off, with new replies.")
    ] = False,
    as_json: Annotated[bool, typer.Option("--json", help="Print one JSON document.")] = False,
) -> None:
    """Score a run with RAGAS, a model as the judge; the same command goes on where it was stopped.

    Scores go to ragas.jsonl in the run directory; `judgetree eval report` shows them.
    """
    from ..terminal.terminal import busy

    with busy("starting"):
        from .eval_ragas import run_ragas

    raise typer.Exit(
        run_ragas(
            folder,
            metrics=metrics,
            systems=systems,
            llm=llm,
            embeddings=embeddings,
            limit=limit,
            with_sub_answers=with_sub_answers,
            concurrency=concurrency,
            cache=cache,
            retry_failed=retry_failed,
            as_json=as_json,
        )
    )
