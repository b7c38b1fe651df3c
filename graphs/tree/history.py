"""Reads a search tree from the checkpoints of its threads. No model is called.

It follows the links (``next_rag_thread_id``) from the newest checkpoint of each thread. Listing all threads of a root
instead would also find the abandoned sub-runs of a forked history.
"""

from __future__ import annotations

import json
import logging
import math
from collections import defaultdict
from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Protocol, cast

from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig
from langgraph.types import StateSnapshot

from ...modules.errors import UnknownThread
from ..threads.fingerprint import may_ask_again, thread_of_try
from ..threads.snapshots import errors_of, status_of
from ..threads.state import JsonScalar, RagState, Try, updated
from .nodes import ChunkNode, QueryNode

logger = logging.getLogger(__name__)


class StateHistory(Protocol):
    """Protocol of the sources of checkpoints, such as a compiled graph."""

    def get_state_history(self, config: RunnableConfig, *, limit: int | None = None) -> Iterator[StateSnapshot]:
        """Yield the thread's checkpoints, newest first; none for a thread that does not exist."""
        ...

    def aget_state_history(self, config: RunnableConfig, *, limit: int | None = None) -> AsyncIterator[StateSnapshot]:
        """Async twin of ``get_state_history``."""
        ...


SavedTree = tuple[QueryNode, dict[str, str]]
"""Root of a tree, and the fingerprint of the root's run; the fingerprint is empty if the run saved none."""


def read_tree(graph: StateHistory, thread_id: str) -> SavedTree:
    """Read the tree below a thread, and its fingerprint; it reads the history of each thread once.

    Raises:
        UnknownThread: The thread does not exist.
    """
    walk = TreeWalk(thread_id)
    for node in walk.queue:  # ``add`` appends to the queue
        walk.add(node, SavedThread.of(list(graph.get_state_history(config_of(node.thread_id)))))
    return walk.tree()


async def aread_tree(graph: StateHistory, thread_id: str) -> SavedTree:
    """Async twin of ``read_tree``."""
    walk = TreeWalk(thread_id)
    for node in walk.queue:
        walk.add(node, await aread_thread(graph, node.thread_id))
    return walk.tree()


async def aread_query(graph: StateHistory, thread_id: str) -> QueryNode:
    """Read one query with its chunks from its newest checkpoint, without its sub-runs.

    Raises:
        UnknownThread: The thread does not exist.
    """
    walk = TreeWalk(thread_id)
    newest = [snapshot async for snapshot in graph.aget_state_history(config_of(thread_id), limit=1)]
    walk.add(walk.queue[0], SavedThread.of(newest))
    return walk.root_alone()


@dataclass(frozen=True, kw_only=True)
class SavedThread:
    """What a tree takes from the checkpoints of one thread."""

    newest: StateSnapshot
    started_at: str | None
    """Time at which the thread was first run."""

    @classmethod
    def of(cls, snapshots: Sequence[StateSnapshot]) -> SavedThread | None:
        """Make it of all checkpoints of a thread, newest first; None for a thread without any."""
        if not snapshots:
            return None
        oldest = snapshots[-1]
        started_at = str((oldest.metadata or {}).get("started_at") or oldest.created_at or "") or None
        return cls(newest=snapshots[0], started_at=started_at)


async def aread_thread(graph: StateHistory, thread_id: str) -> SavedThread | None:
    """Read the history of a thread; None if it has no checkpoint."""
    return SavedThread.of([snapshot async for snapshot in graph.aget_state_history(config_of(thread_id))])


def config_of(thread_id: str) -> RunnableConfig:
    """Return the config of a thread."""
    return {"configurable": {"thread_id": thread_id}}


class TreeWalk:
    """The queue of a tree's threads, parents before children, and what was read of them so far.

    A node in the queue has what the linking chunk says of its thread; one without checkpoints stays as it is.
    """

    def __init__(self, root: str) -> None:
        self.queue = [QueryNode(thread_id=root, query="")]
        self._queued = {root}
        self._nodes: dict[str, QueryNode] = {}
        """The threads that were read, without their chunks."""
        self._states: dict[str, RagState] = {}
        self._root = root
        """Root thread of the tree, of which this one may be a part."""
        self._links: defaultdict[tuple[str, str], list[str]] = defaultdict(list)
        """Threads of the sub-runs of a chunk, by its thread and id."""
        self._probes: dict[str, tuple[str, str]] = {}
        """Threads that may hold a further try, with the thread and the id of its chunk."""
        self._asks_again = False

    def add(self, node: QueryNode, saved: SavedThread | None) -> None:
        """Add a thread from its saved state, None without a checkpoint, and queue the threads that it links to."""
        if saved is None:
            if node.thread_id in self._probes:
                self._links[self._probes[node.thread_id]].remove(node.thread_id)
            if node.parent_thread_id is None:
                raise UnknownThread(
                    f"No checkpoint knows the thread {node.thread_id!r}. Check the id, and that the graph uses the "
                    "checkpoint store that the question was asked with."
                )
            return
        newest = saved.newest
        state = _state_of(newest)
        self._states[node.thread_id] = state
        if node.parent_thread_id is None:
            self._asks_again = may_ask_again(state.get("fingerprint", {}))
            self._root = _root_of(newest, node.thread_id)
        run_by = _root_of(newest, self._root)
        self._nodes[node.thread_id] = replace(
            node,
            linked_from="" if run_by == self._root else run_by,
            query=state.get("query", node.query),
            answer=state.get("answer", ""),
            status=status_of(newest),
            answer_status=state.get("status"),
            error="; ".join(errors_of(newest)),
            set_suffices=state.get("set_suffices"),
            evidence=state.get("evidence", ""),
            usage=tuple(state.get("usage", ())),
            searches=tuple(state.get("searches", ())),
            started_at=saved.started_at,
            ended_at=newest.created_at,
        )
        digest = str((newest.metadata or {}).get("fingerprint", ""))
        for chunk in state.get("similar_chunks", []):
            self._queue_links(node, chunk, digest)
        if place := self._probes.get(node.thread_id):
            parent = replace(node, thread_id=place[0], depth=node.depth - 1)
            self._probe(parent, place[1], digest)

    def _queue_links(self, node: QueryNode, chunk: Document, digest: str) -> None:
        """Queue the threads of a chunk's sub-runs: those that it links to, and those of tries that have not ended."""
        tries = [(str(each["query"]), str(each["thread_id"])) for each in chunk.metadata.get("tries") or ()]
        first = str(chunk.metadata.get("next_query") or ""), str(chunk.metadata.get("next_rag_thread_id") or "")
        for query, target in tries or [first]:
            if target:
                self._queue(node, _chunk_id(chunk), query, target)
        if self._asks_again and first[1] and not tries and chunk.metadata.get("round") is None:
            self._probe(node, _chunk_id(chunk), digest)

    def _probe(self, node: QueryNode, chunk_id: str, digest: str) -> None:
        """Queue the thread of a chunk's next try, which nothing links to before all of its tries have ended."""
        attempt = len(self._links[node.thread_id, chunk_id]) + 1
        target = thread_of_try(node.thread_id, chunk_id, attempt, digest)
        self._probes[target] = node.thread_id, chunk_id
        self._queue(node, chunk_id, "", target)

    def _queue(self, node: QueryNode, chunk_id: str, query: str, target: str) -> None:
        """Queue a thread once, so that damaged links cannot make a cycle."""
        if target in self._queued:
            logger.warning("Left out: %s links to %s, which the tree already holds.", node.thread_id, target)
            return
        below = QueryNode(thread_id=target, query=query, parent_thread_id=node.thread_id, depth=node.depth + 1)
        self.queue.append(below)
        self._queued.add(target)
        self._links[node.thread_id, chunk_id].append(target)

    def tree(self) -> SavedTree:
        """Build the tree once all queued threads are added."""
        complete: dict[str, QueryNode] = {}
        # Backwards, so that the nodes of the sub-runs exist before their parent's.
        for queued in reversed(self.queue):
            thread_id = queued.thread_id
            chunks = tuple(
                _chunk_node(chunk, [complete[each] for each in self._links[thread_id, _chunk_id(chunk)]])
                for chunk in self._states.get(thread_id, RagState()).get("similar_chunks", ())
            )
            complete[thread_id] = replace(self._nodes.get(thread_id, queued), chunks=chunks)
        root = self.queue[0].thread_id
        return complete[root], dict(self._states[root].get("fingerprint", {}))

    def root_alone(self) -> QueryNode:
        """Build the root with its chunks, without its sub-runs."""
        root = self.queue[0].thread_id
        chunks = self._states[root].get("similar_chunks", ())
        return replace(self._nodes[root], chunks=tuple(_chunk_node(chunk, ()) for chunk in chunks))


def _root_of(snapshot: StateSnapshot, otherwise: str) -> str:
    """Return the root thread under which a thread was run."""
    metadata = cast(Mapping[str, object], snapshot.metadata or {})
    return str(metadata.get("root_thread_id") or otherwise)


def _chunk_node(chunk: Document, sub_runs: Sequence[QueryNode]) -> ChunkNode:
    metadata = {str(key): _json_scalar(value) for key, value in chunk.metadata.items() if key != "tries"}
    tries = tuple(cast(Sequence[Try], chunk.metadata.get("tries") or ()))
    return ChunkNode(
        chunk_id=_chunk_id(chunk), text=chunk.page_content, metadata=metadata, tries=tries, sub_runs=tuple(sub_runs)
    )


def _chunk_id(chunk: Document) -> str:
    return str(chunk.metadata.get("chunk_id", ""))


def _json_scalar(value: object) -> JsonScalar:
    """Convert a metadata value, which may have any type: numbers that are not finite become None, lists of texts JSON,
    other objects text.
    """
    if value is None or isinstance(value, (str, int)):
        return value
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list) and all(isinstance(each, str) for each in value):
        return json.dumps(value, ensure_ascii=False)
    return str(value)


def _state_of(snapshot: StateSnapshot) -> RagState:
    """Return the snapshot's values with the writes of its finished tasks.

    A snapshot shows the state at the start of a step. Results of finished branches whose siblings still run, or were
    killed, are in its tasks only.
    """
    state = cast(RagState, dict(snapshot.values))
    for task in snapshot.tasks:
        written = task.result if isinstance(task.result, Mapping) else {}
        for key, value in written.items():
            for update in _updates_in(value):
                state = updated(state, {key: update})
    return state


def _updates_in(value: object) -> Sequence[object]:
    """Unpack ``{"$writes": […]}``, into which LangGraph folds several writes of one task to one key."""
    return value["$writes"] if isinstance(value, Mapping) and "$writes" in value else (value,)
