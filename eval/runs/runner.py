"""Asks the questions of a data set of each system, and writes a row as each is done."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass

from ...graphs.checkpoints import is_postgres
from ...graphs.result import Mode, RagResult
from ...graphs.session import RagSession
from ...modules.background_loop import background_loop
from ...modules.errors import UserError, ungrouped
from ...modules.prices import FREE, Cost
from .claims import WorkList, open_claims
from .jobs import Job, thread_id_of
from .rows import row_of
from .services import Services
from .spending import Spending
from .store import RowTail, RunRow, RunStore
from .trees import TreeStore

logger = logging.getLogger(__name__)


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

        with ungrouped(UserError):
            async with asyncio.TaskGroup() as group:
                for _ in range(min(self._services.experiment.concurrency, len(self._jobs))):
                    group.create_task(worker())

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
