"""Reads a search tree from the checkpoints of its threads. No model is called.

It follows the links (``next_rag_thread_id``) from the newest checkpoint of each thread. Listing all threads of a root
instead would also find the abandoned sub-runs of a forked history.
"""

from __future__ import annotations

import logging
import math
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, cast

from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig
from langgraph.types import Overwrite, StateSnapshot

from ...modules.errors import UnknownThread
from ..threads.snapshots import ThreadStatus, errors_of, status_of
from ..threads.state import JsonScalar, RagState, merge_chunks, merge_usage
from .nodes import ChunkNode, QueryNode

logger = logging.getLogger(__name__)


class StateHistory(Protocol):
    """Protocol of the sources of checkpoints, such as a compiled graph."""

    def get_state_history(self, config: RunnableConfig) -> Iterator[StateSnapshot]:
        """Yield the thread's checkpoints, newest first; none for a thread that does not exist."""
        ...

    def aget_state_history(self, config: RunnableConfig) -> AsyncIterator[StateSnapshot]:
        """Async twin of ``get_state_history``."""
        ...


SavedTree = tuple[QueryNode, dict[str, str]]
"""Root of a tree, and the fingerprint of the root's run; the fingerprint is empty if the run saved none."""


def read_tree(graph: StateHistory, thread_id: str) -> SavedTree:
    """Read the tree below a thread, and its fingerprint; it reads the history of each thread once.

    Raises:
        UnknownThread: The thread does not exist.
    """
    walk = _Walk(thread_id)
    for link in walk.queue:  # ``add`` appends to the queue
        walk.add(link, list(graph.get_state_history(_config_of(link))))
    return walk.tree()


async def aread_tree(graph: StateHistory, thread_id: str) -> SavedTree:
    """Async twin of ``read_tree``."""
    walk = _Walk(thread_id)
    for link in walk.queue:
        walk.add(link, [snapshot async for snapshot in graph.aget_state_history(_config_of(link))])
    return walk.tree()


@dataclass(frozen=True, kw_only=True)
class _Link:
    """A thread to read, as described by the chunk that links to it."""

    thread_id: str
    query: str = ""
    parent: str | None = None
    depth: int = 0


@dataclass(frozen=True, kw_only=True)
class _Thread:
    """One thread as read from its checkpoints."""

    state: RagState
    links: Mapping[str, str]
    """Threads of the sub-runs, by chunk id."""
    status: ThreadStatus = "open"
    error: str = ""
    started_at: str | None = None
    ended_at: str | None = None


class _Walk:
    """The queue of a tree's threads, parents before children, and the threads read so far."""

    def __init__(self, root: str) -> None:
        self.queue = [_Link(thread_id=root)]
        self._queued = {root}
        self._threads: dict[str, _Thread] = {}

    def add(self, link: _Link, snapshots: Sequence[StateSnapshot]) -> None:
        """Add a thread from its snapshots, newest first, and queue the threads that it links to."""
        if not snapshots:
            if link.parent is None:
                raise UnknownThread(
                    f"No checkpoint knows the thread {link.thread_id!r}. Check the id, and that the graph uses the "
                    "checkpoint store that the question was asked with."
                )
            self._threads[link.thread_id] = _Thread(state=RagState(query=link.query), links={})
            return
        newest = snapshots[0]
        state = _state_of(newest)
        self._threads[link.thread_id] = _Thread(
            state=state,
            links=dict(self._queue_links(link, state)),
            status=status_of(newest),
            error="; ".join(errors_of(newest)),
            started_at=snapshots[-1].created_at,
            ended_at=newest.created_at,
        )

    def _queue_links(self, link: _Link, state: RagState) -> Iterator[tuple[str, str]]:
        """Yield (chunk id, thread id) of each link; a thread is queued once, so damaged links cannot make a cycle."""
        for chunk in state.get("similar_chunks", []):
            target = str(chunk.metadata.get("next_rag_thread_id") or "")
            if target in self._queued:
                logger.warning("Left out: %s links to %s, which the tree already holds.", link.thread_id, target)
            elif target:
                query = str(chunk.metadata.get("next_query") or "")
                self.queue.append(_Link(thread_id=target, query=query, parent=link.thread_id, depth=link.depth + 1))
                self._queued.add(target)
                yield _chunk_id(chunk), target

    def tree(self) -> SavedTree:
        """Build the tree once all queued threads are added."""
        nodes: dict[str, QueryNode] = {}
        # Backwards, so that the nodes of the sub-runs exist before their parent's.
        for link in reversed(self.queue):
            nodes[link.thread_id] = _query_node(link, self._threads[link.thread_id], nodes)
        root = self.queue[0].thread_id
        return nodes[root], dict(self._threads[root].state.get("fingerprint", {}))


def _config_of(link: _Link) -> RunnableConfig:
    return {"configurable": {"thread_id": link.thread_id}}


def _query_node(link: _Link, thread: _Thread, nodes: Mapping[str, QueryNode]) -> QueryNode:
    state = thread.state
    return QueryNode(
        thread_id=link.thread_id,
        parent_thread_id=link.parent,
        depth=link.depth,
        query=state.get("query", link.query),
        answer=state.get("answer", ""),
        status=thread.status,
        answer_status=state.get("status"),
        error=thread.error,
        evidence=state.get("evidence", ""),
        usage=tuple(state.get("usage", ())),
        started_at=thread.started_at,
        ended_at=thread.ended_at,
        chunks=tuple(
            _chunk_node(chunk, nodes.get(thread.links.get(_chunk_id(chunk), "")))
            for chunk in state.get("similar_chunks", ())
        ),
    )


def _chunk_node(chunk: Document, child: QueryNode | None) -> ChunkNode:
    metadata = {str(key): _json_scalar(value) for key, value in chunk.metadata.items()}
    return ChunkNode(chunk_id=_chunk_id(chunk), text=chunk.page_content, metadata=metadata, child=child)


def _chunk_id(chunk: Document) -> str:
    return str(chunk.metadata.get("chunk_id", ""))


def _json_scalar(value: object) -> JsonScalar:
    """Convert a metadata value, which may have any type: numbers that are not finite become None, objects text."""
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    return value if isinstance(value, str | int | None) else str(value)


_REDUCERS = {"similar_chunks": merge_chunks, "usage": merge_usage}


def _state_of(snapshot: StateSnapshot) -> RagState:
    """Return the snapshot's values with the writes of its finished tasks.

    A snapshot shows the state at the start of a step. Results of finished branches whose siblings still run, or were
    killed, are in its tasks only.
    """
    values = dict(snapshot.values)
    for task in snapshot.tasks:
        written = task.result if isinstance(task.result, Mapping) else {}
        for key, value in written.items():
            for update in _updates_in(value):
                _apply(values, key, update)
    return cast(RagState, values)


def _updates_in(value: object) -> Sequence[object]:
    """Unpack ``{"$writes": […]}``, into which LangGraph folds several writes of one task to one key."""
    return value["$writes"] if isinstance(value, Mapping) and "$writes" in value else (value,)


def _apply(values: dict[str, object], key: str, update: object) -> None:
    if isinstance(update, Overwrite):
        values[key] = update.value
    elif key in _REDUCERS:
        values[key] = _REDUCERS[key](values.get(key, []), update)  # type: ignore[operator]
    else:
        values[key] = update
