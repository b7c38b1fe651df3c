"""Storage of search trees and the journal of their model calls: ``memory:``, SQLite or PostgreSQL, by URL."""

from __future__ import annotations

import asyncio
import sqlite3
from collections.abc import AsyncIterator, Iterable, Iterator, Sequence
from contextlib import AsyncExitStack, ExitStack, asynccontextmanager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, Protocol, cast

from langchain_core.documents import Document
from langgraph.checkpoint.base import BaseCheckpointSaver
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.checkpoint.serde.jsonplus import JsonPlusSerializer
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from ...modules.addresses import Address
from ...modules.calls.journal import JOURNAL_TABLES, CallJournal
from ...modules.errors import DependencyError, SettingsError, StoreFailure
from ...modules.locks.files import FileLocks
from ...modules.locks.locks import Locks
from ...modules.locks.postgres import CHECK_EVERY_S, PostgresLocks
from ...modules.redaction import starred
from ...modules.settings import without_secrets
from ...modules.storage.databases import open_database
from ...modules.trust.private import private_folder
from ..savers.memory_saver import SavedOrderMemorySaver
from ..savers.sqlite_saver import ThreadedSqliteSaver, ThreadMark, open_sqlite_saver

ALLOWED_URLS = "memory:, sqlite:///relative/or//absolute/path, postgresql://user@host/database"
_SQLITE = "sqlite:///"

Saver = BaseCheckpointSaver[str]


class _ListsNewest(Protocol):
    """What the savers of all URLs have."""

    async def alast_saved(self, prefix: str) -> Sequence[str]: ...


_CONNECTIONS = 4
"""Connections to PostgreSQL for each process and store."""

_REMEDY = "Check JUDGETREE_CHECKPOINTS and that the store is running and writable."
_DAMAGED = "Restore the file from a backup, or move it away (with its -wal and -shm) to start a new one."
_SQLITE_REMEDIES = {
    sqlite3.SQLITE_CORRUPT: _DAMAGED,
    sqlite3.SQLITE_NOTADB: _DAMAGED,
    sqlite3.SQLITE_BUSY: "Another program has locked the file: end it and ask again; saved steps are kept.",
    sqlite3.SQLITE_FULL: "Free disk space and ask again; saved steps are kept.",
}
_PRIMARY = 0xFF
"""Mask of the primary code in an extended result code of SQLite."""


def serializer() -> JsonPlusSerializer:
    """Make the serialiser of all savers, which reads back plain data and LangChain documents only."""
    return JsonPlusSerializer(allowed_msgpack_modules=None)


_SERIALIZER = serializer()


def check_storable(chunks: Iterable[Document]) -> None:
    """Check that the metadata of a retriever's chunks can be saved, before anything is paid for them.

    Raises:
        SettingsError: It cannot; the message names chunk, key and type.
    """
    for chunk in chunks:
        for key, value in chunk.metadata.items():
            if (culprit := _unstorable_in(value)) is not None:
                raise SettingsError(
                    f"The retriever's chunk {chunk.metadata.get('chunk_id')!r:.100} cannot be saved: its metadata "
                    f"{key!r:.100} has a value of type {type(culprit).__qualname__!r}. Allowed: texts, numbers of at "
                    "most 64 bits, dates, None, and lists and dicts of these. Convert it in the retriever, or leave "
                    "it out."
                )


def _unstorable_in(value: object) -> object:
    """Return the innermost value that the serialiser refuses; None if it takes all."""
    if value is None or isinstance(value, str | float) or _is_storable(value):
        return None
    inner = [*value, *value.values()] if isinstance(value, dict) else value if isinstance(value, list | tuple) else ()
    return next((found for each in inner if (found := _unstorable_in(each)) is not None), value)


def _is_storable(value: object) -> bool:
    try:
        _SERIALIZER.dumps_typed(value)
    except (TypeError, ValueError, RecursionError):
        return False
    return True


def is_postgres(url: str) -> bool:
    """Whether checkpoints with this URL are in PostgreSQL."""
    return url.startswith(("postgresql://", "postgres://"))


def record_graph(schema: type[Any], saver: Saver) -> CompiledStateGraph[Any, None, Any, Any]:
    """Compile a graph of one empty node, "record", whose ``aupdate_state`` saves a state of the schema."""

    async def record(state: object) -> dict[str, object]:
        return {}

    builder = StateGraph(schema)
    builder.add_node("record", record)
    builder.add_edge(START, "record")
    builder.add_edge("record", END)
    return builder.compile(checkpointer=saver)


@asynccontextmanager
async def open_checkpointer(url: str) -> AsyncIterator[Saver]:
    """Open a saver for async graphs on the running event loop; creates its tables, and closes it at the end.

    Raises:
        SettingsError: The URL has another form, or the store cannot be opened.
        DependencyError: PostgreSQL without the extra ``postgres``.
    """
    async with AsyncExitStack() as stack:
        if url == "memory:":
            saver: Saver = SavedOrderMemorySaver(serde=serializer())
        elif url.startswith(_SQLITE):
            saver = in_file = await asyncio.to_thread(_opened_sqlite, url)
            stack.push_async_callback(in_file.aclose)
        elif is_postgres(url):
            saver = await _open_postgres(url, stack)
        else:
            raise _unknown_url(url)
        yield saver


async def keep_latest(saver: Saver, thread_id: str) -> None:
    """Delete all checkpoints of a thread but the newest, unless the store is in memory."""
    if isinstance(saver, ThreadedSqliteSaver):
        await saver.akeep_latest(thread_id)
    elif not isinstance(saver, InMemorySaver):
        await saver.aprune([thread_id], strategy="keep_latest")


async def newest_first(saver: Saver, prefix: str) -> Sequence[str]:
    """Return the ids of the threads that begin with an ASCII prefix, the last saved first; no state is read."""
    return await cast(_ListsNewest, saver).alast_saved(prefix)


def lists_as_saved(saver: Saver) -> bool:
    """Whether a saver lists the checkpoints of all threads in the order in which they were saved, the last first."""
    return hasattr(saver, "alast_saved")


async def thread_marks(saver: Saver, thread_ids: Sequence[str]) -> dict[str, ThreadMark] | None:
    """Return what tells whether threads have changed, without those that do not exist; None if only reading tells.

    It takes less than 0.1 ms a thread, where reading takes some 2 ms.
    """
    return await saver.amarks(thread_ids) if isinstance(saver, ThreadedSqliteSaver) else None


def locks_of(url: str, *, check_every_s: float = CHECK_EVERY_S) -> Locks:
    """The locks of the conversations in a checkpoint store; nothing is opened before the first is taken.

    Processes exclude each other where checkpoints are in PostgreSQL, or in SQLite by files in a folder beside the
    database; checkpoints in memory belong to one process. ``check_every_s`` is for PostgreSQL.

    Raises:
        SettingsError: No checkpoint store has such a URL.
    """
    if url == "memory:":
        return Locks()
    if is_postgres(url):
        remedy = "Check JUDGETREE_CHECKPOINTS and that it runs, then ask again."
        return PostgresLocks(url, remedy=remedy, check_every_s=check_every_s)
    if not url.startswith(_SQLITE):
        raise _unknown_url(url)
    database = _sqlite_path(url).resolve()
    return FileLocks(database.with_name(f"{database.name}.turns"))


def _opened_sqlite(url: str) -> ThreadedSqliteSaver:
    with store_errors(url):
        return open_sqlite_saver(_sqlite_path(url), serde=serializer(), errors=partial(store_errors, url))


async def _open_postgres(url: str, stack: AsyncExitStack) -> Saver:
    with _postgres_errors(url):
        from psycopg.rows import dict_row  # noqa: PLC0415 - the extra "postgres"
        from psycopg_pool import AsyncConnectionPool  # noqa: PLC0415

        from ...modules.storage.postgres import CONNECT_TIMEOUT_S, AsyncAnsweringConnection  # noqa: PLC0415
        from ..savers.postgres_saver import LoopPostgresSaver, check_open  # noqa: PLC0415

        # setup() creates an index concurrently, which needs autocommit.
        options = {"autocommit": True, "prepare_threshold": 0, "row_factory": dict_row}
        options |= {"connect_timeout": CONNECT_TIMEOUT_S}
        conninfo = Address(url).revealed()
        pool = AsyncConnectionPool(
            conninfo,
            connection_class=AsyncAnsweringConnection,
            min_size=1,
            max_size=_CONNECTIONS,
            open=False,
            kwargs=options,
            timeout=CONNECT_TIMEOUT_S,
            check=check_open,
        )
        stack.push_async_callback(pool.close)
        await pool.open(wait=True, timeout=10)
        saver = LoopPostgresSaver(cast(Any, pool), serde=serializer(), errors=partial(_postgres_errors, url))
        await saver.setup()
        # The saver's lock would let one query through at a time, whatever the size of the pool.
        saver.lock = asyncio.Semaphore(_CONNECTIONS)  # type: ignore[assignment]
    return saver


def _sqlite_path(url: str) -> Path:
    path = Path(url.removeprefix(_SQLITE))
    if not path.name:
        raise _unknown_url(url)
    private_folder(path.parent)
    return path


@contextmanager
def _postgres_errors(url: str) -> Iterator[None]:
    try:
        import psycopg  # noqa: PLC0415 - the extra "postgres"
        from psycopg_pool import PoolTimeout  # noqa: PLC0415
    except ImportError as error:
        raise DependencyError('PostgreSQL needs an extra: pip install "judgetree[postgres]"') from error
    try:
        yield
    except (psycopg.Error, PoolTimeout) as error:
        raise _unusable(url, error) from error


@contextmanager
def store_errors(url: str) -> Iterator[None]:
    """Turn database errors of an open store into a ``StoreFailure``.

    Raises:
        StoreFailure: The store does not answer, or rejects a write.
    """
    with ExitStack() as stack:
        if is_postgres(url):
            stack.enter_context(_postgres_errors(url))
        try:
            yield
        except sqlite3.Error as error:
            raise _unusable(url, error) from error


def _unusable(url: str, error: Exception) -> StoreFailure:
    address = Address(url)
    said = starred(" ".join(str(error).split()), address.secrets())
    remedy = _SQLITE_REMEDIES.get(getattr(error, "sqlite_errorcode", 0) & _PRIMARY, _REMEDY)
    return StoreFailure(f"The checkpoint store {str(address)!r} cannot be used: {said}. {remedy}")


def _unknown_url(url: str) -> SettingsError:
    shown = without_secrets(Address(url))
    return SettingsError(f"Unknown checkpoint store {shown!r}. Allowed: {ALLOWED_URLS}. Set JUDGETREE_CHECKPOINTS.")


@asynccontextmanager
async def open_call_journal(url: str) -> AsyncIterator[CallJournal]:
    """Open the journal of the store at ``url``, at its first call; in memory for any other than a URL's.

    The journal of a SQLite store is a file beside that of the checkpoints.
    """
    place: Path | Address | None = None
    if is_postgres(url):
        place = Address(url)
    elif url.startswith(_SQLITE):
        path = Path(url.removeprefix(_SQLITE))
        place = path.with_name(f"{path.stem}-calls.sqlite")
    journal = CallJournal(lambda: open_database(place, JOURNAL_TABLES))
    if place is None:
        yield journal
        await journal.aclose()  # not in ``finally``: a graph that is left open ends with the process without a word
        return
    try:
        yield journal
    finally:
        await journal.aclose()
