"""Locks between the processes that share a PostgreSQL database: advisory locks, which end with their connection."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, LiteralString

from ..addresses import Address
from ..digests import text_digest
from ..errors import DependencyError, SettingsError, StoreFailure
from ..redaction import starred
from .locks import CHECK_EVERY_S, Holder, Locks, uncancelled

if TYPE_CHECKING:
    from psycopg import AsyncConnection

_ANSWER_TIMEOUT_S = 10
"""Seconds for a query; none waits for a lock, so a server that takes longer is gone."""
_LOCK, _UNLOCK = "SELECT pg_try_advisory_lock(%s)", "SELECT pg_advisory_unlock(%s)"
# A host that vanishes does not close its connections; by default PostgreSQL notices after two hours.
_KEEPALIVES = (
    "SELECT set_config('tcp_keepalives_idle', '30', false), set_config('tcp_keepalives_interval', '10', false), "
    "set_config('tcp_keepalives_count', '3', false)"
)


def advisory_key(name: str) -> int:
    """Return the number that stands for a name in PostgreSQL: 64 bits with a sign, a bigint."""
    return int.from_bytes(text_digest(name)[:8], "big", signed=True)


class PostgresLocks(Locks):
    """Advisory locks of one connection, which is opened for the first lock, and again after it was lost.

    All locks are lost with the connection. While one is held, the connection is checked every ``check_every_s``
    seconds; if it does not answer, the holders' work is cancelled. The server gives the locks of a vanished host to
    others only a minute later (its keep-alives).
    """

    def __init__(self, url: str, *, remedy: str, check_every_s: float = CHECK_EVERY_S) -> None:
        """Use a database; nothing is connected before the first lock.

        Args:
            url: Address of the database itself: a pooler would give each statement another session.
            remedy: Last sentence of error messages: what to do if the server does not answer.
            check_every_s: Seconds between two checks of the connection.
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
        """Take a lock in one round trip, as ``Locks.take`` says."""
        taken = await self._take(name)
        if taken is None:
            taken = await self._take(name)
        if taken:
            self._holders[name] = holder
            if self._watch is None:
                self._watch = asyncio.create_task(self._watch_connection(), name="locks")
        return bool(taken)

    async def free(self, name: str, holder: Holder) -> None:
        """Free a lock in one round trip, as ``Locks.free`` says."""
        connection = self._connection
        if connection is None or self._holders.get(name) is not holder:
            return
        del self._holders[name]
        try:
            await uncancelled(self._ask(connection, _UNLOCK, name))
        except SettingsError as error:
            await self._lose(connection, error)
            raise

    async def connect(self) -> AsyncConnection:
        """Return the connection, opened if there is none.

        Raises:
            StoreFailure: PostgreSQL cannot be reached.
            DependencyError: The extra ``postgres`` is not installed.
        """
        async with self._connecting:
            if self._connection is None:
                with self._errors():
                    from ..storage.postgres import CONNECT_TIMEOUT_S, AsyncAnsweringConnection  # noqa: PLC0415 - the extra "postgres"

                    opened = await AsyncAnsweringConnection.connect(
                        self._url.revealed(), autocommit=True, connect_timeout=CONNECT_TIMEOUT_S
                    )
                    try:
                        await opened.execute(_KEEPALIVES)
                    except BaseException:
                        await opened.close()
                        raise
                    self._connection = opened
            return self._connection

    async def aclose(self) -> None:
        """Close the connection, as ``Locks.aclose`` says."""
        if self._watch is not None:
            self._watch.cancel()
            await asyncio.wait([self._watch])
            self._watch = None
        if self._connection is not None:
            closed = SettingsError(f"The locks in {str(self._url)!r} were closed while one was held.")
            await self._lose(self._connection, closed)

    async def _take(self, name: str) -> bool | None:
        """Return whether the lock was free; None if the connection was lost, so that a new one may succeed."""
        connection = await self.connect()
        asked = asyncio.ensure_future(self._ask(connection, _LOCK, name))
        try:
            taken = await uncancelled(asked)
        except asyncio.CancelledError:
            with suppress(SettingsError):
                if await asked:
                    await uncancelled(self._ask(connection, _UNLOCK, name))
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
                await connection.close()  # the server may still execute the query
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
            return  # another task has noted the loss, and there may be a new connection
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
            raise StoreFailure(
                f"PostgreSQL at {str(self._url)!r} does not answer any more: "
                f"{said or f'no reply within {_ANSWER_TIMEOUT_S} s'}. {self._remedy}"
            ) from error
