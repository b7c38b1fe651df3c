"""Threads that earlier runs have left in the checkpoint store."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import get_args

from ...graphs.rag.graph import RagGraph
from ...graphs.rag.result import Mode
from ...graphs.rag.search_tree import SearchTree
from ...graphs.rag.sub_runs import ThreadSummary
from ...graphs.systems.registry import SYSTEMS
from ...graphs.threads.checkpoints import store_errors
from ...graphs.threads.snapshots import status_of
from ...modules.settings import Settings

Fingerprint = dict[str, str]


@contextmanager
def open_graph(settings: Settings, mode: Mode = "judge") -> Iterator[RagGraph]:
    """A graph over the store, for reading.

    Raises:
        SettingsError: The store cannot be read, or is damaged.
    """
    with store_errors(settings.checkpoint_url), SYSTEMS[mode].build(checkpointer=settings.checkpoint_url) as graph:
        yield graph


def newest_threads(settings: Settings, limit: int) -> list[ThreadSummary]:
    """Root threads, newest first; none, and no file made, where there is no store yet."""
    if not may_hold_threads(settings.checkpoint_url):
        return []
    with open_graph(settings) as graph:
        threads = graph.list_threads(limit)
    return [thread if thread.answer_status else _with_own_status(settings, thread) for thread in threads]


def _with_own_status(settings: Settings, thread: ThreadSummary) -> ThreadSummary:
    """What is left to do of an open thread only its own kind of graph knows; any other takes it for finished."""
    with open_graph(settings, mode_of({"mode": thread.mode})) as graph:
        snapshot = graph.get_state({"configurable": {"thread_id": thread.thread_id}})
    return replace(thread, status=status_of(snapshot))


def read_fingerprint(settings: Settings, thread_id: str) -> Fingerprint:
    """What determined a root thread's run, by name; empty for a thread that is unknown or no root."""
    with open_graph(settings) as graph:
        values = graph.get_state({"configurable": {"thread_id": thread_id}}).values
    return dict(values.get("fingerprint") or {})


def read_saved_tree(settings: Settings, thread_id: str) -> SearchTree:
    """The tree below a thread, which may be a sub-run's, by the kind of graph that wrote it.

    Raises:
        UnknownThread: The thread was never written.
    """
    with open_graph(settings, mode_of(read_fingerprint(settings, thread_id))) as graph:
        return SearchTree.from_history(graph, thread_id)


def mode_of(fingerprint: Fingerprint) -> Mode:
    """The graph that wrote a thread. Only the judge's graph has sub-runs, which know no mode themselves."""
    return next((mode for mode in get_args(Mode) if mode == fingerprint.get("mode")), "judge")


def may_hold_threads(url: str) -> bool:
    """False for a store that nothing has been written to yet, by any process."""
    path = url.removeprefix("sqlite:///")
    return url != "memory:" and (path == url or Path(path).exists())
