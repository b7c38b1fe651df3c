"""The checkpoint store of a graph, by URL: its saver, locks and journal, and what graphs do with threads."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import AbstractAsyncContextManager, AbstractContextManager
from typing import Any, Protocol, cast

from langchain_core.documents import Document
from langgraph.checkpoint.memory import InMemorySaver
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph

from ...modules.calls.journal import CallJournal
from ...modules.errors import SettingsError
from ...modules.locks.locks import CHECK_EVERY_S, Locks
from ..savers.serializer import serializer
from ..savers.sqlite_saver import ThreadedSqliteSaver, ThreadMark
from ..stores.contract import Saver
from ..stores.registry import store_of

__all__ = [
    "Saver",
    "check_storable",
    "keep_latest",
    "lists_as_saved",
    "locks_of",
    "newest_first",
    "open_call_journal",
    "open_checkpointer",
    "record_graph",
    "store_errors",
    "thread_marks",
]


class _ListsNewest(Protocol):
    """What the savers of all URLs have."""

    async def alast_saved(self, prefix: str) -> Sequence[str]: ...


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


def record_graph(schema: type[Any], saver: Saver) -> CompiledStateGraph[Any, None, Any, Any]:
    """Compile a graph of one empty node, "record", whose ``aupdate_state`` saves a state of the schema."""

    async def record(state: object) -> dict[str, object]:
        return {}

    builder = StateGraph(schema)
    builder.add_node("record", record)
    builder.add_edge(START, "record")
    builder.add_edge("record", END)
    return builder.compile(checkpointer=saver)


def open_checkpointer(url: str) -> AbstractAsyncContextManager[Saver]:
    """Open a saver for async graphs on the running event loop; creates what it needs, and closes it at the end.

    Raises:
        SettingsError: The URL has another form, or the store cannot be opened.
        DependencyError: The extra of the store is not installed.
    """
    return store_of(url).open_saver()


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

    Processes exclude each other where checkpoints are in PostgreSQL or Redis, or in SQLite by files in a folder beside
    the database; checkpoints in memory belong to one process. ``check_every_s`` is for servers.

    Raises:
        SettingsError: No checkpoint store has such a URL.
    """
    return store_of(url).locks(check_every_s=check_every_s)


def store_errors(url: str) -> AbstractContextManager[None]:
    """Turn errors of an open store into a ``StoreFailure``.

    Raises:
        SettingsError: No checkpoint store has such a URL.
        StoreFailure: The store does not answer, or rejects a write.
    """
    return store_of(url).errors()


def open_call_journal(url: str) -> AbstractAsyncContextManager[CallJournal]:
    """Open the journal of the store at ``url``, at its first call, and close it at the end.

    Raises:
        SettingsError: No checkpoint store has such a URL.
    """
    return store_of(url).open_journal()
