"""Claims on the questions of a run that several processes share.

A process claims a question by a lock in PostgreSQL before it asks, and frees it once the row is written. The questions
of a killed process are free as soon as the server sees its connection closed.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable
from contextlib import AsyncExitStack, asynccontextmanager

from ...graphs.threads.checkpoints import is_postgres, open_checkpointer
from ...modules.background_loop import background_loop
from ...modules.index.connection import is_address
from ...modules.locks.locks import Holder, Locks
from ...modules.locks.postgres import PostgresLocks
from ...modules.settings import Settings
from ..rows.store import Place
from .jobs import Chain

_ASK_AGAIN_S = 0.5
"""Seconds between two attempts at the claims of other processes."""
_REMEDY = "Finished rows are kept; check JUDGETREE_CHECKPOINTS and that it runs, then run the same command."


def can_share(settings: Settings) -> bool:
    """Whether several processes can work on one run: Milvus is a server, and checkpoints are in PostgreSQL."""
    return is_postgres(settings.checkpoint_url) and is_address(settings.milvus_address)


def prepare_checkpoints(settings: Settings) -> None:
    """Make the tables of a PostgreSQL checkpoint store, which only one process may do at a time.

    Raises:
        SettingsError: The store cannot be opened.
        DependencyError: The extra ``postgres`` is not installed.
    """

    async def opened() -> None:
        async with open_checkpointer(settings.checkpoint_url):
            pass

    if is_postgres(settings.checkpoint_url):
        background_loop().run(opened())


class Claims:
    """Claims of one process on the questions of a run; another process cannot take a place until it is freed."""

    def __init__(self, locks: Locks, run_id: str, holder: Holder) -> None:
        self._locks = locks
        self._run_id = run_id
        self._holder = holder

    async def take(self, place: Place) -> bool:
        """Claim a question for this process; False if another process has it. See ``Locks.take``."""
        return await self._locks.take(claim_name(self._run_id, place), self._holder)

    async def free(self, place: Place) -> None:
        """Give a claim back. See ``Locks.free``."""
        await self._locks.free(claim_name(self._run_id, place), self._holder)


def claim_name(run_id: str, place: Place) -> str:
    """Return the name of the lock on a question of a run."""
    return "\x00".join((run_id, *map(str, place)))


@asynccontextmanager
async def open_claims(settings: Settings, run_id: str) -> AsyncIterator[Claims]:
    """Open the claims of this process on the questions of a run; the end of the block frees all of them.

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


class WorkList:
    """Gives each chain to one worker of one process, in order except for those that other processes have."""

    def __init__(
        self, chains: Iterable[Chain], claims: Claims, *, is_done: Callable[[Chain], bool], is_over: Callable[[], bool]
    ) -> None:
        """``is_done``: whether a chain's rows are written, by any process. ``is_over``: whether to give no more."""
        self._open = deque(chains)
        self._claims = claims
        self._is_done = is_done
        self._is_over = is_over
        self._giving = asyncio.Lock()

    async def take(self) -> Chain | None:
        """Claim the next chain; None once all are given or done.

        While other processes have all that is left, it waits: the chain of a process that dies becomes free.
        """
        async with self._giving:
            while self._open and not self._is_over():
                for _ in range(len(self._open)):
                    chain = self._open.popleft()
                    if not await self._claims.take(chain.place):
                        self._open.append(chain)
                    # Asked under the claim: the process that had it before wrote its rows before it freed the claim.
                    elif self._is_done(chain):
                        await self._claims.free(chain.place)
                    else:
                        return chain
                if self._open:
                    await asyncio.sleep(_ASK_AGAIN_S)
        return None

    async def finish(self, chain: Chain) -> None:
        """Free a chain whose rows are written."""
        await self._claims.free(chain.place)
