"""LangGraph's synchronous SQLite saver, with checkpoints in the order in which they were saved."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
)
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.utils import search_where

from .appending import expected_newest, refuse_moved

# SQLite numbers rows as they are inserted. Ids of checkpoints begin with the time of the process that made them, so
# that a clock that was set back, or another machine's, would hide what is saved later.
_NEWEST = "SELECT checkpoint_id, max(rowid) FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ?"
_ROW = "SELECT max(rowid) FROM checkpoints WHERE checkpoint_id = ?"


class RowOrderSaver(SqliteSaver):
    """A saver whose newest checkpoint is the one that was saved last, whatever the clocks say.

    The order is that of SQLite's own row numbers, so files of any version have it, and ``VACUUM`` keeps it. Use it from
    one thread.
    """

    def newest_id(self, thread_id: str, namespace: str = "") -> str | None:
        """Return the id of the checkpoint that was saved last; None without one."""
        row = self.conn.execute(_NEWEST, (thread_id, namespace)).fetchone()
        return None if row[0] is None else str(row[0])

    def get_tuple(self, config: RunnableConfig) -> CheckpointTuple | None:
        """Read a checkpoint; without an id in the config, the one that was saved last."""
        if get_checkpoint_id(config):
            return super().get_tuple(config)
        place = config["configurable"]
        thread_id, namespace = str(place["thread_id"]), place.get("checkpoint_ns", "")
        with self._snapshot():
            newest = self.newest_id(thread_id, namespace)
            return None if newest is None else super().get_tuple(_config_of(thread_id, namespace, newest))

    def list(
        self,
        config: RunnableConfig | None,
        *,
        filter: dict[str, Any] | None = None,
        before: RunnableConfig | None = None,
        limit: int | None = None,
    ) -> Iterator[CheckpointTuple]:
        """Yield checkpoints, the last saved first; ``before`` leaves out that one and all that were saved after it."""
        where, values = search_where(config, filter)
        with self._snapshot():
            if before is not None:
                earlier, value = self._saved_before(config, before)
                where, values = f"{where} AND {earlier}" if where else f"WHERE {earlier}", (*values, value)
            query = (
                f"SELECT thread_id, checkpoint_ns, checkpoint_id FROM checkpoints {where} ORDER BY rowid DESC LIMIT ?"
            )
            rows = self.conn.execute(query, (*values, -1 if limit is None else limit)).fetchall()
            found = [super(RowOrderSaver, self).get_tuple(_config_of(*row)) for row in rows]
        yield from (each for each in found if each is not None)

    def put(
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
        if expected_newest(config) is None:
            return super().put(config, checkpoint, metadata, new_versions)
        place = config["configurable"]
        self.conn.execute("BEGIN IMMEDIATE")  # no other process writes until ``put`` commits
        try:
            refuse_moved(config, self.newest_id(str(place["thread_id"]), place["checkpoint_ns"]))
            return super().put(config, checkpoint, metadata, new_versions)
        finally:
            if self.conn.in_transaction:
                self.conn.rollback()

    def keep_latest(self, thread_id: str) -> None:
        """Delete all checkpoints of a thread's own namespace but the one that was saved last."""
        own = "thread_id = :thread AND checkpoint_ns = ''"
        earlier = f"{own} AND rowid < (SELECT max(rowid) FROM checkpoints WHERE {own})"
        with self.cursor() as cursor:
            cursor.execute(
                f"DELETE FROM writes WHERE {own} AND checkpoint_id IN "
                f"(SELECT checkpoint_id FROM checkpoints WHERE {earlier})",
                {"thread": thread_id},
            )
            cursor.execute(f"DELETE FROM checkpoints WHERE {earlier}", {"thread": thread_id})

    def last_saved(self, prefix: str) -> Sequence[str]:
        """Return the threads whose ids begin with an ASCII prefix, the last saved first; no state is read."""
        behind = prefix[:-1] + chr(ord(prefix[-1]) + 1)
        query = (
            "SELECT thread_id FROM checkpoints WHERE thread_id >= ? AND thread_id < ? AND checkpoint_ns = '' "
            "GROUP BY thread_id ORDER BY max(rowid) DESC"  # in the primary key
        )
        return [str(row[0]) for row in self.conn.execute(query, (prefix, behind)).fetchall()]

    def _saved_before(self, config: RunnableConfig | None, before: RunnableConfig) -> tuple[str, object]:
        """Return a condition for rows before a checkpoint, and its value; by id if there is no such checkpoint."""
        checkpoint_id = get_checkpoint_id(before)
        places = [each["configurable"].get("thread_id") for each in (before, config) if each is not None]
        thread_id = next((each for each in places if each is not None), None)
        query, values = (
            (_ROW, (checkpoint_id,))
            if thread_id is None
            else (f"{_ROW} AND thread_id = ?", (checkpoint_id, str(thread_id)))
        )
        (row,) = self.conn.execute(query, values).fetchone()
        return ("checkpoint_id < ?", checkpoint_id) if row is None else ("rowid < ?", row)

    @contextmanager
    def _snapshot(self) -> Iterator[sqlite3.Connection]:
        """Read one state of the file inside, whatever other processes save or prune meanwhile."""
        with self.lock:
            self.setup()
            self.conn.execute("BEGIN")
        try:
            yield self.conn
        finally:
            self.conn.rollback()


def _config_of(thread_id: str, namespace: str, checkpoint_id: str) -> RunnableConfig:
    return {"configurable": {"thread_id": thread_id, "checkpoint_ns": namespace, "checkpoint_id": checkpoint_id}}
