"""Who works on which question, where several processes share a run.

A question is claimed by a session-level advisory lock of PostgreSQL before it is asked, and freed once its row is
written. Such a lock ends with its connection, so what a killed process was at is free again within the moment in which
the server sees the connection closed; nothing has to be kept alive or swept.
"""

from __future__ import annotations

import asyncio
import hashlib
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterable, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING, Generic, Protocol, TypeVar

from ...graphs.checkpoints import is_postgres, open_checkpointer
from ...modules.background_loop import background_loop
from ...modules.errors import DependencyError, SettingsError
from ...modules.milvus_connection import is_address
from ...modules.settings import Settings, without_password
from .store import RunRow

if TYPE_CHECKING:
    from psycopg import AsyncConnection

Place = tuple[str, str, int]
"""As in ``RunRow.place``."""

_ASK_AGAIN_S = 0.5
"""Between two looks at questions that other processes are at."""
_CONNECT_TIMEOUT_S = 10
# A host that vanishes does not close its connections; by default PostgreSQL notices after two hours.
_KEEPALIVES = (("tcp_keepalives_idle", 30), ("tcp_keepalives_interval", 10), ("tcp_keepalives_count", 3))


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

    def __init__(self, connection: AsyncConnection, run_id: str, *, url: str) -> None:
        """``connection`` commits by itself; ``url`` is what messages call it."""
        self._connection = connection
        self._run_id = run_id
        self._url = url

    async def take(self, place: Place) -> bool:
        """See ``Claims.take``. One round trip.

        Raises:
            SettingsError: The connection is lost, and with it every claim.
        """
        return await self._ask("SELECT pg_try_advisory_lock(%s)", place)

    async def free(self, place: Place) -> None:
        """See ``Claims.free``. One round trip.

        Raises:
            SettingsError: See ``take``.
        """
        await self._ask("SELECT pg_advisory_unlock(%s)", place)

    async def _ask(self, query: str, place: Place) -> bool:
        with _postgres_errors(self._url):
            cursor = await self._connection.execute(query, (lock_key(self._run_id, place),))
            answer = await cursor.fetchone()
        return bool(answer and answer[0])


def lock_key(run_id: str, place: Place) -> int:
    """The 64-bit number, signed as PostgreSQL's bigint is, under which a question of a run is claimed."""
    system, question_id, repeat = place
    named = "\x00".join((run_id, system, question_id, str(repeat)))
    return int.from_bytes(hashlib.sha256(named.encode()).digest()[:8], "big", signed=True)


@asynccontextmanager
async def open_claims(settings: Settings, run_id: str) -> AsyncIterator[Claims]:
    """The claims of this process on the questions of a run; all are freed at the end, however it comes.

    Connects once, without a pooler that would give each statement another session.

    Raises:
        SettingsError: PostgreSQL cannot be reached.
        DependencyError: The extra ``postgres`` is not installed.
    """
    if not can_share(settings):
        yield SoleWorker()
        return
    url = settings.checkpoint_url
    with _postgres_errors(url):
        from psycopg import AsyncConnection, Error  # noqa: PLC0415 - the extra "postgres"

        connection = await AsyncConnection.connect(url, autocommit=True, connect_timeout=_CONNECT_TIMEOUT_S)
    try:
        for name, value in _KEEPALIVES:
            await connection.execute("SELECT set_config(%s, %s, false)", (name, str(value)))
        yield PostgresClaims(connection, run_id, url=url)
    finally:
        # Closing frees them too, but only once the server gets round to it.
        with suppress(Error):
            await connection.execute("SELECT pg_advisory_unlock_all()")
        await connection.close()


@contextmanager
def _postgres_errors(url: str) -> Iterator[None]:
    try:
        import psycopg  # noqa: PLC0415 - the extra "postgres"
    except ImportError as error:
        raise DependencyError('Sharing a run needs an extra: pip install "judgetree[postgres]"') from error
    try:
        yield
    except psycopg.Error as error:
        raise SettingsError(
            f"PostgreSQL at {without_password(url)!r} does not answer any more: {' '.join(str(error).split())}. "
            "Finished rows are kept; check JUDGETREE_CHECKPOINTS and that it runs, then the same command goes on."
        ) from error


class Claimable(Protocol):
    """What a list of work deals out."""

    @property
    def place(self) -> Place:
        """What nobody else may be at."""
        ...

    @property
    def attempt(self) -> int:
        """A row of this attempt, or a later one, means that it is done."""
        ...


J = TypeVar("J", bound=Claimable)


class WorkList(Generic[J]):
    """Deals out jobs, each to one worker of one process, in their order as far as others leave it."""

    def __init__(
        self,
        jobs: Iterable[J],
        claims: Claims,
        *,
        new_rows: Callable[[], Iterable[RunRow]],
        is_over: Callable[[], bool],
    ) -> None:
        """``new_rows`` gives the rows since it was last called, whoever wrote them; ``is_over`` ends the dealing."""
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
