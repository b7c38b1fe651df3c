"""Successive states of one search tree while it grows, from the checkpoints of any process."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import replace

from langgraph.types import StateSnapshot

from ..threads.snapshots import is_finished
from .history import SavedThread, SavedTree, StateHistory, TreeWalk, aread_thread, config_of

Marks = Callable[[Sequence[str]], Awaitable[Mapping[str, object] | None]]
"""Returns what tells a thread's state from a later one, of those that exist; None if the store has no such marks."""


class TreeFollower:
    """Reads a tree again and again, and each time only the threads that may have changed.

    A thread that ran to its end is read once. Of the others the newest checkpoint is read.
    """

    def __init__(self, graph: StateHistory, thread_id: str, *, marks: Marks | None = None) -> None:
        """Read nothing yet; ``marks`` tells which threads have changed, at less cost than reading them."""
        self._graph = graph
        self._marks_of = marks
        self._marks: Mapping[str, object] = {}
        self._root = thread_id
        self._threads: dict[str, SavedThread | None] = {}
        """In the order of the last walk, parents before children; None for a thread without a checkpoint."""

    async def read(self) -> SavedTree | None:
        """Read the tree as it is now; None if nothing has changed since the last call.

        Raises:
            UnknownThread: The thread does not exist.
        """
        if self._threads and not await self._refresh():
            return None
        walk = TreeWalk(self._root)
        for node in walk.queue:  # ``add`` appends to the queue
            if node.thread_id not in self._threads:
                self._threads[node.thread_id] = await aread_thread(self._graph, node.thread_id)
            walk.add(node, self._threads[node.thread_id])
        self._threads = {node.thread_id: self._threads[node.thread_id] for node in walk.queue}
        return walk.tree()

    async def _refresh(self) -> bool:
        """Read the threads that may have changed; returns whether one has."""
        has_changed = False
        # Parents first: below one that has ended, everything is saved by then.
        for thread_id in await self._changed(self._open()):
            known = self._threads[thread_id]
            newest = [each async for each in self._graph.aget_state_history(config_of(thread_id), limit=1)]
            if not newest:
                has_changed |= known is not None
                self._threads[thread_id] = None
            elif known is None:
                has_changed = True
                self._threads[thread_id] = await aread_thread(self._graph, thread_id)
            elif _mark_of(newest[0]) != _mark_of(known.newest):
                has_changed = True
                self._threads[thread_id] = replace(known, newest=newest[0])
        return has_changed

    def _open(self) -> list[str]:
        """Return the threads that have not ended, parents before children."""
        return [each for each, known in self._threads.items() if known is None or not is_finished(known.newest)]

    async def _changed(self, thread_ids: list[str]) -> list[str]:
        """Return those of the threads whose marks have changed; all without marks."""
        marks = await self._marks_of(thread_ids) if self._marks_of else None
        if marks is None:
            return thread_ids
        before, self._marks = self._marks, {each: marks.get(each) for each in thread_ids}
        return [each for each in thread_ids if each not in before or before[each] != self._marks[each]]


def _mark_of(snapshot: StateSnapshot) -> tuple[object, ...]:
    """Return what tells a state from a later one: the checkpoint, and which of its tasks have written what they do."""
    tasks = ((task.id, task.result is None, str(task.error), len(task.interrupts)) for task in snapshot.tasks)
    return (snapshot.config["configurable"].get("checkpoint_id"), *tasks)
