"""Asks the questions of a data set of each system, and writes a row as each is done."""

from __future__ import annotations

import asyncio
import logging
import time
import uuid
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass

from ..graphs.context import Limits, RagContext
from ..graphs.result import Mode, RagResult
from ..graphs.session import RagSession
from ..modules.background_loop import background_loop
from ..modules.completion_cache import CachedLLM, CompletionCache
from ..modules.errors import UserError
from ..modules.judge_factory import create_judge
from ..modules.llm import CallGate, EndpointLLM
from ..modules.llm_factory import create_judge_llm, create_llm
from ..modules.retriever import Retriever
from ..modules.settings import Settings
from .corpora import open_corpus
from .experiment import RETRIEVING, Experiment
from .questions import Dataset, EvalQuestion
from .rows import row_of
from .run_store import RunRow, RunStore

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
    """Questions that an earlier call had finished."""
    stopped_by: str = ""
    """The limit that ended the run before all was asked; ``""`` if none did."""


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
        reader = self._cached(self._reader, repeat)
        judge = None
        if system == "judge":
            judge = create_judge(
                self.experiment.judge, self._cached(self._judge_llm, repeat), spec=self.settings.judge_spec
            )
        limits = Limits(
            max_rec_depth=self.experiment.max_rec_depth,
            max_llm_calls=self.experiment.max_llm_calls,
            judge_leaves=self.experiment.judge_leaves,
        )
        retriever = self._retriever if system in RETRIEVING else None
        return RagContext(reader=reader, retriever=retriever, judge=judge, limits=limits)

    def _open(self) -> None:
        experiment, settings = self.experiment, self.settings
        if RETRIEVING.intersection(experiment.systems):
            index = self._resources.enter_context(open_corpus(self.dataset, settings, on_progress=self._on_progress))
            self._retriever = Retriever(index, topk=experiment.topk, search_type=experiment.search_type)
            self._retriever.check_args()
        gate = CallGate(settings.max_concurrency)
        self._reader = create_llm(settings.llm_spec, settings, gate, on_progress=self._on_progress)
        if "judge" in experiment.systems:
            self._judge_llm = create_judge_llm(self._reader, settings, gate, on_progress=self._on_progress)
        self._cache = self._resources.enter_context(CompletionCache(settings.home / "completions.sqlite"))

    def _cached(self, llm: EndpointLLM, repeat: int) -> CachedLLM:
        return CachedLLM(llm, self._cache, mode=self.experiment.cache, repeat=repeat)


class Spending:
    """What a run has paid so far, against what it may."""

    def __init__(self, experiment: Experiment, attempts: Iterable[RunRow] = ()) -> None:
        """``attempts``: what was asked before, which counts too."""
        self._limits = {"max_calls": experiment.max_calls, "max_tokens": experiment.max_tokens}
        self._spent = dict.fromkeys(self._limits, 0)
        for row in attempts:
            self.add(row)

    def add(self, row: RunRow) -> None:
        """Count what one question paid."""
        if row.tree is not None:
            self._spent["max_calls"] += row.tree.chat_calls
            self._spent["max_tokens"] += row.tree.prompt_tokens + row.tree.completion_tokens

    @property
    def exhausted(self) -> str:
        """The limit that is reached, as "max_calls=100"; ``""`` while there is none."""
        for name, limit in self._limits.items():
            if limit is not None and self._spent[name] >= limit:
                return f"{name}={limit}"
        return ""


def run_questions(
    services: Services,
    store: RunStore,
    run_id: str,
    jobs: Sequence[Job],
    *,
    spending: Spending,
    on_progress: Callable[[Progress], None] | None = None,
) -> RunSummary:
    """Ask what ``jobs`` name, ``experiment.concurrency`` at once, and add a row to the store as each is done.

    Ctrl-C or a kill loses only what is under way; the same jobs can be planned again from the store.

    Raises:
        UserError: Something to mend that every question would meet: key, model name, settings, a replay's missing
            call. Rows written until then stay.
    """
    work = _Work(services, store, run_id, jobs, spending, on_progress or _tell_nobody)
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
        on_progress: Callable[[Progress], None],
    ) -> None:
        self._services = services
        self._store = store
        self._run_id = run_id
        self._jobs = jobs
        self._on_progress = on_progress
        self._sessions: dict[tuple[Mode, int], RagSession] = {}
        self._spending = spending
        self._done = self._failed = 0

    async def run(self) -> RunSummary:
        self._on_progress(Progress(done=0, total=len(self._jobs)))
        async with AsyncExitStack() as closing:
            for place in dict.fromkeys((job.system, job.repeat) for job in self._jobs):
                self._sessions[place] = self._open_session(*place)
                closing.push_async_callback(self._sessions[place].aclose)
            await self._work_through(iter(self._jobs))
        return RunSummary(
            asked=self._done,
            failed=self._failed,
            stopped_by=self._spending.exhausted if self._done < len(self._jobs) else "",
        )

    def _open_session(self, system: Mode, repeat: int) -> RagSession:
        checkpoints = f"sqlite:///{self._store.folder / 'checkpoints.sqlite'}"
        settings = self._services.settings.model_copy(update={"checkpoints": checkpoints, "durability": "exit"})
        return RagSession(mode=system, context=self._services.context(system, repeat), settings=settings)

    async def _work_through(self, jobs: Iterator[Job]) -> None:
        async def worker() -> None:
            for job in jobs:
                if self._spending.exhausted:
                    return
                await self._ask(job)

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
        )
        self._store.append(row)
        self._spending.add(row)
        self._done += 1
        self._failed += row.status == "failed"
        self._on_progress(Progress(done=self._done, total=len(self._jobs), row=row))


def _first(errors: BaseExceptionGroup[UserError]) -> UserError:
    """The first error that is no group itself."""
    inner = errors.exceptions[0]
    return _first(inner) if isinstance(inner, BaseExceptionGroup) else inner
