"""Checkpoints in PostgreSQL, with the journal, transcripts and locks in the same database."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from typing import Any, cast

from ...modules.addresses import Address
from ...modules.calls.journal import CallJournal
from ...modules.calls.transcripts import TranscriptPlace
from ...modules.errors import DependencyError
from ...modules.locks.locks import Locks
from ...modules.locks.postgres import PostgresLocks
from ..savers.serializer import serializer
from .contract import CheckpointStore, Saver, open_sql_journal, unusable

_CONNECTIONS = 4
"""Connections for each process and store."""


class PostgresStore(CheckpointStore):
    """Checkpoints that machines share; see ``CheckpointStore``."""

    @asynccontextmanager
    async def open_saver(self) -> AsyncIterator[Saver]:
        """Open a pool of connections, and make the tables."""
        with self.errors():
            from psycopg.rows import dict_row  # noqa: PLC0415 - the extra "postgres"
            from psycopg_pool import AsyncConnectionPool  # noqa: PLC0415

            from ...modules.storage.postgres import CONNECT_TIMEOUT_S, AsyncAnsweringConnection  # noqa: PLC0415
            from ..savers.postgres_saver import LoopPostgresSaver, check_open  # noqa: PLC0415

        # setup() creates an index concurrently, which needs autocommit.
        options = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
        options |= {"connect_timeout": CONNECT_TIMEOUT_S}
        pool = AsyncConnectionPool(
            Address(self.url).revealed(),
            connection_class=AsyncAnsweringConnection,
            min_size=1,
            max_size=_CONNECTIONS,
            open=False,
            kwargs=options,
            timeout=CONNECT_TIMEOUT_S,
            check=check_open,
        )
        try:
            with self.errors():
                await pool.open(wait=True, timeout=10)
                saver = LoopPostgresSaver(cast(Any, pool), serde=serializer(), errors=self.errors)
                await saver.setup()
            # The saver's lock would let one query through at a time, whatever the size of the pool.
            saver.lock = asyncio.Semaphore(_CONNECTIONS)  # type: ignore[assignment]
            yield saver
        finally:
            await pool.close()

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turn errors of PostgreSQL into a ``StoreFailure``."""
        try:
            import psycopg  # noqa: PLC0415 - the extra "postgres"
            from psycopg_pool import PoolTimeout  # noqa: PLC0415
        except ImportError as error:
            raise DependencyError('PostgreSQL needs an extra: pip install "judgetree[postgres]"') from error
        try:
            yield
        except (psycopg.Error, PoolTimeout) as error:
            raise unusable(self.url, error) from error

    def locks(self, *, check_every_s: float) -> Locks:
        """Return advisory locks of a connection of their own."""
        remedy = "Check JUDGETREE_CHECKPOINTS and that it runs, then ask again."
        return PostgresLocks(self.url, remedy=remedy, check_every_s=check_every_s)

    def open_journal(self) -> AbstractAsyncContextManager[CallJournal]:
        """Open the journal in a table of the database."""
        return open_sql_journal(Address(self.url))

    def transcripts(self) -> TranscriptPlace | None:
        """Return tables of the database."""
        return TranscriptPlace(url=Address(self.url))
