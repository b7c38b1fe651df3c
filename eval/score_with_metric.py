"""Scoring of a run's rows with a metric of one's own, or the built-in ``llm_correctness``."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path

from ..modules.background_loop import background_loop
from ..modules.calls.prices import load_prices
from ..modules.errors import SettingsError, did_you_mean
from ..modules.progress import StageProgress
from ..modules.settings import Settings, load_settings
from .reports.loaded_run import check_exists, load_run, samples_of
from .rows.store import RunStore
from .runs.limits import Spending
from .scoring.models import ScoringOptions, open_scoring_model
from .scoring.own_metric import MetricStore, OwnMetric, metric_part, wants_model
from .scoring.run_scorer import RunScorer, ScoringProgress, ScoringSummary
from .scoring.sample import Metric


def score(
    run: Path | str,
    metric: str | Metric | type,
    options: ScoringOptions | None = None,
    *,
    settings: Settings | None = None,
    on_progress: Callable[[ScoringProgress], None] | None = None,
    on_setup: StageProgress | None = None,
) -> ScoringSummary:
    """Score every row of a run that the same version of a metric has not scored yet; asks no question again.

    Scores go to ``scores.jsonl`` in the run directory, with the metric's name, version and source; reports,
    comparisons and frames show those of its newest version. After Ctrl-C or a kill, the same call scores the rest. A
    plain function makes no model call.

    ::

        score("runs/a", lambda sample: 1 / (1 + len(sample.answer)))
        score("runs/a", "llm_correctness", ScoringOptions(llm="openai:gpt-4o-mini", max_cost=1.0))

    Args:
        run: A run directory; its newest attempts are scored. A failed question has the lowest score of the range and is
            not given to the metric.
        metric: A function of a ``MetricSample``, an object that can be called with one, or a class of such objects,
            which is made with a chat model if it names ``llm``; or its ``module:name``, a plug-in's name, or
            "llm_correctness".
        options: Rows, model and limits; None scores all rows, without a limit.
        settings: None reads environment and ``.env``; the model of the options wins.
        on_progress: Called on judgetree's background thread after each sample.
        on_setup: Called with (done, total, stage) while a local model is loaded.

    Raises:
        UserError: No run, no such metric, an unknown system, a bad key or model name.
    """
    folder, part, options = Path(run), metric_part(metric), options or ScoringOptions()
    settings = (settings or load_settings()).with_models(llm=options.llm)
    if options.llm is not None and not wants_model(part):
        raise SettingsError(f"The metric {part.name!r} asks no model: leave out --llm, or let its class take `llm`.")
    loaded, prices = load_run(folder), load_prices(settings.home)
    spending, store = Spending(options, prices=prices), MetricStore(folder)
    with RunStore(folder).held(), ExitStack() as resources:
        store.mend()
        model = None
        if wants_model(part):
            model = open_scoring_model(
                settings, resources, options=options, prices=prices, spending=spending, on_progress=on_setup
            )
        method = OwnMetric(
            part,
            loaded.trees,
            llm=model.llm if model else None,
            endpoint=model.endpoint if model else "",
            settings=settings,
        )
        work = RunScorer(store=store, options=options, spending=spending, on_progress=on_progress)
        samples = samples_of(loaded, [method], systems=options.systems, limit=options.limit)
        return background_loop().run(work.run(samples))


def remove_scores(run: Path | str, metric: str, *, dry_run: bool = False) -> int:
    """Delete all scores that a metric has given a run, whatever its version. What they cost still counts as paid.

    ::

        remove_scores("runs/a", "my_metrics:grounded")

    Args:
        run: A run directory.
        metric: Its whole name, such as ``my_metrics:grounded``.
        dry_run: Count the scores only.

    Returns:
        The number of scores.

    Raises:
        SettingsError: The run does not exist, or has no score by such a metric.
        LoadingError: Its scores are damaged.
    """
    folder = Path(run)
    check_exists(folder)
    store = MetricStore(folder)
    with RunStore(folder).held():
        store.mend()
        scores = store.read()
        names = list(dict.fromkeys(score.scorer.name for score in scores))
        if metric not in names:
            there = f"It has scores by {', '.join(names)}." if names else "It has no scores by metrics of one's own."
            raise SettingsError(f"{folder} has no score by the metric {metric!r}.{did_you_mean(metric, names)} {there}")
        if not dry_run:
            store.remove(metric)
    return sum(score.scorer.name == metric for score in scores)
