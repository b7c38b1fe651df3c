"""LangGraph's SQLite saver for async graphs, in files that processes share."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

from langchain_core.runnables import RunnableConfig
from langgraph.checkpoint.base import (
    ChannelVersions,
    Checkpoint,
    CheckpointMetadata,
    CheckpointTuple,
    get_checkpoint_id,
)
from langgraph.checkpoint.serde.base import SerializerProtocol
from langgraph.checkpoint.sqlite import SqliteSaver
from langgraph.checkpoint.sqlite.utils import search_where

from ...modules.storage.sqlite import open_sqlite
from .appending import expected_newest, moved
from .places import config_of
from .threaded_saver import ThreadedSaver

T = TypeVar("T")

StoreErrors = Callable[[], AbstractContextManager[None]]
"""Makes a context that turns errors of a database into those that users see."""

ThreadMark = tuple[object, ...]
"""What a thread has at one time and never again: its newest checkpoint, and the writes on top of that."""

# SQLite numbers rows as they are inserted. Ids of checkpoints begin with the time of the process that made them, so
# that a clock that was set back, or another machine's, would hide what is saved later.
_NEWEST = "SELECT checkpoint_id, max(rowid) FROM checkpoints WHERE thread_id = ? AND checkpoint_ns = ?"
_ROW = "SELECT max(rowid) FROM checkpoints WHERE checkpoint_id = ?"
_WRITES = "SELECT count(*), max(rowid) FROM writes WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ?"


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
            return None if newest is None else super().get_tuple(config_of(thread_id, namespace, newest))

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
            found = [super(RowOrderSaver, self).get_tuple(config_of(*row)) for row in rows]
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
            newest = self.newest_id(str(place["thread_id"]), place["checkpoint_ns"])
            if expected_newest(config) != (newest or ""):
                raise moved(config, newest)
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


class ThreadedSqliteSaver(ThreadedSaver):
    """LangGraph's synchronous saver in a thread of its own.

    ``AsyncSqliteSaver`` needs three to six trips to its thread for one checkpoint, each several times as slow as
    SQLite's own work.
    """

    inner: RowOrderSaver

    def __init__(self, path: Path, inner: RowOrderSaver, *, errors: StoreErrors) -> None:
        """Use ``open_sqlite_saver`` instead, which also creates the tables."""
        super().__init__(inner)
        self._path = path.resolve()
        self._file = _identity_of(self._path)
        self._errors = errors

    async def akeep_latest(self, thread_id: str) -> None:
        """Delete all checkpoints of a thread but the newest, which LangGraph's saver for SQLite cannot do."""
        await self.in_thread(partial(self.inner.keep_latest, thread_id))

    async def alast_saved(self, prefix: str) -> Sequence[str]:
        """Return the threads whose ids begin with an ASCII prefix, the last saved first; no state is read."""
        return await self.in_thread(partial(self.inner.last_saved, prefix))

    async def amarks(self, thread_ids: Sequence[str]) -> dict[str, ThreadMark]:
        """Return the mark of each thread that has a checkpoint, without decoding what is saved."""
        return await self.in_thread(partial(self._marks, thread_ids))

    async def aclose(self) -> None:
        """Close the file once everything is written."""
        with self._errors():
            await super().in_thread(self.inner.conn.close)
        self.end_thread()

    async def in_thread(self, work: Callable[[], T]) -> T:
        """Run work in the saver's thread."""
        with self._errors():
            return await super().in_thread(partial(self._in_own_file, work))

    def _in_own_file(self, work: Callable[[], T]) -> T:
        if _identity_of(self._path) != self._file:  # SQLite would write on into a file that nothing finds again
            raise sqlite3.OperationalError(
                "its file was deleted or replaced while it was open; close the session or graph, or restart the "
                "server, to start a new one"
            )
        return work()

    def _marks(self, thread_ids: Sequence[str]) -> dict[str, ThreadMark]:
        marks: dict[str, ThreadMark] = {}
        with self.inner.cursor(transaction=False) as cursor:
            for thread_id in thread_ids:
                newest = self.inner.newest_id(thread_id)
                if newest is not None:
                    # A write that replaces another, such as the error of a second attempt, has a new rowid.
                    marks[thread_id] = (newest, *cursor.execute(_WRITES, (thread_id, newest)).fetchone())
        return marks


def open_sqlite_saver(path: Path, *, serde: SerializerProtocol, errors: StoreErrors) -> ThreadedSqliteSaver:
    """Open or create a saver in a file that processes may share; waits for others that are opening it.

    Raises:
        sqlite3.Error: The file cannot be opened, or is not a database.
    """
    connection = open_sqlite(path, autocommit=False)  # the saver makes its own transactions
    try:
        saver = RowOrderSaver(connection, serde=serde)
        saver.setup()
    except BaseException:
        connection.close()
        raise
    return ThreadedSqliteSaver(path, saver, errors=errors)


def _identity_of(path: Path) -> tuple[int, int] | None:
    """Return device and inode of a file; None if there is none."""
    try:
        found = path.stat()
    except FileNotFoundError:
        return None
    return found.st_dev, found.st_ino
