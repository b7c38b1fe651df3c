"""What every kind of checkpoint store has."""

from __future__ import annotations

from abc import ABC, abstractmethod
from contextlib import AbstractAsyncContextManager, AbstractContextManager, aclosing
from pathlib import Path

from langgraph.checkpoint.base import BaseCheckpointSaver

from ...modules.addresses import Address
from ...modules.calls.journal import CallJournal
from ...modules.calls.transcripts import TranscriptPlace
from ...modules.errors import StoreFailure
from ...modules.journals.sql import JOURNAL_TABLES, SqlJournal
from ...modules.locks.locks import Locks
from ...modules.redaction import starred
from ...modules.storage.databases import open_database
from ...modules.storage.server_report import ServerReport

Saver = BaseCheckpointSaver[str]

REMEDY = "Check JUDGETREE_CHECKPOINTS and that the store is running and writable."


class CheckpointStore(ABC):
    """A checkpoint store at an address; nothing is opened before a method's result is used."""

    def __init__(self, url: str) -> None:
        self.url = url

    @abstractmethod
    def open_saver(self) -> AbstractAsyncContextManager[Saver]:
        """Open a saver for async graphs on the running event loop; creates what it needs, and closes it at the end.

        Raises:
            SettingsError: The store cannot be opened.
            DependencyError: The extra of the store is not installed.
        """

    @abstractmethod
    def errors(self) -> AbstractContextManager[None]:
        """Turn errors of the open store into a ``StoreFailure``.

        Raises:
            StoreFailure: The store does not answer, or rejects a write.
        """

    @abstractmethod
    def locks(self, *, check_every_s: float) -> Locks:
        """Return the locks of the store's conversations; a server is asked that often whether they are still held."""

    @abstractmethod
    def open_journal(self) -> AbstractAsyncContextManager[CallJournal]:
        """Open the journal of the store's calls, at its first call, and close it at the end."""

    @abstractmethod
    def transcripts(self) -> TranscriptPlace | None:
        """Return the place of the transcripts of its calls, which need not exist; None where none are kept."""

    async def check_writable(self) -> None:  # noqa: B027 - most stores are written to where they are opened
        """Check that the store takes writes, of which none stays.

        Raises:
            StoreFailure: It does not.
        """

    async def report(self) -> ServerReport | None:
        """Ask the server about itself; None for a store without one, or whose server has nothing to warn of."""
        return None


def unusable(url: str, error: Exception, remedy: str = REMEDY) -> StoreFailure:
    """Return the error of a store that does not answer or rejects a write, without the secrets of its address."""
    address = Address(url)
    said = starred(" ".join(str(error).split()), address.secrets())
    return StoreFailure(f"The checkpoint store {str(address)!r} cannot be used: {said}. {remedy}")


def open_sql_journal(place: Path | Address) -> AbstractAsyncContextManager[CallJournal]:
    """Open a journal in a SQLite file or in PostgreSQL, at its first call."""
    return aclosing(SqlJournal(lambda: open_database(place, JOURNAL_TABLES)))
