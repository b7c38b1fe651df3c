"""The journal of model calls that belongs to a checkpoint store."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from ...modules.addresses import Address
from ...modules.calls.journal import CallJournal
from ...modules.calls.journal_files import PostgresJournal, SqliteJournal
from .checkpoints import is_postgres

_SQLITE = "sqlite:///"


def journal_path(checkpoints: Path) -> Path:
    """The journal's file beside a SQLite file of checkpoints."""
    return checkpoints.with_name(f"{checkpoints.stem}-calls.sqlite")


@asynccontextmanager
async def open_call_journal(url: str) -> AsyncIterator[CallJournal | None]:
    """The journal of the store at ``url``; None for one that lives no longer than the process.

    Nothing is opened before the first call is made.
    """
    journal = call_journal(url)
    try:
        yield journal
    finally:
        if journal is not None:
            await journal.aclose()


def call_journal(url: str) -> CallJournal | None:
    """See ``open_call_journal``; to be closed with ``aclose``."""
    if is_postgres(url):
        return CallJournal(lambda: PostgresJournal(Address(url).revealed()))
    if url.startswith(_SQLITE):
        return CallJournal(lambda: SqliteJournal(journal_path(Path(url.removeprefix(_SQLITE)))))
    return None
