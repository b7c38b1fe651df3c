"""Asks the questions of a data set of each system, and writes a row as each is done."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass

from ...graphs.context import Limits, RagContext
from ...graphs.result import Mode, RagResult
from ...graphs.session import RagSession
from ...graphs.systems import SYSTEMS
from ...modules.background_loop import background_loop
from ...modules.completion_cache import CachedLLM, CompletionCache
from ...modules.errors import UserError
from ...modules.index import Index
from ...modules.judge import Judge
from ...modules.judge_factory import create_judge
from ...modules.llm import CallGate, ChatLLM, EndpointLLM
from ...modules.llm_factory import create_judge_llm, create_llm, is_local
from ...modules.prices import FREE, Cost
from ...modules.retriever import Retriever
from ...modules.settings import Settings
from ..datasets.questions import Dataset, EvalQuestion
from .claims import WorkList, is_postgres, open_claims
from .corpora import open_collection, open_corpus
from .experiment import RETRIEVING, Experiment
from .rows import row_of
from .spending import Spending
from .store import RowTail, RunRow, RunStore
from .trees import TreeStore

logger = logging.getLogger(__name__)

_NAMESPACE = uuid.UUID("6a756467-6574-7265-6500-000000000003")


@dataclass(frozen=True, kw_only=True)
class Progress:
    """How far a run is."""

    done: int
    total: int
    row: RunRow | None = None
    """The one that has just been finished; None at the start."""


@dataclass(frozen=True, kw_only=True)
class RunSummary:
    """What one call of ``run_questions`` did."""

    asked: int
    """Questions asked now."""
    failed: int
    """Of those asked now."""
    kept: int = 0
    """Questions that an earlier call, or another process meanwhile, has finished."""
    stopped_by: str = ""
    """The limit that ended the run before all was asked; ``""`` if none did."""
    cost: Cost = FREE
    """What all attempts of the run directory have cost until now."""


@dataclass(frozen=True, kw_only=True)
class Job:
    """One question to one system."""

    system: Mode
    question: EvalQuestion
    repeat: int
    attempt: int

    @property
    def place(self) -> tuple[str, str, int]:
        """As in ``RunRow.place``."""
        return (self.system, self.question.id, self.repeat)


def plan_jobs(
    experiment: Experiment,
    questions: Sequence[EvalQuestion],
    rows: Sequence[RunRow],
    *,
    retry_failed: bool = False,
    force: bool = False,
) -> list[Job]:
    """What is still to be asked, question by question, so that systems can be compared at any moment.

    ``retry_failed`` asks failed questions again, ``force`` all of them, each as a new attempt.
    """
    newest = {row.place: row for row in rows}
    jobs = []
    for repeat in range(experiment.repeats):
        for question in questions:
            for system in experiment.systems:
                row = newest.get((system, question.id, repeat))
                again = row is not None and (force or (retry_failed and row.status == "failed"))
                if row is None or again:
                    attempt = row.attempt + 1 if row is not None else 0
                    jobs.append(Job(system=system, question=question, repeat=repeat, attempt=attempt))
    return jobs


def thread_id_of(run_id: str, job: Job) -> str:
    """The thread of a job: the same one whenever the same run comes to it again."""
    parts = (run_id, job.system, job.question.id, str(job.repeat), str(job.attempt))
    return str(uuid.uuid5(_NAMESPACE, "\x00".join(parts)))


class Services:
    """What all systems of a run share: index, models, their cache and the cap on calls. Open it in a ``with``."""

    def __init__(
        self,
        experiment: Experiment,
        dataset: Dataset,
        settings: Settings,
        *,
        on_progress: Callable[[int, int, str], None] | None = None,
    ) -> None:
        """``on_progress`` is told (done, total, stage) while the corpus is indexed or a local model is made ready."""
        self.experiment = experiment
        self.dataset = dataset
        self.settings = settings
        self._on_progress = on_progress
        self._resources = ExitStack()
        self._retriever: Retriever | None = None
        self.index: Index | None = None
        """What is searched, once it is open; None where no system retrieves."""
        self.judge: Judge | None = None
        """How chunks are judged, without the cache; None where no system judges."""
        self.local_models: frozenset[str] = frozenset()
        """Names of the chat models that run in this process."""

    def __enter__(self) -> Services:
        try:
            self._open()
        except BaseException:
            self._resources.close()
            raise
        return self

    def __exit__(self, *exc_info: object) -> None:
        self._resources.close()

    def context(self, system: Mode, repeat: int) -> RagContext:
        """The services of one system; each repeat has model answers of its own."""
        judge = self._create_judge(self._cached(self._judge_llm, repeat)) if SYSTEMS[system].judges else None
        limits = Limits(
            max_rec_depth=self.experiment.max_rec_depth,
            max_llm_calls=self.experiment.max_llm_calls,
            judge_leaves=self.experiment.judge_leaves,
        )
        retriever = self._retriever if system in RETRIEVING else None
        return RagContext(reader=self._cached(self._reader, repeat), retriever=retriever, judge=judge, limits=limits)

    def _open(self) -> None:
        experiment, settings = self.experiment, self.settings
        if RETRIEVING.intersection(experiment.systems):
            self.index = self._resources.enter_context(self._open_index())
            self._retriever = Retriever(
                self.index,
                topk=experiment.topk,
                search_type=experiment.search_type,
                ranker_type=experiment.ranker_type,
                ranker_params=experiment.ranker_params,
            )
            self._retriever.check_args()
        gate = CallGate(settings.max_concurrency)
        self._reader = create_llm(settings.llm_spec, settings, gate, on_progress=self._on_progress)
        named = [(settings.llm_spec, self._reader)]
        if any(SYSTEMS[system].judges for system in experiment.systems):
            self._judge_llm = create_judge_llm(self._reader, settings, gate, on_progress=self._on_progress)
            named.append((settings.judge_spec, self._judge_llm))
            self.judge = self._create_judge(self._judge_llm)
        self.local_models = frozenset(llm.model for spec, llm in named if is_local(spec))
        self._cache = self._resources.enter_context(CompletionCache(settings.home / "completions.sqlite"))

    def _open_index(self) -> Index:
        if self.experiment.corpus is not None:
            return open_collection(self.experiment.corpus, self.settings)
        return open_corpus(self.dataset, self.settings, on_progress=self._on_progress)

    def _create_judge(self, llm: ChatLLM) -> Judge:
        return create_judge(self.experiment.judge, llm, spec=self.settings.judge_spec, settings=self.settings)

    def _cached(self, llm: EndpointLLM, repeat: int) -> CachedLLM:
        return CachedLLM(llm, self._cache, mode=self.experiment.cache, repeat=repeat)


def run_questions(
    services: Services,
    store: RunStore,
    run_id: str,
    jobs: Sequence[Job],
    *,
    spending: Spending,
    others: RowTail | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> RunSummary:
    """Ask what ``jobs`` name, ``experiment.concurrency`` at once, and add a row to the store as each is done.

    Where processes share the run (see ``claims.can_share``), those that another one is at are left to it, and waited
    for. ``others`` reads the rows on from where the jobs were planned; None if nobody else can write any.

    Ctrl-C or a kill loses only what is under way; the same jobs can be planned again from the store.

    Raises:
        UserError: Something to mend that every question would meet: key, model name, settings, a replay's missing
            call. Rows written until then stay.
    """
    work = _Work(services, store, run_id, jobs, spending, others, on_progress or _tell_nobody)
    return background_loop().run(work.run())


def _tell_nobody(progress: Progress) -> None:
    pass


class _Work:
    def __init__(
        self,
        services: Services,
        store: RunStore,
        run_id: str,
        jobs: Sequence[Job],
        spending: Spending,
        others: RowTail | None,
        on_progress: Callable[[Progress], None],
    ) -> None:
        self._services = services
        self._store = store
        self._trees = TreeStore(store.folder)
        self._run_id = run_id
        self._jobs = jobs
        self._on_progress = on_progress
        self._sessions: dict[tuple[Mode, int], RagSession] = {}
        self._spending = spending
        self._others = others
        self._asked_here: set[tuple[str, str, int]] = set()
        self._done = self._failed = 0

    async def run(self) -> RunSummary:
        self._on_progress(Progress(done=0, total=len(self._jobs)))
        async with AsyncExitStack() as closing:
            for place in dict.fromkeys((job.system, job.repeat) for job in self._jobs):
                self._sessions[place] = self._open_session(*place)
                closing.push_async_callback(self._sessions[place].aclose)
            claims = await closing.enter_async_context(open_claims(self._services.settings, self._run_id))
            work = WorkList(self._jobs, claims, new_rows=self._rows_of_others, is_over=self._is_over)
            await self._work_through(work)
        if work.done_elsewhere:
            self._on_progress(Progress(done=self._done + work.done_elsewhere, total=len(self._jobs)))
        return RunSummary(
            asked=self._done,
            failed=self._failed,
            kept=work.done_elsewhere,
            stopped_by=self._spending.exhausted if self._done + work.done_elsewhere < len(self._jobs) else "",
            cost=self._spending.cost,
        )

    def _is_over(self) -> bool:
        return bool(self._spending.exhausted)

    def _rows_of_others(self) -> Iterator[RunRow]:
        for row in self._others.read_new() if self._others else ():
            if row.place not in self._asked_here:
                self._spending.add(row)
                yield row

    def _open_session(self, system: Mode, repeat: int) -> RagSession:
        checkpoints = self._services.settings.checkpoint_url
        if not is_postgres(checkpoints):
            checkpoints = f"sqlite:///{self._store.folder / 'checkpoints.sqlite'}"
        settings = self._services.settings.model_copy(update={"checkpoints": checkpoints, "durability": "exit"})
        return RagSession(mode=system, context=self._services.context(system, repeat), settings=settings)

    async def _work_through(self, work: WorkList[Job]) -> None:
        async def worker() -> None:
            while (job := await work.take()) is not None:
                self._asked_here.add(job.place)
                await self._ask(job)
                await work.finish(job)

        try:
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self._services.experiment.concurrency, len(self._jobs))):
                    group.create_task(worker())
        except* UserError as errors:
            raise _first(errors) from None

    async def _ask(self, job: Job) -> None:
        started = time.perf_counter()
        thread_id = thread_id_of(self._run_id, job)
        result: RagResult | None = None
        error = ""
        try:
            session = self._sessions[job.system, job.repeat]
            result = await session.aask(job.question.question, thread_id=thread_id, repeat=job.repeat)
            error = result.error
        except UserError:
            raise
        except Exception as failure:
            # One question's bad luck, whatever it is, must not end a night's run: it is counted, and shown.
            logger.exception("question %s to %s failed", job.question.id, job.system)
            error = f"{type(failure).__name__}: {failure}"
        row = row_of(
            job.question,
            result,
            place=(job.system, job.repeat, job.attempt),
            thread_id=thread_id,
            error=error,
            seconds=time.perf_counter() - started,
            key_field=self._services.dataset.key_field,
            local_models=self._services.local_models,
        )
        with self._store.appending():
            if result is not None:
                self._trees.append(thread_id, result.tree)
            self._store.append(row)
        self._spending.add(row)
        self._done += 1
        self._failed += row.status == "failed"
        self._on_progress(Progress(done=self._done, total=len(self._jobs), row=row))


def _first(errors: BaseExceptionGroup[UserError]) -> UserError:
    """The first error that is no group itself."""
    inner = errors.exceptions[0]
    return _first(inner) if isinstance(inner, BaseExceptionGroup) else inner
