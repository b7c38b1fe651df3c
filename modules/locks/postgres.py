"""Locks between the processes that share a PostgreSQL database: its advisory locks, which end with their connection."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, LiteralString

from ..addresses import Address
from ..errors import DependencyError, SettingsError
from ..redaction import starred
from .locks import Holder, Locks, digest_of

if TYPE_CHECKING:
    from psycopg import AsyncConnection

CHECK_EVERY_S = 2.0
"""Between two looks at whether PostgreSQL is still there, while a lock is held."""
_CONNECT_TIMEOUT_S = 10
_ANSWER_TIMEOUT_S = 10
"""No query here waits for a lock, so a server that takes longer is gone."""
_LOCK, _UNLOCK = "SELECT pg_try_advisory_lock(%s)", "SELECT pg_advisory_unlock(%s)"
# A host that vanishes does not close its connections; by default PostgreSQL notices after two hours.
_KEEPALIVES = (
    "SELECT set_config('tcp_keepalives_idle', '30', false), set_config('tcp_keepalives_interval', '10', false), "
    "set_config('tcp_keepalives_count', '3', false)"
)


def advisory_key(name: str) -> int:
    """The 64-bit number, signed as PostgreSQL's bigint is, that stands for a name."""
    return int.from_bytes(digest_of(name)[:8], "big", signed=True)


class PostgresLocks(Locks):
    """Advisory locks of one connection, however many are held; it is opened at the first, and anew when it is lost.

    With the connection every lock is lost. While any is held, the connection is asked for a sign of life every
    ``check_every_s`` seconds; without one, the holders' work is ended. The server itself gives the locks of a host that
    has vanished to others after a minute (its keep-alives), which is later.
    """

    def __init__(self, url: str, *, remedy: str, check_every_s: float = CHECK_EVERY_S) -> None:
        """Connect to nothing yet.

        Args:
            url: Of the database, without a pooler that would give each statement another session.
            remedy: Last sentence of error messages: what to do where the server does not answer.
            check_every_s: How soon a holder learns that PostgreSQL is gone, and its locks with it.
        """
        super().__init__()
        self._url = Address(url)
        self._remedy = remedy
        self._check_every_s = check_every_s
        self._connecting = asyncio.Lock()
        self._connection: AsyncConnection | None = None
        self._holders: dict[str, Holder] = {}
        self._watch: asyncio.Task[None] | None = None

    async def take(self, name: str, holder: Holder) -> bool:
        """See ``Locks.take``. One round trip."""
        taken = await self._take(name)
        if taken is None:  # the connection was lost since it was last used, so a new one may do
            taken = await self._take(name)
        if taken:
            self._holders[name] = holder
            if self._watch is None:
                self._watch = asyncio.create_task(self._watch_connection(), name="locks")
        return bool(taken)

    async def free(self, name: str, holder: Holder) -> None:
        """See ``Locks.free``. One round trip."""
        connection = self._connection
        if connection is None or self._holders.get(name) is not holder:
            return
        del self._holders[name]
        try:
            await _uncancelled(self._ask(connection, _UNLOCK, name))
        except SettingsError as error:
            await self._lose(connection, error)
            raise

    async def connect(self) -> AsyncConnection:
        """The connection, opened where there is none.

        Raises:
            SettingsError: PostgreSQL cannot be reached.
            DependencyError: The extra ``postgres`` is not installed.
        """
        async with self._connecting:
            if self._connection is None:
                with self._errors():
                    from psycopg import AsyncConnection  # noqa: PLC0415 - the extra "postgres"

                    opened = await AsyncConnection.connect(
                        self._url.revealed(), autocommit=True, connect_timeout=_CONNECT_TIMEOUT_S
                    )
                    try:
                        await opened.execute(_KEEPALIVES)
                    except BaseException:
                        await opened.close()
                        raise
                    self._connection = opened
            return self._connection

    async def aclose(self) -> None:
        """See ``Locks.aclose``."""
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.wait([self._watch])
            self._watch = None
        if self._connection is not None:
            closed = SettingsError(f"The locks in {str(self._url)!r} were closed while one was held.")
            await self._lose(self._connection, closed)

    async def _take(self, name: str) -> bool | None:
        """None: the connection is lost."""
        connection = await self.connect()
        asked = asyncio.ensure_future(self._ask(connection, _LOCK, name))
        try:
            taken = await _uncancelled(asked)
        except asyncio.CancelledError:
            with suppress(SettingsError):
                if await asked:
                    await _uncancelled(self._ask(connection, _UNLOCK, name))
            raise
        except SettingsError as error:
            if not connection.closed:
                raise
            await self._lose(connection, error)
            return None
        return taken if self._connection is connection else None

    async def _ask(self, connection: AsyncConnection, query: LiteralString, *names: str) -> bool:
        with self._errors():
            try:
                async with asyncio.timeout(_ANSWER_TIMEOUT_S):
                    cursor = await connection.execute(query, [advisory_key(name) for name in names])
                    answer = await cursor.fetchone()
            except TimeoutError:
                await connection.close()  # what was asked may be done later, unseen
                raise
        return bool(answer and answer[0])

    async def _watch_connection(self) -> None:
        while self._holders and (connection := self._connection) is not None:
            try:
                await self._ask(connection, "SELECT true")
            except SettingsError as error:
                await self._lose(connection, error)
            await asyncio.sleep(self._check_every_s)
        self._watch = None

    async def _lose(self, connection: AsyncConnection, error: SettingsError) -> None:
        if self._connection is not connection:
            return  # another task has seen it, and there may be a new connection
        self._connection = None
        holders, self._holders = set(self._holders.values()), {}
        for holder in holders:
            holder.lose(error)
        try:  # closing frees the locks too, but only once the server gets round to it
            with suppress(SettingsError):
                await self._ask(connection, "SELECT pg_advisory_unlock_all()")
        finally:
            await connection.close()

    @contextmanager
    def _errors(self) -> Iterator[None]:
        try:
            import psycopg  # noqa: PLC0415 - the extra "postgres"
        except ImportError as error:
            raise DependencyError('Locks in PostgreSQL need an extra: pip install "judgetree[postgres]"') from error
        try:
            yield
        except (psycopg.Error, TimeoutError) as error:
            said = starred(" ".join(str(error).split()), self._url.secrets())
            raise SettingsError(
                f"PostgreSQL at {str(self._url)!r} does not answer any more: "
                f"{said or f'no reply within {_ANSWER_TIMEOUT_S} s'}. {self._remedy}"
            ) from error


async def _uncancelled(work: Coroutine[object, object, bool] | asyncio.Future[bool]) -> bool:
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
