"""Execution of a run's jobs, which writes a row as soon as each is done."""

from __future__ import annotations

import asyncio
import logging
import time
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import AsyncExitStack
from dataclasses import InitVar, dataclass, replace
from typing import Protocol

from ...graphs.rag.result import RagResult
from ...graphs.rag.search_tree import SearchTree
from ...graphs.session import RagSession
from ...graphs.threads.checkpoints import is_postgres, open_call_journal
from ...graphs.threads.recording import Recording
from ...modules.addresses import Address
from ...modules.background_loop import background_loop
from ...modules.calls.journal import BOOKED_TO, CallJournal
from ...modules.calls.prices import FREE, Cost, ModelUsage
from ...modules.disk import is_full_disk, writing_error
from ...modules.errors import JudgetreeError, ModelSetupError, RunLimitReached, UserError, ungrouped
from ...modules.settings import Settings
from ..rows.code_version import code_version
from ..rows.from_results import paid_for, row_of
from ..rows.store import Completeness, Place, RowTail, RunRow, RunStore
from ..rows.trees import TreeStore
from ..rows.turn_facts import TurnReply
from .claims import WorkList, open_claims
from .jobs import Chain, Job, chains_of, is_answered, leads_conversations, thread_id_of
from .limits import SetupFailures, Spending
from .services import Services
from .turn_asker import TurnAsker

logger = logging.getLogger(__name__)


@dataclass(frozen=True, kw_only=True)
class Progress:
    """Progress of a run, in questions.

    >>> Progress(done=3, total=10).row is None
    True
    """

    done: int
    total: int
    row: RunRow | None = None
    """The row that has just finished; None at the start."""


@dataclass(frozen=True, kw_only=True)
class RunSummary:
    """Summary of one call of ``run_questions``."""

    asked: int
    """Questions asked by this call."""
    failed: int
    """Failed questions among ``asked``."""
    failure: str = ""
    """Why the first of the failed questions failed; ``""`` without failures."""
    degraded: int = 0
    """Degraded questions among ``asked``: answered, but damaged by faults."""
    kept: int = 0
    """Questions finished by an earlier call, or by another process meanwhile."""
    kept_incomplete: int = 0
    """Failed or degraded questions among ``kept``."""
    stopped_by: str = ""
    """The limit that stopped the run early; ``""`` if none did."""
    cost: Cost = FREE
    """Cost of all attempts in the run directory so far."""
    calls: int = 0
    """Chat calls of the asked questions, cached ones included."""
    cached_calls: int = 0
    """Chat calls among ``calls`` that the cache answered."""

    @property
    def cached_share(self) -> float:
        """Share in [0, 1] of cached calls; 0 without calls."""
        return self.cached_calls / self.calls if self.calls else 0.0


def run_questions(
    services: Services,
    store: RunStore,
    run_id: str,
    jobs: Sequence[Job],
    *,
    spending: Spending,
    rows: Iterable[RunRow] = (),
    others: RowTail | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> RunSummary:
    """Do the jobs, ``experiment.concurrency`` at once, and add a row to the store after each.

    The turns of a system's own conversation are asked in order, which counts as one job at once. ``rows`` are the
    existing rows, whose conversations the turns continue.

    If processes share the run (``claims.can_share``), jobs of another process are left to it and waited for. ``others``
    reads its rows, starting where the jobs were planned; None for a process that works alone.

    Ctrl-C or a kill loses only the jobs in progress; plan the same jobs again from the store.

    Raises:
        ModelSetupError: As many questions as ``experiment.fail_after`` says, or all, found an endpoint unusable: key,
            model, account or address. Each is a failed row, and planning the jobs again repeats it.
        UserError: Another error that every question would meet: settings, a call missing in replay mode, a full disk.
            Rows written so far stay.
    """
    work = _Run(services, store, run_id, jobs, spending, rows, others, on_progress or (lambda progress: None))
    return background_loop().run(work.run())


def checkpoints_of(store: RunStore, settings: Settings) -> Address:
    """Return the address of a run's checkpoints and call journal: a file of the run directory, or PostgreSQL."""
    url = settings.checkpoint_url
    return url if is_postgres(url) else Address(f"sqlite:///{store.folder / 'checkpoints.sqlite'}")


class _Asker(Protocol):
    """Answers the jobs of one system and repeat."""

    async def ask(self, job: Job, *, thread_id: str) -> RagResult | TurnReply: ...

    async def aclose(self) -> None: ...


class _QuestionAsker:
    """Answers questions that stand alone."""

    def __init__(self, session: RagSession) -> None:
        self._session = session

    async def ask(self, job: Job, *, thread_id: str) -> RagResult:
        return await self._session.aask(job.question.question, thread_id=thread_id, repeat=job.repeat)

    async def aclose(self) -> None:
        await self._session.aclose()


@dataclass(eq=False)
class _Run:
    services: Services
    store: RunStore
    run_id: str
    jobs: Sequence[Job]
    spending: Spending
    rows: InitVar[Iterable[RunRow]]
    others: RowTail | None
    on_progress: Callable[[Progress], None]

    def __post_init__(self, rows: Iterable[RunRow]) -> None:
        experiment, questions = self.services.experiment, self.services.dataset.questions
        self._trees = TreeStore(self.store.folder)
        self._chains = chains_of(self.jobs, by_dialogue=leads_conversations(experiment, questions))
        self._writing = asyncio.Lock()
        self._askers: dict[tuple[str, int, bool], _Asker] = {}
        self._newest: dict[Place, RunRow] = {row.place: row for row in rows}
        self._asked_here: set[Place] = set()
        self._done = 0
        self._counts: Counter[Completeness] = Counter()
        self._calls = self._cached_calls = 0
        self._setup_failures = SetupFailures(experiment.fail_after)
        self._failure = ""
        self._journal: CallJournal | None = None

    async def run(self) -> RunSummary:
        self.on_progress(Progress(done=0, total=len(self.jobs)))
        async with AsyncExitStack() as closing:
            for place in dict.fromkeys((job.system, job.repeat, job.fresh) for job in self.jobs):
                self._askers[place] = self._open_asker(*place)
                closing.push_async_callback(self._askers[place].aclose)
            self._journal = await closing.enter_async_context(
                open_call_journal(checkpoints_of(self.store, self.services.settings))
            )
            await self._recover_books()
            claims = await closing.enter_async_context(open_claims(self.services.settings, self.run_id))
            work = WorkList(self._chains, claims, is_done=self._is_done, is_over=self._is_over)
            try:
                await self._work_through(work)
            finally:
                await asyncio.to_thread(self.store.sync)
        self._setup_failures.refuse()
        others = [
            self._newest[job.place]
            for job in self.jobs
            if job.place not in self._asked_here and is_answered(job, self._newest)
        ]
        elsewhere = len(others)
        if elsewhere:
            self.on_progress(Progress(done=self._done + elsewhere, total=len(self.jobs)))
        return RunSummary(
            asked=self._done,
            failed=self._counts["failed"],
            failure=self._failure,
            degraded=self._counts["degraded"],
            kept=elsewhere,
            kept_incomplete=sum(row.completeness != "complete" for row in others),
            stopped_by=self.spending.exhausted if self._done + elsewhere < len(self.jobs) else "",
            cost=self.spending.cost,
            calls=self._calls,
            cached_calls=self._cached_calls,
        )

    async def _recover_books(self) -> None:
        """Count the payments of questions that were interrupted before they had a row."""
        if self._journal is None:
            return
        calls = await self._journal.booked_calls()
        with_rows = {row.thread_id for row in self._newest.values()}
        await self._journal.forget_booked({call.booked_to for call in calls} & with_rows)
        without_rows = {thread_id_of(self.run_id, job) for job in self.jobs} - with_rows
        self.spending.recover(call for call in calls if call.booked_to in without_rows)

    def _is_over(self) -> bool:
        return bool(self.spending.exhausted) or self._setup_failures.is_reached

    def _is_done(self, chain: Chain) -> bool:
        """Count the rows that other processes have written since the last call, then look for those of the chain."""
        for row in self.others.read_new() if self.others else ():
            if row.place not in self._asked_here:
                self.spending.add(row)
                self._newest[row.place] = row
        return chain.is_done(self._newest)

    def _open_asker(self, system: str, repeat: int, fresh: bool) -> _Asker:
        changes = {"checkpoints": checkpoints_of(self.store, self.services.settings), "durability": "exit"}
        settings = self.services.settings.model_copy(update=changes)
        recording = Recording.of(settings, file=self.store.transcripts_file)
        if self.services.dataset.is_conversational:
            return TurnAsker(
                self.services,
                system,
                repeat,
                fresh=fresh,
                settings=settings,
                recording=recording,
                run_id=self.run_id,
                newest=self._newest,
            )
        context = self.services.context(system, repeat, fresh=fresh)
        return _QuestionAsker(RagSession(system=system, context=context, settings=settings, recording=recording))

    async def _work_through(self, work: WorkList) -> None:
        async def worker() -> None:
            while (chain := await work.take()) is not None:
                await self._ask_in_turn(chain)
                await work.finish(chain)

        with ungrouped(UserError):
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self.services.experiment.concurrency, len(self._chains))):
                    group.create_task(worker())

    async def _ask_in_turn(self, chain: Chain) -> None:
        for job in chain.jobs:
            if self._is_over():
                return
            if not is_answered(job, self._newest):
                await self._ask(job)

    async def _ask(self, job: Job) -> None:
        self._asked_here.add(job.place)
        started = time.perf_counter()
        thread_id = thread_id_of(self.run_id, job)
        BOOKED_TO.set(thread_id)
        try:
            result, failure = await self._answer(job, thread_id)
        except RunLimitReached:  # the thread stays open, so that a run with a higher limit resumes it
            self._asked_here.discard(job.place)
            return
        row = row_of(
            job.question,
            result,
            place=(job.system, job.repeat, job.attempt),
            thread_id=thread_id,
            error=_reason(result, failure),
            # A turn is measured after its answer, which must not count.
            seconds=result.wall_s if isinstance(result, TurnReply) else time.perf_counter() - started,
            key_field=self.services.dataset.key_field,
            local_models=self.services.local_models,
        )
        if result is None:
            row = replace(row, paid=await self._journaled(thread_id))
        row = replace(row, setup_failed=isinstance(failure, ModelSetupError), code=code_version()["id"])
        async with self._writing:
            await asyncio.to_thread(self._keep, row, result.tree if result is not None else None)
        if self._journal is not None:
            await self._journal.forget_booked([thread_id])
        self._count(row, is_asked=not (isinstance(result, TurnReply) and result.is_new_thread))

    async def _journaled(self, thread_id: str) -> tuple[ModelUsage, ...] | None:
        """Add up the payments of a question from the journal; None without one."""
        if self._journal is None:
            return None
        calls = await self._journal.booked_calls(thread_id)
        return paid_for((record for call in calls for record in call.records), self.services.local_models)

    async def _answer(self, job: Job, thread_id: str) -> tuple[RagResult | TurnReply | None, Exception | None]:
        """Return the answer to a question, or the error that failed it; raises what every other question would meet."""
        try:
            return await self._askers[job.system, job.repeat, job.fresh].ask(job, thread_id=thread_id), None
        except ModelSetupError as failure:
            return None, failure
        except UserError:
            raise
        except Exception as failure:
            if is_full_disk(failure):
                raise writing_error("The state of a question", failure) from failure
            # An error of one question must not end a long run.
            logger.exception("question %s to %s failed", job.question.id, job.system)
            return None, failure

    def _count(self, row: RunRow, *, is_asked: bool) -> None:
        self._newest[row.place] = row
        self.spending.add(row)
        self._done += 1
        self._counts[row.completeness] += 1
        self._calls += sum(usage.calls for usage in row.uncached_chat_usage)
        self._cached_calls += sum(usage.cached_calls for usage in row.chat_usage)
        self._failure = self._failure or row.error
        if is_asked:
            self._setup_failures.add(row.error if row.setup_failed else None)
        self.on_progress(Progress(done=self._done, total=len(self.jobs), row=row))

    def _keep(self, row: RunRow, tree: SearchTree | None) -> None:
        with self.store.appending():
            if tree is not None:
                self._trees.append(row.thread_id, tree)
            self.store.append(row)
            self.store.sync(at_once=False)


def _reason(result: RagResult | TurnReply | None, failure: Exception | None) -> str:
    """Return why a question failed; ``""`` if it did not."""
    if failure is None:
        return result.error if result is not None else ""
    return str(failure) if isinstance(failure, JudgetreeError) else f"{type(failure).__name__}: {failure}"
