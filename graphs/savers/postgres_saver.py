"""LangGraph's PostgreSQL saver for async graphs, with serialisation on the event loop."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from typing import Any, LiteralString, cast

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    WRITES_IDX_MAP,
    BaseCheckpointSaver,
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
    get_serializable_checkpoint_metadata,
)
from langgraph.checkpoint.postgres import base
from langgraph.checkpoint.postgres.aio import AsyncPostgresSaver
from langgraph.checkpoint.serde.base import SerializerProtocol
from psycopg import AsyncConnection, AsyncCursor
from psycopg.rows import DictRow
from psycopg.types.json import Jsonb
from psycopg_pool import AsyncConnectionPool

from ...modules.locks.postgres import advisory_key
from ...modules.storage.postgres import answers_within, may_be_closed
from .appending import expected_newest, moved
from .places import config_of, is_inline
from .postgres_order import BY_PLACE, NEWEST, add_places, earlier_than, prune_by_place
from .sqlite_saver import StoreErrors

_SETUP = advisory_key("judgetree: setup of the checkpoint tables")
_SETUP_S = 3_600.0
"""Seconds for a statement of the setup: an index of a large table takes long."""
_POLL_S = 0.05
_OWN_SENDS = 4
"""Version of checkpoints that hold their own tasks; LangGraph reads those of earlier ones from the parent."""
_LAST_SAVED = f"""
SELECT thread_id FROM (
    SELECT DISTINCT ON (thread_id) thread_id, judgetree_seq, checkpoint_id FROM checkpoints
    WHERE starts_with(thread_id, %s) AND checkpoint_ns = '' ORDER BY thread_id, {BY_PLACE}
) AS newest ORDER BY {BY_PLACE}
"""
_APPEND = f"""
INSERT INTO checkpoints (thread_id, checkpoint_ns, checkpoint_id, parent_checkpoint_id, checkpoint, metadata)
SELECT %s, %s, %s, %s, %s, %s WHERE coalesce({NEWEST}, '') = %s RETURNING checkpoint_id
"""


class LoopPostgresSaver(AsyncPostgresSaver):
    """Writes the same rows as ``AsyncPostgresSaver``, but serialises on the event loop instead of a thread.

    The newest checkpoint is the one that was saved last, whatever the clocks of the machines that save say.

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
        """Save a checkpoint; returns its config.

        Raises:
            ThreadMoved: The config must follow another checkpoint than the newest.
        """
        place = config["configurable"]
        thread_id, namespace = place["thread_id"], place["checkpoint_ns"]
        values = checkpoint["channel_values"]
        inline = {channel: value for channel, value in values.items() if is_inline(value)}
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
            if expected_newest(config) is None:
                if rows:
                    await cursor.executemany(self.UPSERT_CHECKPOINT_BLOBS_SQL, rows)
                await cursor.execute(self.UPSERT_CHECKPOINTS_SQL, row)
            else:
                await self._append(cursor, config, rows, row)
        return config_of(thread_id, namespace, checkpoint["id"])

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
                    with answers_within(_SETUP_S):
                        await super().setup()
                        await add_places(alone)
                finally:
                    await _holds(alone, "SELECT pg_advisory_unlock(%s)")

    async def alast_saved(self, prefix: str) -> Sequence[str]:
        """Return the threads whose ids begin with a prefix, the last saved first; no state is read."""
        async with self._cursor() as cursor:
            await cursor.execute(_LAST_SAVED, (prefix,))
            return [str(row["thread_id"]) for row in await cursor.fetchall()]

    async def aget_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Read a checkpoint; without an id in the config, the one that was saved last."""
        if get_checkpoint_id(config):
            return await super().aget_tuple(config)
        own = config["configurable"]["thread_id"], config["configurable"].get("checkpoint_ns", "")
        where = f"WHERE thread_id = %s AND checkpoint_ns = %s AND checkpoint_id = {NEWEST}"
        return next(iter(await self._read(where, [*own, *own])), None)

    async def alist(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> AsyncIterator[CheckpointTuple]:
        """Yield checkpoints, the last saved first; ``before`` leaves out that one and all that were saved after it."""
        where, values = self._search_where(config, filter)
        if before is not None:
            threads = [each["configurable"].get("thread_id") for each in (before, config) if each is not None]
            async with self._cursor() as cursor:
                earlier, bounds = await earlier_than(
                    cursor, get_checkpoint_id(before), next((each for each in threads if each), None)
                )
            where, values = f"{where} AND {earlier}" if where else f"WHERE {earlier}", [*values, *bounds]
        for each in await self._read(f"{where} ORDER BY {BY_PLACE} LIMIT %s", [*values, limit]):
            yield each

    async def aprune(self, thread_ids: Sequence[str], *, strategy: str = "keep_latest") -> None:
        """Delete all checkpoints of threads but the newest of each namespace, or with "delete" all."""
        if strategy != "keep_latest" or isinstance(thread_ids, str):  # which LangGraph refuses
            await super().aprune(thread_ids, strategy=strategy)
            return
        for thread_id in thread_ids:
            async with self._cursor() as cursor, cursor.connection.transaction():
                await prune_by_place(cursor, base._keep_latest(thread_id))

    # LangGraph's own walks the ids downwards, and misses ancestors that another clock gave greater ones.
    aget_delta_channel_history = BaseCheckpointSaver.aget_delta_channel_history

    async def _read(self, where: str, values: Sequence[object]) -> list[CheckpointTuple]:
        async with self._cursor() as cursor:
            await cursor.execute(self.SELECT_SQL + where, values, binary=True)
            rows = await cursor.fetchall()
        return [each for row in rows if (each := await self._loaded(row)) is not None]

    async def _loaded(self, row: DictRow) -> CheckpointTuple | None:
        if row["checkpoint"]["v"] < _OWN_SENDS and row["parent_checkpoint_id"]:
            place = {key: row[key] for key in ("thread_id", "checkpoint_ns", "checkpoint_id")}
            return await super().aget_tuple({"configurable": place})
        return await self._load_checkpoint_tuple(row)

    async def _append(
        self, cursor: AsyncCursor[DictRow], config: RunnableConfig, blobs: Sequence[Any], row: tuple[Any, ...]
    ) -> None:
        """Save a checkpoint if the newest of its thread is the one that the config must follow.

        A pipeline is one transaction, so the lock is held until the row is there. Blobs of a save that is refused stay
        until the thread is deleted; no checkpoint names them.
        """
        own = row[:2]
        if blobs:
            await cursor.executemany(self.UPSERT_CHECKPOINT_BLOBS_SQL, blobs)
        await cursor.execute("SELECT pg_advisory_xact_lock(%s)", [advisory_key(f"judgetree: append to {own}")])
        await cursor.execute(_APPEND, (*row, *own, expected_newest(config)))
        if await cursor.fetchone() is None:
            await cursor.execute(f"SELECT {NEWEST} AS newest", own)
            newest = await cursor.fetchone()
            raise moved(config, None if newest is None else newest["newest"])

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
