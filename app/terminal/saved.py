"""Saved search threads and conversations, opened without a model or a key."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pydantic import SecretStr

from ...graphs.config.rag_config import RagConfig
from ...graphs.rag.graph import RagGraph
from ...graphs.rag.search_tree import SearchTree
from ...graphs.rag.thread_runs import ThreadSummary
from ...graphs.systems.registry import find_system
from ...graphs.threads.checkpoints import store_errors
from ...graphs.threads.snapshots import is_absent, status_of
from ...modules.errors import SettingsError, UnknownThread
from ...modules.settings import Settings, load_settings
from ...modules.trust.saved_names import check_saved_names
from ...modules.trust.usable import NotTrusted

if TYPE_CHECKING:
    from ...graphs.conversation.conversation import Conversation
    from ...graphs.conversation.turn.store import ConversationSummary
    from ...graphs.conversations import Conversations

Fingerprint = dict[str, str]
_SQLITE = "sqlite:///"


@contextmanager
def open_graph(settings: Settings, system: str = "judge") -> Iterator[RagGraph]:
    """Open a graph over the store, for reading.

    Raises:
        SettingsError: The store cannot be read, or is damaged.
    """
    url = settings.checkpoint_url
    with store_errors(url), find_system(system).build(checkpointer=url) as graph:
        yield graph


def newest_threads(settings: Settings, limit: int) -> list[ThreadSummary]:
    """List root threads, newest first; empty, without creating a file, if there is no store."""
    if not may_hold_threads(settings.checkpoint_url):
        return []
    with open_graph(settings) as graph:
        threads = graph.list_threads(limit)
    return [thread if thread.answer_status else _with_own_status(settings, thread) for thread in threads]


def _with_own_status(settings: Settings, thread: ThreadSummary) -> ThreadSummary:
    """Read the status of an open thread with its own kind of graph; others would take it for finished."""
    check_names(settings.checkpoint_url, {"system": thread.system})
    with open_graph(settings, system_of({"system": thread.system})) as graph:
        snapshot = graph.get_state({"configurable": {"thread_id": thread.thread_id}})
    return replace(thread, status=status_of(snapshot))


def read_fingerprint(settings: Settings, thread_id: str) -> Fingerprint:
    """Read the fingerprint of a root thread; empty for a sub-run or an unknown thread.

    Raises:
        SettingsError: It names code of the current folder, and its home is not trusted.
    """
    with open_graph(settings) as graph:
        values = graph.get_state({"configurable": {"thread_id": thread_id}}).values
    fingerprint = dict(values.get("fingerprint") or {})
    check_names(settings.checkpoint_url, fingerprint)
    return fingerprint


def read_saved_choice(settings: Settings, thread_id: str) -> tuple[str | None, str, RagConfig]:
    """Read collection, system and configuration of a root thread; a key that is younger than it has its default.

    Raises:
        UnknownThread: The thread does not exist.
        SettingsError: It names code of the current folder, and its home is not trusted.
    """
    with open_graph(settings) as graph:
        snapshot = graph.get_state({"configurable": {"thread_id": thread_id}})
    if is_absent(snapshot):
        raise UnknownThread(f"Thread {thread_id!r} does not exist. `judgetree threads` lists the threads there are.")
    values = snapshot.values
    fingerprint, keys = dict(values.get("fingerprint") or {}), dict(values.get("config") or {})
    check_names(settings.checkpoint_url, {**fingerprint, **{name: str(value) for name, value in keys.items()}})
    config = RagConfig.of(keys, where=f"The saved configuration of thread {thread_id!r}")
    return fingerprint.get("retriever.collection"), system_of(fingerprint), config


def check_names(url: str, fingerprint: Fingerprint) -> None:
    """Refuse a saved thread that names code of the current folder, unless its home is trusted.

    Raises:
        SettingsError: It does.
    """
    if url.startswith(_SQLITE):
        try:
            check_saved_names(Path(url.removeprefix(_SQLITE)), fingerprint.values())
        except NotTrusted as error:
            raise SettingsError(str(error)) from error


def read_saved_tree(settings: Settings, thread_id: str) -> SearchTree:
    """Read the tree below a thread, or below a sub-run's, with the kind of graph that wrote it.

    Raises:
        UnknownThread: The thread does not exist.
    """
    with open_graph(settings, system_of(read_fingerprint(settings, thread_id))) as graph:
        return SearchTree.from_history(graph, thread_id)


def system_of(fingerprint: Fingerprint) -> str:
    """Return the system that wrote a thread; "judge" for sub-runs, which have no fingerprint."""
    return fingerprint.get("system") or "judge"


def may_hold_threads(url: str) -> bool:
    """Return whether the store may hold threads; False if no process has written to it."""
    path = url.removeprefix(_SQLITE)
    return url != "memory:" and (path == url or Path(path).exists())


_NOT_SEARCHED = "none"


def open_saved(settings: Settings) -> Conversations:
    """Open the conversations of the store, for everything but asking; use it in a ``with`` statement.

    Collection and key are needed only by questions. Every saved turn has a finished search tree, which any graph can
    read, except failed sub-runs, which only the judge's graph has.
    """
    from ...graphs.conversations import Conversations

    without_key = settings.model_copy(update={"llm_api_key": SecretStr("not needed")})
    return Conversations(_NOT_SEARCHED, system="judge", prompts={}, settings=without_key)


def saved_summaries(settings: Settings) -> list[ConversationSummary]:
    """List all conversations, the latest first; empty, without creating a file, if there is no store.

    Raises:
        SettingsError: The store cannot be opened.
    """
    if not may_hold_threads(settings.checkpoint_url):
        return []
    with open_saved(settings) as conversations:
        return conversations.summaries()


@contextmanager
def saved_conversation(name: str) -> Iterator[tuple[Conversations, Conversation]]:
    """Open the conversation of that name, with the conversations of its store; creates no store.

    Raises:
        SettingsError: The conversation has no turns, or the store cannot be opened.
    """
    settings = load_settings()
    if may_hold_threads(settings.checkpoint_url):
        with open_saved(settings) as conversations:
            conversation = conversations.conversation(name)
            if conversation.branches():
                yield conversations, conversation
                return
    raise SettingsError(f"There is no conversation {name!r}. `judgetree conversations list` lists the conversations.")
