"""``judgetree eval score``: scores the answers of a run with a metric of one's own, or with a model."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ....modules.config.models import CacheMode
from ....modules.config.typed_values import names_in
from ....modules.errors import SettingsError, needs_extra
from ...terminal.scoring import watched_scoring, write_scoring
from ...terminal.terminal import busy, say, write_json
from ..options import DryRun, Json, RunFolder, SomeSystems, Yes

ScoringLlm = Annotated[str | None, typer.Option(metavar="SPEC", help="Model that scores, as in JUDGETREE_LLM.")]
FirstQuestions = Annotated[int | None, typer.Option(min=1, metavar="N", help="First N questions of the run.")]
SamplesAtOnce = Annotated[int, typer.Option(min=1, metavar="N", help="Samples at once.")]
CacheOption = Annotated[CacheMode, typer.Option(help="How model calls use the cache.")]
RetryFailed = Annotated[
    bool, typer.Option("--retry-failed", help="Try again what failed; with --cache off, with new replies.")
]
MaxCalls = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Stop before more than N calls are paid, all starts counted.")
]
MaxTokens = Annotated[int | None, typer.Option(min=1, metavar="N", help="The same for tokens.")]
MaxCost = Annotated[float | None, typer.Option(metavar="USD", help="The same for US dollars.")]


def score(  # noqa: PLR0913 - one parameter an option
    folder: RunFolder,
    *,
    metric: Annotated[
        str | None,
        typer.Option(
            metavar="MODULE:NAME",
            help="Your own, the name of an installed one, or llm_correctness: a model compares with gold.",
        ),
    ] = None,
    remove: Annotated[
        str | None, typer.Option(metavar="MODULE:NAME", help="Remove the scores of this metric from the run.")
    ] = None,
    systems: SomeSystems = None,
    llm: ScoringLlm = None,
    limit: FirstQuestions = None,
    concurrency: SamplesAtOnce = 8,
    cache: CacheOption = "write",
    retry_failed: RetryFailed = False,
    max_calls: MaxCalls = None,
    max_tokens: MaxTokens = None,
    max_cost: MaxCost = None,
    yes: Yes = False,
    dry_run: DryRun = False,
    as_json: Json = False,
) -> None:
    """Score the answers of a run without asking them again; after a stop, the same command continues.

    Scores go to scores.jsonl in the run directory; `judgetree eval report` and `compare` show them.

    Examples:
        judgetree eval score runs/first --metric my_metric:length
        judgetree eval score runs/first --metric llm_correctness --max-cost 1
    """
    with busy(), needs_extra("eval"):
        from ....evaluation.score_with_metric import score as score_run
        from ....evaluation.scoring.models import ScoringOptions

    narrowing: dict[str, object] = {"--systems": systems, "--llm": llm, "--limit": limit, "--max-calls": max_calls}
    narrowing |= {"--max-tokens": max_tokens, "--max-cost": max_cost, "--retry-failed": retry_failed or None}
    if remove is not None and (given := [name for name, value in narrowing.items() if value is not None]):
        raise SettingsError(f"--remove takes out all scores by a metric: leave out {', '.join(given)}.")
    if remove is not None and metric is None:
        _remove(folder, remove, yes=yes, dry_run=dry_run, as_json=as_json)
        return
    if metric is None or remove is not None or yes or dry_run:
        raise SettingsError("Give --metric NAME to score with, or --remove NAME with --yes or --dry-run, not both.")
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


def _remove(folder: Path, metric: str, *, yes: bool, dry_run: bool, as_json: bool) -> None:
    from ....evaluation.score_with_metric import remove_scores
    from ....graphs.drawing.words import count_of
    from ...terminal.deleting import may_delete

    count = remove_scores(folder, metric, dry_run=True)
    what = f"{count_of(count, 'score')} by {metric} in {folder}"
    removed = may_delete(what, "Take them out?", yes=yes, dry_run=dry_run)
    if removed:
        remove_scores(folder, metric)
        say(f"Taken out: {what}.")
    if as_json:
        write_json({"run": str(folder), "metric": metric, "scores": count, "removed": removed})
