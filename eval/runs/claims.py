"""Who works on which question, where several processes share a run.

A question is claimed by a lock in PostgreSQL before it is asked, and freed once its row is written. What a killed
process was at is free again as soon as the server sees its connection closed; nothing has to be kept alive or swept.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Generic, Protocol, TypeVar

from ...graphs.threads.checkpoints import is_postgres, open_checkpointer
from ...modules.background_loop import background_loop
from ...modules.index.connection import is_address
from ...modules.locks.locks import Holder, Locks
from ...modules.locks.postgres import PostgresLocks
from ...modules.settings import Settings

Place = tuple[str, str, int]
"""System, what is asked of it (a question's id, or a dialogue's), and repeat."""

_ASK_AGAIN_S = 0.5
"""Between two looks at questions that other processes are at."""
_REMEDY = "Finished rows are kept; check JUDGETREE_CHECKPOINTS and that it runs, then the same command goes on."


def can_share(settings: Settings) -> bool:
    """Whether several processes can work on one run: Milvus is a server, and checkpoints are in PostgreSQL."""
    return is_postgres(settings.checkpoint_url) and is_address(settings.milvus_address)


def prepare_checkpoints(settings: Settings) -> None:
    """Make the tables of a PostgreSQL checkpoint store; two sessions that make them at once get in each other's way.

    Raises:
        SettingsError: It cannot be opened.
        DependencyError: The extra ``postgres`` is not installed.
    """

    async def opened() -> None:
        async with open_checkpointer(settings.checkpoint_url):
            pass

    if is_postgres(settings.checkpoint_url):
        background_loop().run(opened())


class Claims:
    """Keeps two processes from asking the same question at once. Each place is taken once until it is freed."""

    def __init__(self, locks: Locks, run_id: str, holder: Holder) -> None:
        self._locks = locks
        self._run_id = run_id
        self._holder = holder

    async def take(self, place: Place) -> bool:
        """Whether the question is this process's now; False while another one has it. See ``Locks.take``."""
        return await self._locks.take(claim_name(self._run_id, place), self._holder)

    async def free(self, place: Place) -> None:
        """Give back what was taken. See ``Locks.free``."""
        await self._locks.free(claim_name(self._run_id, place), self._holder)


def claim_name(run_id: str, place: Place) -> str:
    """The name of the lock on a question of a run."""
    return "\x00".join((run_id, *map(str, place)))


@asynccontextmanager
async def open_claims(settings: Settings, run_id: str) -> AsyncIterator[Claims]:
    """The claims of this process on the questions of a run; all are freed at the end, however it comes.

    Raises:
        SettingsError: PostgreSQL cannot be reached, or was lost, which cancels the current task within seconds.
        DependencyError: The extra ``postgres`` is not installed.
    """
    async with AsyncExitStack() as closing:
        locks, holder = Locks(), Holder()
        if can_share(settings):
            locks = in_postgres = PostgresLocks(settings.checkpoint_url, remedy=_REMEDY)
            closing.push_async_callback(locks.aclose)
            await in_postgres.connect()
        await closing.enter_async_context(holder.ending_when_lost())
        yield Claims(locks, run_id, holder)


class Claimable(Protocol):
    """What a list of work deals out."""

    @property
    def place(self) -> Place:
        """What nobody else may be at."""
        ...

    @property
    def attempt(self) -> int:
        """Once this attempt, or a later one, is known as done, so is this."""
        ...


J = TypeVar("J", bound=Claimable)


class WorkList(Generic[J]):
    """Deals out jobs, each to one worker of one process, in their order as far as others leave it."""

    def __init__(
        self,
        jobs: Iterable[J],
        claims: Claims,
        *,
        new_rows: Callable[[], Iterable[Claimable]],
        is_over: Callable[[], bool],
    ) -> None:
        """``new_rows`` gives what is done since it was last called, whoever did it; ``is_over`` ends the dealing."""
        self._open = deque(jobs)
        self._claims = claims
        self._new_rows = new_rows
        self._is_over = is_over
        self._newest: dict[Place, int] = {}
        self._dealing = asyncio.Lock()
        self.done_elsewhere = 0
        """Jobs that another process turned out to have done."""

    async def take(self) -> J | None:
        """The next job, claimed for the caller. None once all are taken and none is left to another process.

        While others have all that is left, their jobs are waited for: one whose process dies becomes free.
        """
        async with self._dealing:
            while self._open and not self._is_over():
                for _ in range(len(self._open)):
                    job = self._open.popleft()
                    if not await self._claims.take(job.place):
                        self._open.append(job)
                    elif self._is_done(job):
                        self.done_elsewhere += 1
                        await self._claims.free(job.place)
                    else:
                        return job
                if self._open:
                    await asyncio.sleep(_ASK_AGAIN_S)
        return None

    async def finish(self, job: J) -> None:
        """Free a job whose row is written."""
        await self._claims.free(job.place)

    def _is_done(self, job: J) -> bool:
        # Read only now: whoever had the claim before has written its row before giving it back.
        for row in self._new_rows():
            self._newest[row.place] = max(row.attempt, self._newest.get(row.place, row.attempt))
        return self._newest.get(job.place, -1) >= job.attempt
