"""What earlier commands have left, opened without a model or a key: search threads and conversations."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import get_args

from pydantic import SecretStr

from ...graphs.conversation.conversation import Conversation
from ...graphs.conversation.conversations import Conversations
from ...graphs.conversation.turn.store import ConversationSummary
from ...graphs.rag.graph import RagGraph
from ...graphs.rag.result import SystemName
from ...graphs.rag.search_tree import SearchTree
from ...graphs.rag.thread_runs import ThreadSummary
from ...graphs.systems.registry import SYSTEMS
from ...graphs.threads.checkpoints import store_errors
from ...graphs.threads.snapshots import status_of
from ...modules.errors import SettingsError
from ...modules.settings import Settings, load_settings

Fingerprint = dict[str, str]


@contextmanager
def open_graph(settings: Settings, system: SystemName = "judge") -> Iterator[RagGraph]:
    """A graph over the store, for reading.

    Raises:
        SettingsError: The store cannot be read, or is damaged.
    """
    with store_errors(settings.checkpoint_url), SYSTEMS[system].build(checkpointer=settings.checkpoint_url) as graph:
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
    with open_graph(settings, system_of({"system": thread.system})) as graph:
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
    with open_graph(settings, system_of(read_fingerprint(settings, thread_id))) as graph:
        return SearchTree.from_history(graph, thread_id)


def system_of(fingerprint: Fingerprint) -> SystemName:
    """The graph that wrote a thread. Only the judge's graph has sub-runs, which know no system themselves."""
    return next((system for system in get_args(SystemName) if system == fingerprint.get("system")), "judge")


def may_hold_threads(url: str) -> bool:
    """False for a store that nothing has been written to yet, by any process."""
    path = url.removeprefix("sqlite:///")
    return url != "memory:" and (path == url or Path(path).exists())


_NOT_SEARCHED = "none"


def open_saved(settings: Settings) -> Conversations:
    """The conversations of the store, for everything but asking; use it in a ``with`` statement.

    The collection is opened by a question only, and the key is used by one only. Every saved turn has a finished search
    tree, which any graph reads alike, but for sub-runs that failed: these are only the judge's.
    """
    without_key = settings.model_copy(update={"llm_api_key": SecretStr("not needed")})
    return Conversations(_NOT_SEARCHED, system="judge", settings=without_key)


def saved_summaries(settings: Settings) -> list[ConversationSummary]:
    """All conversations, the one that was last spoken in first; none, and no file made, where there is no store yet.

    Raises:
        SettingsError: The store cannot be opened.
    """
    if not may_hold_threads(settings.checkpoint_url):
        return []
    with open_saved(settings) as conversations:
        return conversations.summaries()


@contextmanager
def saved_conversation(name: str) -> Iterator[tuple[Conversations, Conversation]]:
    """The conversation of that name, and the conversations it is one of; no store is made where there is none yet.

    Raises:
        SettingsError: Nothing was ever asked in it, or the store cannot be opened.
    """
    settings = load_settings()
    if may_hold_threads(settings.checkpoint_url):
        with open_saved(settings) as conversations:
            conversation = conversations.conversation(name)
            if conversation.branches():
                yield conversations, conversation
                return
    raise SettingsError(f"There is no conversation {name!r}. `judgetree conversations list` lists those there are.")
