"""Checkpoints in memory, which end with their process."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager

from ...modules.calls.journal import CallJournal
from ...modules.calls.transcripts import TranscriptPlace
from ...modules.journals.sql import JOURNAL_TABLES, SqlJournal
from ...modules.locks.locks import Locks
from ...modules.storage.databases import open_database
from ..savers.memory_saver import SavedOrderMemorySaver
from ..savers.serializer import serializer
from .contract import CheckpointStore, Saver


class MemoryStore(CheckpointStore):
    """Checkpoints of one process; see ``CheckpointStore``."""

    @asynccontextmanager
    async def open_saver(self) -> AsyncIterator[Saver]:
        """Make a saver."""
        yield SavedOrderMemorySaver(serde=serializer())

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Change nothing: memory has no errors of its own."""
        yield

    def locks(self, *, check_every_s: float) -> Locks:
        """Return locks within this process."""
        return Locks()

    @asynccontextmanager
    async def open_journal(self) -> AsyncIterator[CallJournal]:
        """Make a journal in memory."""
        journal = SqlJournal(lambda: open_database(None, JOURNAL_TABLES))
        yield journal
        await journal.aclose()  # not in ``finally``: a graph that is left open ends with the process without a word

    def transcripts(self) -> TranscriptPlace | None:
        """Return None: no transcripts are kept."""
        return None
