"""Scoring of a run's rows with RAGAS, which stores each score as soon as it is computed."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from ..modules.background_loop import background_loop
from ..modules.calls.prices import load_prices
from ..modules.calls.usage import CallMeter
from ..modules.embedding.choice import choose_model
from ..modules.embedding.embedder import Embedder, create_embeddings
from ..modules.errors import LoadingError
from ..modules.progress import StageProgress
from ..modules.settings import Settings, load_settings
from .datasets.questions import EvalQuestion
from .ragas.metrics import RAGAS_METRICS, Contexts, RagasMetric, contexts_of, inputs_of
from .ragas.models import RAGAS_VERSION, build_scoring, prompts_version
from .ragas.scores import RagasStore, Scorer
from .reports.loaded_run import LoadedRun, load_run, samples_of
from .rows.store import RunRow, RunStore
from .rows.trees import TreeStore
from .runs.limits import Spending
from .scoring.models import ScoringModel, ScoringOptions, open_scoring_model
from .scoring.replies import StructuredLLM
from .scoring.run_scorer import RunScorer, ScoringProgress, ScoringSummary


@dataclass(frozen=True, kw_only=True)
class RagasOptions(ScoringOptions):
    """The rows to score, the metrics and the models."""

    metrics: tuple[RagasMetric, ...] = field(default_factory=lambda: tuple(RAGAS_METRICS.values()))
    embeddings: str | None = None
    """The embeddings, as in JUDGETREE_EMBEDDINGS; None takes those of the settings."""
    with_sub_answers: bool = False
    """Score the passages and sub-answers shown to the reader instead of the chunks of the whole tree."""


def score_run(
    folder: Path,
    options: RagasOptions = RagasOptions(),
    *,
    settings: Settings | None = None,
    on_progress: Callable[[ScoringProgress], None] | None = None,
    on_setup: StageProgress | None = None,
) -> ScoringSummary:
    """Score every row that a metric applies to and that the same scorer has not scored yet.

    Scores go to ``RagasStore(folder)``. After Ctrl-C or a kill, the same call scores the rest.

    Args:
        folder: A run directory; its newest attempts are scored.
        options: Metrics, systems and models.
        settings: None reads environment and ``.env``; models and embeddings of the options win.
        on_progress: Called on judgetree's background thread after each sample.
        on_setup: Called with (done, total, stage) while a local model is loaded.

    Raises:
        UserError: No run, an unknown system, a bad key or model name, a call missing in replay mode.
    """
    settings = settings or load_settings()
    settings = settings.with_models(llm=options.llm, embeddings=options.embeddings)
    run, prices = load_run(folder), load_prices(settings.home)
    spending, store = Spending(options, prices=prices), RagasStore(folder)
    with RunStore(folder).held(), ExitStack() as resources:
        store.mend()
        model = open_scoring_model(
            settings, resources, options=options, prices=prices, spending=spending, on_progress=on_setup
        )
        llm, embedder = StructuredLLM(model.llm), create_embeddings(_embeddings_of(settings, run), settings)
        evidence = EvidenceReader(run.trees, "sub-answers" if options.with_sub_answers else "chunks")
        methods = [_RagasMethod(metric, model, llm, embedder, evidence) for metric in options.metrics]
        work = RunScorer(store=store, options=options, spending=spending, on_progress=on_progress)
        samples = samples_of(run, methods, systems=options.systems, limit=options.limit)
        return background_loop().run(work.run(samples))


def _embeddings_of(settings: Settings, run: LoadedRun) -> str:
    if settings.embeddings != "auto":
        return settings.embeddings
    return choose_model([question.question for question in run.dataset.questions]).model


class _RagasMethod:
    """One metric as the rows of a run are scored with it."""

    def __init__(
        self, metric: RagasMetric, model: ScoringModel, llm: StructuredLLM, embedder: Embedder, evidence: EvidenceReader
    ) -> None:
        self._metric = metric
        self._llm = llm
        self._embedder = embedder
        self._evidence = evidence
        scoring = build_scoring(metric, llm, embedder, CallMeter(node="ragas"))
        self.scorer = Scorer(
            metric=metric.name,
            ragas=RAGAS_VERSION,
            prompts=prompts_version(scoring),
            model=llm.model,
            endpoint=model.endpoint,
            embeddings=embedder.name if metric.embeds else "",
            replies=llm.version,
            contexts=evidence.contexts if metric.takes_contexts else None,
            options=", ".join(f"{name} {value}" for name, value in metric.options.items()),
        )

    def why_not(self, row: RunRow, question: EvalQuestion) -> str | None:
        """Return why the metric does not apply to a row; None if it does."""
        return self._metric.why_not(row, question)

    async def value_of(self, row: RunRow, question: EvalQuestion, meter: CallMeter) -> float:
        """Score a row."""
        evidence = await self._evidence.read(row) if self._metric.takes_contexts else ()
        scoring = build_scoring(self._metric, self._llm, self._embedder, meter)
        scored = await scoring.ascore(**inputs_of(self._metric, row, question, evidence))
        return self._metric.checked(scored.value)


class EvidenceReader:
    """Reads the contexts of rows from the trees of a run."""

    def __init__(self, trees: TreeStore, contexts: Contexts) -> None:
        self.contexts = contexts
        self._trees = trees
        self._reading = asyncio.Lock()  # TreeStore.read updates its index and is not thread-safe

    async def read(self, row: RunRow) -> tuple[str, ...]:
        """Return the contexts of a row.

        Raises:
            LoadingError: The run has no tree of the row.
        """
        async with self._reading:
            tree = await asyncio.to_thread(self._trees.read, row.thread_id)
        if tree is None:
            raise LoadingError(
                f"The run has no search tree of thread {row.thread_id}, so its evidence is unknown. Ask again "
                "with `judgetree eval run --force`, or score metrics that need no evidence."
            )
        return contexts_of(tree, self.contexts)
