"""Scoring of a run's rows with RAGAS, which stores each score as soon as it is computed."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path

from ..modules.background_loop import background_loop
from ..modules.calls.usage import CallMeter, total_usage
from ..modules.embedding.embedder import Embedder, create_embeddings, spec_for_language
from ..modules.errors import JudgetreeError, LoadingError, SettingsError, UserError, ungrouped
from ..modules.language import cjk_share
from ..modules.llm.cache import CachedLLM, CacheMode, CompletionCache
from ..modules.llm.endpoint import CallGate, EndpointLLM
from ..modules.llm.factory import create_llm
from ..modules.llm.json_reply import ReplyProblem
from ..modules.progress import StageProgress
from ..modules.settings import Settings, load_settings
from .datasets.questions import EvalQuestion
from .ragas.metrics import RAGAS_METRICS, Contexts, RagasMetric, contexts_of, inputs_of
from .ragas.models import RAGAS_VERSION, build_scoring, prompts_version
from .ragas.replies import StructuredLLM
from .ragas.scores import RagasScore, RagasStore, Scorer, finished, row_key
from .reports.loaded_run import load_run
from .rows.store import RunRow, RunStore
from .rows.trees import TreeStore

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class RagasOptions:
    """The rows to score, the metrics and the models."""

    metrics: tuple[RagasMetric, ...] = field(default_factory=lambda: tuple(RAGAS_METRICS.values()))
    systems: tuple[str, ...] | None = None
    """Systems to score; None for all."""
    llm: str | None = None
    """The scoring model, as in JUDGETREE_LLM; None takes that of the settings."""
    embeddings: str | None = None
    """The embeddings, as in JUDGETREE_EMBEDDINGS; None takes those of the settings."""
    limit: int | None = None
    """Number of questions to score, in the order of the run; None for all."""
    concurrency: int = 8
    """Samples scored at once; ``Settings.max_concurrency`` limits the model calls."""
    cache: CacheMode = "write"
    with_sub_answers: bool = False
    """Score the passages and sub-answers shown to the reader instead of the chunks of the whole tree."""
    retry_failed: bool = False
    """Score failed samples again."""


@dataclass(frozen=True, kw_only=True)
class RagasProgress:
    """Progress of the scoring, in samples."""

    done: int
    total: int
    failed: int


@dataclass(frozen=True, kw_only=True)
class RagasSummary:
    """Summary of one call of ``score_run``. A sample is one row scored with one metric."""

    scored: int
    """Samples scored by this call, failed ones included."""
    failed: int
    """Failed samples among ``scored``."""
    kept: int
    """Samples scored by earlier calls."""
    not_applicable: int
    """Samples without a defined score (``RagasMetric.why_not``)."""
    calls: int
    """Chat calls that this call paid for."""
    cached_calls: int
    """Chat calls answered by the cache."""
    tokens: int
    """Prompt and completion tokens of ``calls``."""


@dataclass(frozen=True, kw_only=True)
class _Sample:
    metric: RagasMetric
    row: RunRow
    question: EvalQuestion


def score_run(
    folder: Path,
    options: RagasOptions = RagasOptions(),
    *,
    settings: Settings | None = None,
    on_progress: Callable[[RagasProgress], None] | None = None,
    on_setup: StageProgress | None = None,
) -> RagasSummary:
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
    run = load_run(folder)
    rows = _chosen(run.rows, options)
    questions = run.questions
    samples = [
        _Sample(metric=metric, row=row, question=questions[row.question_id])
        for row in rows
        if row.question_id in questions
        for metric in options.metrics
    ]
    store = RagasStore(folder)
    with RunStore(folder).held(), ExitStack() as resources:
        store.mend()
        cache = resources.enter_context(CompletionCache(settings.home / "completions.sqlite"))
        llm = create_llm(settings.llm_spec, settings, CallGate(settings.max_concurrency), on_progress=on_setup)
        embedder = create_embeddings(_embeddings_of(settings, run.dataset.questions), settings)
        work = _RunScorer(store, run.trees, options, llm, cache, embedder, on_progress or (lambda progress: None))
        return background_loop().run(work.run(samples))


def _chosen(rows: Sequence[RunRow], options: RagasOptions) -> list[RunRow]:
    there = dict.fromkeys(row.system for row in rows)
    if options.systems == ():
        raise SettingsError(f"--systems is empty. The run has: {', '.join(there)}.")
    if unknown := sorted(set(options.systems or ()) - set(there)):
        raise SettingsError(f"The run has no system {', '.join(unknown)}. It has: {', '.join(there)}.")
    wanted = there if options.systems is None else options.systems
    first = set(list(dict.fromkeys(row.question_id for row in rows))[: options.limit])
    return [row for row in rows if row.question_id in first and row.system in wanted]


def _embeddings_of(settings: Settings, questions: Sequence[EvalQuestion]) -> str:
    if settings.embeddings != "auto":
        return settings.embeddings
    return spec_for_language(cjk_share(question.question for question in questions))


class _RunScorer:
    def __init__(
        self,
        store: RagasStore,
        trees: TreeStore,
        options: RagasOptions,
        llm: EndpointLLM,
        cache: CompletionCache,
        embedder: Embedder,
        on_progress: Callable[[RagasProgress], None],
    ) -> None:
        self._store = store
        self._trees = trees
        self._reading = asyncio.Lock()  # TreeStore.read updates its index and is not thread-safe
        self._options = options
        self._contexts: Contexts = "sub-answers" if options.with_sub_answers else "chunks"
        self._embedder = embedder
        self._on_progress = on_progress
        self._endpoint = llm.endpoint
        self._llm = StructuredLLM(CachedLLM(llm, cache, endpoint=llm.endpoint, mode=options.cache))
        self._scorers = {metric.name: self._scorer_of(metric) for metric in options.metrics}
        self._scores: list[RagasScore] = []
        self._total = self._failed = 0

    async def run(self, samples: Sequence[_Sample]) -> RagasSummary:
        applicable = [sample for sample in samples if sample.metric.why_not(sample.row, sample.question) is None]
        done = finished(self._store.read(), retry_failed=self._options.retry_failed)
        due = [sample for sample in applicable if (row_key(sample.row), self._scorers[sample.metric.name]) not in done]
        self._total = len(due)
        self._report_progress()
        await self._work_through(iter(due))
        return RagasSummary(
            scored=len(self._scores),
            failed=self._failed,
            kept=len(applicable) - len(due),
            not_applicable=len(samples) - len(applicable),
            calls=sum(score.calls for score in self._scores),
            cached_calls=sum(score.cached_calls for score in self._scores),
            tokens=sum(score.prompt_tokens + score.completion_tokens for score in self._scores),
        )

    def _report_progress(self) -> None:
        self._on_progress(RagasProgress(done=len(self._scores), total=self._total, failed=self._failed))

    def _scorer_of(self, metric: RagasMetric) -> Scorer:
        scoring = build_scoring(metric, self._llm, self._embedder, CallMeter(node="ragas"))
        return Scorer(
            metric=metric.name,
            ragas=RAGAS_VERSION,
            prompts=prompts_version(scoring),
            model=self._llm.model,
            endpoint=self._endpoint,
            embeddings=self._embedder.name if metric.embeds else "",
            replies=self._llm.version,
            contexts=self._contexts if metric.takes_contexts else None,
            options=", ".join(f"{name} {value}" for name, value in metric.options.items()),
        )

    async def _work_through(self, samples: Iterator[_Sample]) -> None:
        async def worker() -> None:
            for sample in samples:
                score = await self._score(sample)
                self._store.append(score)
                self._scores.append(score)
                self._failed += score.value is None
                self._report_progress()

        with ungrouped(UserError):
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self._options.concurrency, self._total)):
                    group.create_task(worker())

    async def _score(self, sample: _Sample) -> RagasScore:
        started = time.perf_counter()
        meter = CallMeter(node=f"ragas_{sample.metric.name}")
        value: float | None = None
        problem = ""
        try:
            value = await self._value_of(sample, meter)
        except (JudgetreeError, ReplyProblem) as error:
            # Another error of the user would fail every other sample too.
            if isinstance(error, UserError) and not isinstance(error, LoadingError):
                raise
            problem = str(error)
        except Exception as error:
            # An error of RAGAS in one sample must not end a long scoring run.
            logger.exception("%s of question %s by %s", sample.metric.name, sample.question.id, sample.row.system)
            problem = f"{type(error).__name__}: {error}"
        return _score_of(sample, self._scorers[sample.metric.name], meter, started, value, problem)

    async def _value_of(self, sample: _Sample, meter: CallMeter) -> float:
        metric, row = sample.metric, sample.row
        evidence: tuple[str, ...] = ()
        if metric.takes_contexts:
            async with self._reading:
                tree = await asyncio.to_thread(self._trees.read, row.thread_id)
            if tree is None:
                raise LoadingError(
                    f"The run has no search tree of thread {row.thread_id}, so its evidence is unknown. Ask again "
                    "with `judgetree eval run --force`, or score metrics that need no evidence."
                )
            evidence = contexts_of(tree, self._contexts)
        scoring = build_scoring(metric, self._llm, self._embedder, meter)
        scored = await scoring.ascore(**inputs_of(metric, row, sample.question, evidence))
        return metric.checked(scored.value)


def _score_of(
    sample: _Sample, scorer: Scorer, meter: CallMeter, started: float, value: float | None, problem: str
) -> RagasScore:
    used, row = total_usage(meter.records), sample.row
    return RagasScore(
        system=row.system,
        question_id=row.question_id,
        repeat=row.repeat,
        attempt=row.attempt,
        scorer=scorer,
        value=value,
        problem=" ".join(problem.split())[:300],
        calls=used["llm_calls"],
        cached_calls=sum(record["kind"] == "chat" and record["cached"] for record in meter.records),
        prompt_tokens=used["prompt_tokens"],
        completion_tokens=used["completion_tokens"],
        embedded_texts=sum(record["kind"] == "embedding" for record in meter.records),
        seconds=round(time.perf_counter() - started, 3),
    )
