"""``judgetree eval ragas``: scores the answers of a run with RAGAS."""

from __future__ import annotations

from dataclasses import asdict
from typing import TYPE_CHECKING, Annotated, Literal, get_args

import typer

from ...modules.errors import needs_extra
from ..terminal.exit_status import FAILED
from ..terminal.terminal import busy, counting_bar, progress_bar, say, write_json, write_result
from .options import CacheModeName, Json, RunFolder

if TYPE_CHECKING:
    from pathlib import Path

    from ...evaluation.score_with_ragas import RagasProgress, RagasSummary

# Copied, as in ``options``.
MetricNames = Literal[
    "faithfulness",
    "answer_relevancy",
    "context_precision",
    "context_recall",
    "answer_correctness",
    "factual_correctness",
]


def ragas(  # noqa: PLR0913 - one parameter an option
    folder: RunFolder,
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
    as_json: Json = False,
) -> None:
    """Score a run with RAGAS, a model as the judge; after a stop, the same command continues.

    Scores go to ragas.jsonl in the run directory; `judgetree eval report` shows them.
    """
    with busy("starting"):
        from ...evaluation.ragas.metrics import metrics_named

        chosen = metrics_named(metrics)
        with needs_extra("eval"):
            from ...evaluation.score_with_ragas import RagasOptions, score_run

    options = RagasOptions(
        metrics=chosen,
        systems=tuple(systems.replace(",", " ").split()) if systems is not None else None,
        llm=llm,
        embeddings=embeddings,
        limit=limit,
        with_sub_answers=with_sub_answers,
        concurrency=concurrency,
        cache=cache,
        retry_failed=retry_failed,
    )
    try:
        with progress_bar() as on_setup, counting_bar("samples") as show:

            def on_progress(progress: RagasProgress) -> None:
                show(progress.done, progress.total, f"{progress.failed} in vain" if progress.failed else "")

            summary = score_run(folder, options, on_progress=on_progress, on_setup=on_setup)
    except KeyboardInterrupt:
        say(f"Stopped. Scores so far are kept in {folder}; the same command continues.")
        raise
    if as_json:
        write_json({"run": str(folder), **asdict(summary)})
    else:
        write_result(_summary_text(summary, folder))
    if summary.failed:
        raise typer.Exit(FAILED)


def _summary_text(summary: RagasSummary, folder: Path) -> str:
    lines = [
        f"{summary.scored} scored, {summary.failed} of them in vain, {summary.kept} kept from before, "
        f"{summary.not_applicable} do not apply: {folder}",
        f"{summary.calls} calls paid, {summary.cached_calls} from the cache, {summary.tokens} tokens",
    ]
    if summary.failed:
        lines.append("`--retry-failed` tries those again; the report's results.csv says why each was in vain.")
    lines.append(f"Next: judgetree eval report {folder}")
    return "\n".join(lines)
