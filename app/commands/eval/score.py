"""``judgetree eval score``: scores the answers of a run with a metric of one's own, or with a model."""

from __future__ import annotations

from typing import Annotated

import typer

from ....modules.config.models import CacheMode
from ....modules.config.typed_values import names_in
from ....modules.errors import needs_extra
from ...terminal.scoring import watched_scoring, write_scoring
from ...terminal.terminal import busy
from ..options import Json, RunFolder, SomeSystems

ScoringLlm = Annotated[str | None, typer.Option(metavar="SPEC", help="Model that scores, as JUDGETREE_LLM.")]
FirstQuestions = Annotated[int | None, typer.Option(min=1, metavar="N", help="First N questions of the run.")]
SamplesAtOnce = Annotated[int, typer.Option(min=1, metavar="N", help="Samples at once.")]
CacheOption = Annotated[CacheMode, typer.Option(help="How model calls are kept.")]
RetryFailed = Annotated[
    bool, typer.Option("--retry-failed", help="Try again what failed; with --cache off, with new replies.")
]
MaxCalls = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Stop before more calls are paid, by all starts.")
]
MaxTokens = Annotated[int | None, typer.Option(min=1, metavar="N", help="The same for tokens.")]
MaxCost = Annotated[float | None, typer.Option(metavar="USD", help="The same for US dollars.")]


def score(  # noqa: PLR0913 - one parameter an option
    folder: RunFolder,
    *,
    metric: Annotated[
        str, typer.Option(metavar="MODULE:NAME", help="Your own, a plug-in's name, or llm_correctness, a model's view.")
    ],
    systems: SomeSystems = None,
    llm: ScoringLlm = None,
    limit: FirstQuestions = None,
    concurrency: SamplesAtOnce = 8,
    cache: CacheOption = "write",
    retry_failed: RetryFailed = False,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    as_json: Json = False,
) -> None:
    """Score the answers of a run without asking them again; after a stop, the same command continues.

    Scores go to scores.jsonl in the run directory; `judgetree eval report` and `compare` show them.
    """
    with busy("starting"), needs_extra("eval"):
        from ....evaluation.score_with_metric import score as score_run
        from ....evaluation.scoring.models import ScoringOptions

    options = ScoringOptions(
        systems=names_in(systems),
        llm=llm,
        limit=limit,
        concurrency=concurrency,
        cache=cache,
        retry_failed=retry_failed,
        max_calls=max_calls,
        max_tokens=max_tokens,
        max_cost=max_cost,
    )
    with watched_scoring(folder) as (on_setup, on_progress):
        summary = score_run(folder, metric, options, on_progress=on_progress, on_setup=on_setup)
    write_scoring(summary, folder, as_json=as_json)
