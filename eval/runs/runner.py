"""Execution of a run's jobs, which writes a row as soon as each is done."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack
from dataclasses import InitVar, dataclass
from functools import partial
from pathlib import Path

from ...graphs.stores.registry import is_postgres
from ...graphs.threads.checkpoints import open_call_journal
from ...modules.addresses import Address
from ...modules.background_loop import background_loop
from ...modules.calls.journal import CallJournal, JournaledCall
from ...modules.calls.prices import FREE, Cost, Prices
from ...modules.calls.record import NOTHING, Spend
from ...modules.errors import UserError, ungrouped
from ...modules.settings import Settings
from ..metrics.damage import OWN_FAILURES
from ..rows.store import Completeness, Place, RunRow, RunStore
from ..rows.trees import TreeStore
from .asking import Asking, JobResult, asking_here, checkpoints_of
from .jobs import Chain, Job, chains_of, leads_conversations, thread_id_of
from .limits import NO_LIMITS, SetupFailures, Spending
from .services import Services

OpenAsking = Callable[[Mapping[Place, RunRow]], AbstractAsyncContextManager[Asking]]
"""Opens what answers the jobs, given the newest rows of all questions, also those that are added to them later."""


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
    """Failed questions among ``asked``: without an answer, or with one for which a judge or reranker was of no use."""
    failure: str = ""
    """Why the first of the failed questions failed; ``""`` without failures."""
    degraded: int = 0
    """Degraded questions among ``asked``: answered, but damaged by faults."""
    unusable: int = 0
    """Questions among ``asked`` with replies that could not be used, which count as complete otherwise."""
    kept: int = 0
    """Questions finished by an earlier call."""
    kept_incomplete: int = 0
    """Failed or degraded questions among ``kept``."""
    stopped_by: str = ""
    """The limit that stopped the run early; ``""`` if none did."""
    cost: Cost = FREE
    """Cost of all attempts in the run directory so far."""
    calls: int = 0
    """Chat calls that this call paid for, those of questions that a limit left without a row included. What the cache
    answered, or the call journal of an earlier start, is not among them."""
    cached_calls: int = 0
    """Chat calls of the asked questions that the cache answered."""
    opponents: Sequence[str] = ()
    """What ``match_budget`` has found, a sentence for each opponent."""
    questions_read: Mapping[str, object] | None = None
    """What was read of a file of one's own questions (``QuestionsRead``); None for other data sets."""

    @property
    def cached_share(self) -> float:
        """Share in [0, 1] of cached calls among cached and paid ones; 0 without any."""
        made = self.calls + self.cached_calls
        return self.cached_calls / made if made else 0.0


def paid_in(folder: Path | None, settings: Settings, prices: Prices) -> Spend:
    """Return calls, tokens and money of all starts of a run, for questions without a row too; no model is called.

    In PostgreSQL, which other runs share, questions without a row are not counted.

    Raises:
        LoadingError: The rows are damaged.
    """
    if folder is None or not folder.is_dir():
        return NOTHING
    store = RunStore(folder)
    spending = Spending(NO_LIMITS, store.read_attempts(), prices=prices)
    address = checkpoints_of(store, settings)
    if not is_postgres(address):
        spending.recover(background_loop().run(_booked_in(address)))
    return spending.spent


async def _booked_in(address: Address) -> list[JournaledCall]:
    async with open_call_journal(address) as journal:
        return [] if journal is None else await journal.booked_calls()


def run_questions(
    services: Services,
    store: RunStore,
    run_id: str,
    jobs: Sequence[Job],
    *,
    spending: Spending,
    rows: Iterable[RunRow] = (),
    open_asking: OpenAsking | None = None,
    on_progress: Callable[[Progress], None] | None = None,
) -> RunSummary:
    """Do the jobs, ``experiment.concurrency`` at once, and add a row to the store after each.

    The turns of a system's own conversation are asked in order, which counts as one job at once. ``rows`` are the
    existing rows, whose conversations the turns continue.

    ``open_asking`` opens what answers the jobs; None for this process, with ``services``.

    Ctrl-C or a kill loses only the jobs in progress; plan the same jobs again from the store.

    Raises:
        ModelSetupError: As many questions as ``experiment.fail_after`` says failed, or all found an endpoint unusable:
            key, model, account or address. Each is a failed row; planning the jobs again repeats the latter.
        UserError: Another error that every question would meet: settings, a call missing in replay mode, a full disk.
            Rows written so far stay.
    """

    def open_here(newest: Mapping[Place, RunRow]) -> AbstractAsyncContextManager[Asking]:
        return asking_here(services, store, run_id, jobs, newest)

    opening, report = open_asking or open_here, on_progress or (lambda progress: None)
    work = _Run(services, store, run_id, jobs, spending, rows, opening, report, asks_here=open_asking is None)
    return background_loop().run(work.run())


@dataclass(eq=False)
class _Run:
    services: Services
    store: RunStore
    run_id: str
    jobs: Sequence[Job]
    spending: Spending
    rows: InitVar[Iterable[RunRow]]
    open_asking: OpenAsking
    on_progress: Callable[[Progress], None]
    asks_here: bool
    """Whether all calls are made, and so settled, in this process."""

    def __post_init__(self, rows: Iterable[RunRow]) -> None:
        experiment, questions = self.services.experiment, self.services.dataset.questions
        self._trees = TreeStore(self.store.folder)
        self._chains = chains_of(self.jobs, by_dialogue=leads_conversations(experiment, questions))
        self._writing = asyncio.Lock()
        self._newest: dict[Place, RunRow] = {row.place: row for row in rows}
        self._done = self._in_progress = 0
        self._paid_by_done = NOTHING
        self._ended = asyncio.Condition()
        self._counts: Counter[Completeness] = Counter()
        self._cached_calls = self._unusable = 0
        self._setup_failures = SetupFailures(experiment.fail_after)
        self._failure = ""
        self._journal: CallJournal | None = None

    async def run(self) -> RunSummary:
        self.on_progress(Progress(done=0, total=len(self.jobs)))
        async with AsyncExitStack() as closing:
            asking = await closing.enter_async_context(self.open_asking(self._newest))
            self._journal = await closing.enter_async_context(
                open_call_journal(checkpoints_of(self.store, self.services.settings))
            )
            await self._recover_books()
            before = self.spending.spent
            await asking.owe(self.spending.open_payments)
            try:
                await self._work_through(asking)
            finally:
                await asyncio.to_thread(self.store.sync)
        self._setup_failures.refuse()
        return RunSummary(
            asked=self._done,
            failed=self._counts["failed"],
            failure=self._failure,
            degraded=self._counts["degraded"],
            unusable=self._unusable,
            stopped_by=self.spending.exhausted if self._done < len(self.jobs) else "",
            cost=self.spending.cost,
            calls=(self.spending.made if self.asks_here else self.spending.spent - before).calls,
            cached_calls=self._cached_calls,
        )

    async def _recover_books(self) -> None:
        """Count the payments of questions that were interrupted before they had a row.

        All of the run's own store count, whether this start asks the question or not. In PostgreSQL, which other runs
        share, those of the questions that it asks do.
        """
        if self._journal is None:
            return
        calls = await self._journal.booked_calls()
        await self._journal.delete_accounts({call.account for call in calls} & self.spending.threads_with_row)
        own = {thread_id_of(self.run_id, job) for job in self.jobs}
        is_shared = is_postgres(checkpoints_of(self.store, self.services.settings))
        self.spending.recover(call for call in calls if not is_shared or call.account in own)

    def _is_over(self) -> bool:
        return bool(self.spending.exhausted) or self._setup_failures.is_reached

    async def _work_through(self, asking: Asking) -> None:
        waiting = iter(self._chains)

        async def worker() -> None:
            for chain in waiting:
                async with self._ended:
                    await self._ended.wait_for(partial(self._may_start, len(chain.jobs)))
                    self._in_progress += len(chain.jobs)
                try:
                    await self._ask_in_turn(chain, asking)
                finally:
                    async with self._ended:
                        self._in_progress -= len(chain.jobs)
                        self._ended.notify_all()

        with ungrouped(UserError):
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self.services.experiment.concurrency, len(self._chains))):
                    group.create_task(worker())

    def _may_start(self, further: int) -> bool:
        """Return whether the limits leave room to finish so many questions beside those in progress.

        One is always asked; of a run with limits the first alone, which shows what a question takes.
        """
        if not self._in_progress or not self.spending.is_limited or self._is_over():
            return True
        if not self._done:
            return False
        share = (self._in_progress + further) / self._done
        return self.spending.has_room_for(self._paid_by_done.times(share))

    async def _ask_in_turn(self, chain: Chain, asking: Asking) -> None:
        for job in chain.jobs:
            if self._is_over():
                return
            await self._ask(asking, job)

    async def _ask(self, asking: Asking, job: Job) -> None:
        asked = await asking.ask(job)
        if asked is None:
            return
        self.services.note_adaptations(asked.adapted)
        async with self._writing:
            await asyncio.to_thread(self._keep, asked)
        if self._journal is not None:
            await self._journal.delete_accounts([asked.row.thread_id])
        self._count(asked.row, is_asked=asked.is_new)

    def _count(self, row: RunRow, *, is_asked: bool) -> None:
        self._newest[row.place] = row
        self._paid_by_done += self.spending.add(row)
        self._done += 1
        self._counts[row.completeness] += 1
        self._unusable += not OWN_FAILURES.isdisjoint(row.damage)
        self._cached_calls += row.cached_llm_calls
        self._failure = self._failure or row.error
        if is_asked:
            has_failed = row.completeness == "failed"
            self._setup_failures.add(row.error if has_failed else None, is_unusable=row.setup_failed)
        self.on_progress(Progress(done=self._done, total=len(self.jobs), row=row))

    def _keep(self, asked: JobResult) -> None:
        if asked.tree:
            self._trees.append_json(asked.row.thread_id, asked.tree)
        self.store.append(asked.row)
        self.store.sync(at_once=False)
