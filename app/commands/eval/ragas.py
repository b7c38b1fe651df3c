"""``judgetree eval ragas``: scores the answers of a run with RAGAS."""

from __future__ import annotations

from typing import Annotated, Literal, get_args

import typer

from ....modules.config.typed_values import names_in
from ....modules.errors import needs_extra
from ...terminal.scoring import watched_scoring, write_scoring
from ...terminal.terminal import busy
from ..options import Json, RunFolder, SomeSystems
from .score import (
    CacheOption,
    FirstQuestions,
    MaxCalls,
    MaxCost,
    MaxTokens,
    RetryFailed,
    SamplesAtOnce,
    ScoringLlm,
)

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
        str | None, typer.Option(metavar="NAME,…", help=f"Some of {', '.join(get_args(MetricNames))}; default: all.")
    ] = None,
    systems: SomeSystems = None,
    llm: ScoringLlm = None,
    embeddings: Annotated[
        str | None,
        typer.Option(metavar="SPEC", help="Embedder for the metrics that need one, as in JUDGETREE_EMBEDDINGS."),
    ] = None,
    limit: FirstQuestions = None,
    with_sub_answers: Annotated[
        bool,
        typer.Option("--with-sub-answers", help="Contexts as the reader saw them, not the chunks of the whole tree."),
    ] = False,
    concurrency: SamplesAtOnce = 8,
    cache: CacheOption = "write",
    retry_failed: RetryFailed = False,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    as_json: Json = False,
) -> None:
    """Score a run with RAGAS, a model as the judge; after a stop, the same command continues.

    Scores go to ragas.jsonl in the run directory; `judgetree eval report` shows them.

    Examples:
        judgetree eval ragas runs/first --max-cost 1
    """
    with busy():
        from ....evaluation.ragas.metrics import metrics_named

        chosen = metrics_named(metrics)
        with needs_extra("eval"):
            from ....evaluation.score_with_ragas import RagasOptions, score_run

    options = RagasOptions(
        metrics=chosen,
        systems=names_in(systems),
        llm=llm,
        embeddings=embeddings,
        limit=limit,
        with_sub_answers=with_sub_answers,
        concurrency=concurrency,
        cache=cache,
        retry_failed=retry_failed,
        max_calls=max_calls,
        max_tokens=max_tokens,
        max_cost=max_cost,
    )
    with watched_scoring(folder) as (on_setup, on_progress):
        summary = score_run(folder, options, on_progress=on_progress, on_setup=on_setup)
    write_scoring(summary, folder, as_json=as_json)
