"""Checkpoints in a SQLite file, with the journal, transcripts and locks in files beside it."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from pathlib import Path

from ...modules.addresses import Address
from ...modules.calls.journal import CallJournal
from ...modules.calls.transcripts import TranscriptPlace
from ...modules.locks.files import FileLocks
from ...modules.locks.locks import Locks
from ...modules.trust.private import private_folder
from ..savers.serializer import serializer
from ..savers.sqlite_saver import ThreadedSqliteSaver, open_sqlite_saver
from .contract import REMEDY, CheckpointStore, Saver, open_sql_journal, unusable

SQLITE = "sqlite:///"

_DAMAGED = "Restore the file from a backup, or move it away (with its -wal and -shm) to start a new one."
_REMEDIES = {
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_NOTADB: _DAMAGED,
    sqlite3.SQLITE_BUSY: "Another program has locked the file: end it and ask again; saved steps are kept.",
    sqlite3.SQLITE_FULL: "Free disk space and ask again; saved steps are kept.",
}
_PRIMARY = 0xFF
"""Mask of the primary code in an extended result code of SQLite."""


class SqliteStore(CheckpointStore):
    """Checkpoints that the processes of one machine share; see ``CheckpointStore``."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self._path = Path(url.removeprefix(SQLITE))

    @asynccontextmanager
    async def open_saver(self) -> AsyncIterator[Saver]:
        """Open the file in a thread of its own."""
        saver = await asyncio.to_thread(self._opened)
        try:
            yield saver
        finally:
            await saver.aclose()

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Turn errors of SQLite into a ``StoreFailure``."""
        try:
            yield
        except sqlite3.Error as error:
            remedy = _REMEDIES.get(getattr(error, "sqlite_errorcode", 0) & _PRIMARY, REMEDY)
            raise unusable(self.url, error, remedy) from error

    def locks(self, *, check_every_s: float) -> Locks:
        """Return locks by files in a folder beside the database."""
        private_folder(self._path.parent)
        database = self._path.resolve()
        return FileLocks(database.with_name(f"{database.name}.turns"))

    def open_journal(self) -> AbstractAsyncContextManager[CallJournal]:
        """Open the journal in a file beside the database."""
        return open_sql_journal(self._path.with_name(f"{self._path.stem}-calls.sqlite"))

    def transcripts(self) -> TranscriptPlace | None:
        """Return a file beside the database."""
        file = self._path.with_name(f"{self._path.stem}-transcripts.sqlite")
        return TranscriptPlace(url=Address(f"{SQLITE}{file}"))

    def _opened(self) -> ThreadedSqliteSaver:
        private_folder(self._path.parent)
        with self.errors():
            return open_sqlite_saver(self._path, serde=serializer(), errors=self.errors)
