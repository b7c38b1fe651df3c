"""Advisory locks of PostgreSQL: each is had by one session at a time, and ends with that session's connection."""

from __future__ import annotations

import asyncio
import hashlib
from collections.abc import AsyncIterator, Coroutine, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from typing import TYPE_CHECKING, TypeVar

from .addresses import Address
from .errors import DependencyError, SettingsError
from .redaction import starred

if TYPE_CHECKING:
    from psycopg import AsyncConnection

T = TypeVar("T")

_CONNECT_TIMEOUT_S = 10
_ANSWER_TIMEOUT_S = 10
"""No query here waits for a lock, so a server that takes longer is not there any more."""
# A host that vanishes does not close its connections; by default PostgreSQL notices after two hours.
_KEEPALIVES = (("tcp_keepalives_idle", 30), ("tcp_keepalives_interval", 10), ("tcp_keepalives_count", 3))


def advisory_key(*names: str) -> int:
    """The 64-bit number, signed as PostgreSQL's bigint is, that stands for names in their order."""
    return int.from_bytes(
        hashlib.sha256("\x00".join(names).encode("utf-8", "surrogatepass")).digest()[:8], "big", signed=True
    )


class AdvisoryLocks:
    """The locks of one connection, any number of them. Nothing waits here for who has a lock: one is had or not.

    The session itself may take a lock again that it has, and must then free it as often. A connection that fails is
    closed, and all its locks are gone.
    """

    def __init__(self, connection: AsyncConnection, *, url: str, remedy: str) -> None:
        """``connection`` commits by itself; ``url`` is what messages call it, and ``remedy`` their last sentence."""
        self._connection = connection
        self._url = Address(url)
        self._remedy = remedy

    @property
    def is_open(self) -> bool:
        """False once the connection is lost, and every lock with it; known only after something was asked of it."""
        return not self._connection.closed

    async def take(self, key: int) -> bool:
        """Whether the lock is this session's now; False while another one has it. One round trip.

        Cancelled meanwhile, it takes nothing.

        Raises:
            SettingsError: The connection is lost, and with it every lock, or the server has no room for more locks.
        """
        asked = asyncio.ensure_future(self._ask("SELECT pg_try_advisory_lock(%s)", key))
        try:
            return await uncancelled(asked)
        except asyncio.CancelledError:
            with suppress(SettingsError):
                if await asked:
                    await self.free(key)
            raise

    async def free(self, key: int) -> bool:
        """Give back what was taken; False if it was not held. One round trip, which a cancellation does not stop.

        Raises:
            SettingsError: The connection is lost, and with it every lock.
        """
        return await uncancelled(self._ask("SELECT pg_advisory_unlock(%s)", key))

    async def check(self) -> None:
        """Ask the server for a sign of life.

        Raises:
            SettingsError: The connection is lost, and with it every lock.
        """
        await self._ask("SELECT %s = 0", 0)

    async def _ask(self, query: str, key: int) -> bool:
        with _postgres_errors(self._url, self._remedy):
            try:
                async with asyncio.timeout(_ANSWER_TIMEOUT_S):
                    cursor = await self._connection.execute(query, (key,))
                    answer = await cursor.fetchone()
            except TimeoutError:
                await self._connection.close()  # what was asked may be done later, and nobody would know of it
                raise
        return bool(answer and answer[0])


@asynccontextmanager
async def open_advisory_locks(url: str, *, remedy: str) -> AsyncIterator[AdvisoryLocks]:
    """Locks of a new connection, bound to the running event loop; all are freed at the end, however it comes.

    Connects once, without a pooler that would give each statement another session.

    Args:
        url: Of the PostgreSQL database.
        remedy: Last sentence of error messages: what to do where the server does not answer.

    Raises:
        SettingsError: PostgreSQL cannot be reached.
        DependencyError: The extra ``postgres`` is not installed.
    """
    with _postgres_errors(url, remedy):
        from psycopg import AsyncConnection, Error  # noqa: PLC0415 - the extra "postgres"

        conninfo = Address(url).revealed()
        connection = await AsyncConnection.connect(conninfo, autocommit=True, connect_timeout=_CONNECT_TIMEOUT_S)
    try:
        with _postgres_errors(url, remedy):
            for name, value in _KEEPALIVES:
                await connection.execute("SELECT set_config(%s, %s, false)", (name, str(value)))
        yield AdvisoryLocks(connection, url=url, remedy=remedy)
    finally:
        # Closing frees them too, but only once the server gets round to it.
        try:
            with suppress(Error, TimeoutError):
                async with asyncio.timeout(_ANSWER_TIMEOUT_S):
                    await connection.execute("SELECT pg_advisory_unlock_all()")
        finally:
            await connection.close()


async def uncancelled(work: Coroutine[object, object, T] | asyncio.Future[T]) -> T:
    """What the work gives. A cancellation of the caller does not reach the work, and is raised once it has ended."""
    task = asyncio.ensure_future(work)
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait([task])
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is not None:
        task.exception()  # it is not missed
        raise cancelled
    return task.result()


@contextmanager
def _postgres_errors(url: str, remedy: str) -> Iterator[None]:
    try:
        import psycopg  # noqa: PLC0415 - the extra "postgres"
    except ImportError as error:
        raise DependencyError('Locks in PostgreSQL need an extra: pip install "judgetree[postgres]"') from error
    try:
        yield
    except (psycopg.Error, TimeoutError) as error:
        address = Address(url)
        said = starred(" ".join(str(error).split()), address.secrets()) or f"no reply within {_ANSWER_TIMEOUT_S} s"
        raise SettingsError(f"PostgreSQL at {str(address)!r} does not answer any more: {said}. {remedy}") from error
