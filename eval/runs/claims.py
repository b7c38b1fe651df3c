"""Who works on which question, where several processes share a run.

A question is claimed by a session-level advisory lock of PostgreSQL before it is asked, and freed once its row is
written. Such a lock ends with its connection, so what a killed process was at is free again within the moment in which
the server sees the connection closed; nothing has to be kept alive or swept.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import asynccontextmanager
from typing import Generic, Protocol, TypeVar

from ...graphs.threads.checkpoints import is_postgres, open_checkpointer
from ...modules.advisory_locks import AdvisoryLocks, advisory_key, open_advisory_locks
from ...modules.background_loop import background_loop
from ...modules.index.connection import is_address
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


class Claims(Protocol):
    """Keeps two processes from asking the same question at once."""

    async def take(self, place: Place) -> bool:
        """Whether the question is this process's now; False while another one has it."""
        ...

    async def free(self, place: Place) -> None:
        """Give back what was taken."""
        ...


class SoleWorker:
    """The claims of a process that works alone: all of them hold."""

    async def take(self, place: Place) -> bool:
        """True."""
        return True

    async def free(self, place: Place) -> None:
        """Do nothing."""


class PostgresClaims:
    """Claims as advisory locks of one connection, by run and place. Each place may be taken once until it is freed."""

    def __init__(self, locks: AdvisoryLocks, run_id: str) -> None:
        self._locks = locks
        self._run_id = run_id

    async def take(self, place: Place) -> bool:
        """See ``Claims.take``. One round trip.

        Raises:
            SettingsError: The connection is lost, and with it every claim.
        """
        return await self._locks.take(lock_key(self._run_id, place))

    async def free(self, place: Place) -> None:
        """See ``Claims.free``. One round trip.

        Raises:
            SettingsError: See ``take``.
        """
        await self._locks.free(lock_key(self._run_id, place))


def lock_key(run_id: str, place: Place) -> int:
    """The 64-bit number, signed as PostgreSQL's bigint is, under which a question of a run is claimed."""
    system, question_id, repeat = place
    return advisory_key(run_id, system, question_id, str(repeat))


@asynccontextmanager
async def open_claims(settings: Settings, run_id: str) -> AsyncIterator[Claims]:
    """The claims of this process on the questions of a run; all are freed at the end, however it comes.

    Raises:
        SettingsError: PostgreSQL cannot be reached.
        DependencyError: The extra ``postgres`` is not installed.
    """
    if not can_share(settings):
        yield SoleWorker()
        return
    async with open_advisory_locks(settings.checkpoint_url, remedy=_REMEDY) as locks:
        yield PostgresClaims(locks, run_id)


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
