"""LangGraph's SQLite saver for async graphs, in files that processes share."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from functools import partial
from pathlib import Path
from typing import TypeVar

from filelock import FileLock
from langgraph.checkpoint.serde.base import SerializerProtocol

from .sqlite_rows import RowOrderSaver
from .threaded_saver import ThreadedSaver

T = TypeVar("T")

StoreErrors = Callable[[], AbstractContextManager[None]]
"""Makes a context that turns errors of a database into those that users see."""

ThreadMark = tuple[object, ...]
"""What a thread has at one time and never again: its newest checkpoint, and the writes on top of that."""

_WRITES = "SELECT count(*), max(rowid) FROM writes WHERE thread_id = ? AND checkpoint_ns = '' AND checkpoint_id = ?"

_BUSY_TIMEOUT_S = 30.0
"""Wait for a file that another program has locked, such as a backup."""

_QUICK_COMMITS = "PRAGMA synchronous=NORMAL"
"""With the write-ahead log of ``setup``, a kill loses nothing and a power cut may lose the last steps. The default mode
waits for the disk at every verdict."""


class ThreadedSqliteSaver(ThreadedSaver):
    """LangGraph's synchronous saver in a thread of its own.

    ``AsyncSqliteSaver`` needs three to six trips to its thread for one checkpoint, each several times as slow as
    SQLite's own work.
    """

    inner: RowOrderSaver

    def __init__(self, path: Path, inner: RowOrderSaver, *, errors: StoreErrors) -> None:
        """Use ``open_sqlite`` instead, which also creates the tables."""
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


def open_sqlite(path: Path, *, serde: SerializerProtocol, errors: StoreErrors) -> ThreadedSqliteSaver:
    """Open or create a saver in a file that processes may share; waits for others that are opening it.

    Raises:
        sqlite3.Error: The file cannot be opened, or is not a database.
    """
    connection = sqlite3.connect(path, check_same_thread=False, timeout=_BUSY_TIMEOUT_S)
    try:
        saver = RowOrderSaver(connection, serde=serde)
        # Switching to WAL fails at once if another process does it, whatever the busy timeout.
        with FileLock(path.with_name(path.name + ".lock")):
            saver.setup()
        connection.execute(_QUICK_COMMITS)
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
