"""LangGraph's PostgreSQL saver for async graphs, with serialisation on the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, LiteralString, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    get_serializable_checkpoint_metadata,
)
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.serde.base import SerializerProtocol
from psycopg import AsyncConnection, AsyncCursor
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb
from psycopg_pool import AsyncConnectionPool

from ...modules.locks.postgres import advisory_key
from ...modules.postgres import may_be_closed
from .sqlite_saver import StoreErrors

_SETUP = advisory_key("judgetree: setup of the checkpoint tables")
_POLL_S = 0.05


class LoopPostgresSaver(AsyncPostgresSaver):
    """Writes the same rows as ``AsyncPostgresSaver``, but serialises on the event loop instead of a thread.

    A turn of a conversation needs over 20 such trips to a thread. Each costs several times as much as serialising a
    state of some kilobytes, and on a busy core the thread also waits for the interpreter lock.
    """

    def __init__(
        self, pool: AsyncConnectionPool[AsyncConnection[DictRow]], *, serde: SerializerProtocol, errors: StoreErrors
    ) -> None:
        """Use connections of a pool; ``errors`` makes a context that turns errors of psycopg into those of users."""
        super().__init__(pool, serde=serde)
        self._errors = errors

    async def aput(
        self,
        config: RunnableConfig,
        checkpoint: Checkpoint,
        metadata: CheckpointMetadata,
        new_versions: ChannelVersions,
    ) -> RunnableConfig:
        """Save a checkpoint; returns its config."""
        place = config["configurable"]
        thread_id, namespace = place["thread_id"], place["checkpoint_ns"]
        values = checkpoint["channel_values"]
        inline = {channel: value for channel, value in values.items() if _is_inline(value)}
        blobs = {channel: value for channel, value in values.items() if channel not in inline}
        versions: ChannelVersions = {channel: new_versions[channel] for channel in new_versions if channel in blobs}
        rows = self._dump_blobs(thread_id, namespace, blobs, versions)
        row = (
            thread_id,
            namespace,
            checkpoint["id"],
            place.get("checkpoint_id"),
            Jsonb({**checkpoint, "channel_values": inline}),
            Jsonb(get_serializable_checkpoint_metadata(config, metadata)),
        )
        async with self._cursor(pipeline=True) as cursor:
            if rows:
                await cursor.executemany(self.UPSERT_CHECKPOINT_BLOBS_SQL, rows)
            await cursor.execute(self.UPSERT_CHECKPOINTS_SQL, row)
        return {"configurable": {"thread_id": thread_id, "checkpoint_ns": namespace, "checkpoint_id": checkpoint["id"]}}

    async def aput_writes(
        self, config: RunnableConfig, writes: Sequence[tuple[str, Any]], task_id: str, task_path: str = ""
    ) -> None:
        """Save the writes of a task on top of a checkpoint."""
        place = config["configurable"]
        rows = self._dump_writes(
            place["thread_id"], place["checkpoint_ns"], place["checkpoint_id"], task_id, task_path, writes
        )
        only_special = all(channel in WRITES_IDX_MAP for channel, _ in writes)
        async with self._cursor(pipeline=True) as cursor:
            await cursor.executemany(
                self.UPSERT_CHECKPOINT_WRITES_SQL if only_special else self.INSERT_CHECKPOINT_WRITES_SQL, rows
            )

    async def setup(self) -> None:
        """Make or migrate the tables, while no other process does."""
        pool = cast(AsyncConnectionPool[AsyncConnection[DictRow]], self.conn)
        with self._errors():
            async with pool.connection() as alone:
                # A session that waits for the lock within a statement is waited for by CREATE INDEX CONCURRENTLY.
                while not await _holds(alone, "SELECT pg_try_advisory_lock(%s)"):  # noqa: ASYNC110 - no event comes
                    await asyncio.sleep(_POLL_S)
                try:
                    await super().setup()
                finally:
                    await _holds(alone, "SELECT pg_advisory_unlock(%s)")

    async def anewest(self, prefix: str) -> dict[str, str]:
        """Return the newest checkpoint's id of each thread whose id begins with a prefix; no state is read."""
        query = (
            "SELECT thread_id, max(checkpoint_id) AS newest FROM checkpoints "
            "WHERE starts_with(thread_id, %s) AND checkpoint_ns = '' GROUP BY thread_id"
        )
        async with self._cursor() as cursor:
            await cursor.execute(query, (prefix,))
            return {str(row["thread_id"]): str(row["newest"]) for row in await cursor.fetchall()}

    @asynccontextmanager
    async def _cursor(self, *, pipeline: bool = False) -> AsyncIterator[AsyncCursor[DictRow]]:
        with self._errors():
            async with super()._cursor(pipeline=pipeline) as cursor:
                yield cursor


async def _holds(connection: AsyncConnection[DictRow], statement: LiteralString) -> bool:
    """Execute a statement about the lock of ``setup``; returns its answer."""
    row = await (await connection.execute(statement, [_SETUP])).fetchone()
    return row is not None and all(row.values())


async def check_open(connection: AsyncConnection[DictRow]) -> None:
    """Check that an idle connection is open; only one that has something to read costs a round trip.

    Raises:
        psycopg.Error: The server has closed it.
    """
    if may_be_closed(connection):
        await AsyncConnectionPool.check_connection(connection)


def _is_inline(value: object) -> bool:
    """Whether a channel's value is stored in the checkpoint's own row."""
    return value is None or isinstance(value, str | int | float | bool)
