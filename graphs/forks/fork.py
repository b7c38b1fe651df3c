"""A fork: a search tree with one change, of which only what the change touches is computed again.

The thread of the changed query and those above it are new; their chunks link to the finished threads of the origin
where nothing changed. Nodes are called outside of LangGraph, and a thread is written whole once it is answered. Until
then the journal keeps its calls, so that the same fork, run again after a kill, makes only those that were in flight.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

from langchain_core.runnables.config import var_child_runnable_config
from langgraph.errors import GraphBubbleUp

from ...modules.errors import SettingsError
from ..systems.nodes import augment
from ..threads.candidates import as_ancestor, candidate_of
from ..threads.context import RagContext, RunContext
from ..threads.fingerprint import sub_thread_id
from ..threads.handed_on import ANSWERING_NODE
from ..threads.snapshots import is_finished
from ..threads.state import RagState, updated
from ..tree.nodes import ChunkNode
from .change import Change
from .changed_query import before_the_answer, changed_query, id_of
from .threads import PathThread, answered, context_of_thread, runtime_of, with_sub_answer


@dataclass(frozen=True, kw_only=True)
class ForkRun:
    """The new threads of a fork, which are run from the changed one up to the root."""

    context: RunContext
    """Of the new root."""
    changed_services: RagContext
    """Services of the changed query, and of what newly hangs below it."""
    path: Sequence[PathThread]
    """The threads of the origin from its root to the changed query."""
    chunk: ChunkNode | None
    """The changed chunk; None if the query itself is changed."""
    change: Change
    fingerprint: dict[str, str]
    """Of the new root."""

    async def run(self) -> None:
        """Answer the changed query and those above it, and write their threads; finished ones stay as they are.

        Raises:
            ModelCallError: The reader failed; the same fork, run again, continues from here.
            SettingsError: The limit of model calls is too low, or a node interrupts the question.
        """
        contexts = self._contexts()
        self._hold(contexts)
        var_child_runnable_config.set({"configurable": {}})  # as in a node: sub-runs look there for an outer stream
        below: RagState | None = None
        try:
            for place in reversed(range(len(contexts))):
                below = await self._run_thread(place, contexts, below)
        except GraphBubbleUp as interrupt:
            raise SettingsError("A judge or tool interrupts the question, which no fork can wait for.") from interrupt

    def _contexts(self) -> list[RunContext]:
        """Return the contexts of the new threads, root first."""
        contexts = [self.context]
        for origin, thread in itertools.pairwise(self.path):
            above = contexts[-1]
            own_id = sub_thread_id(above.thread_id, thread.asked_by, thread.state["query"], above.fingerprint)
            context = context_of_thread(above, own_id, parent=above.thread_id, depth=thread.depth)
            asking = next(chunk for chunk in origin.state["similar_chunks"] if id_of(chunk) == thread.asked_by)
            candidate = candidate_of(asking, above, calls=0).asking(thread.state["query"])
            ancestors = (*above.ancestors, as_ancestor(candidate))
            contexts.append(replace(context, path=candidate.path, ancestors=ancestors))
        return [*contexts[:-1], replace(contexts[-1], services=self.changed_services)]

    def _hold(self, contexts: Sequence[RunContext]) -> None:
        """Keep back a call for each answer that no earlier run has paid for."""
        calls = self.context.calls
        paid = {kept.taken.held_by for kept in calls.known_replies} if calls else set()
        if not all(
            self.context.budget.reserve_answer(each.thread_id) for each in contexts if each.thread_id not in paid
        ):
            raise SettingsError(
                f"max_llm_calls={self.context.budget.limit} is too low: the changed query and those above it need "
                f"{len(contexts)} answers."
            )

    async def _run_thread(self, place: int, contexts: Sequence[RunContext], below: RagState | None) -> RagState:
        """Return the state of a new thread, which is answered and written unless it is there.

        ``below`` is the state of the next thread of the path; None for the changed one.
        """
        context, origin = contexts[place], self.path[place].state
        snapshot = await context.graph.aget_state({"configurable": {"thread_id": context.thread_id}})
        if is_finished(snapshot):
            context.budget.release(context.thread_id)
            return cast(RagState, snapshot.values)
        if below is None:
            state = await changed_query(origin, self.change, self.chunk, context)
        else:
            changed, new_id = self.path[place + 1], contexts[place + 1].thread_id
            state = before_the_answer(origin, origin["similar_chunks"])
            state = with_sub_answer(state, changed.asked_by, changed.thread_id, new_id, below)
        state = await answered(updated(state, await augment(state, runtime_of(context))), context)
        if place == 0:
            state = updated(state, {"fingerprint": self.fingerprint})
        await context.graph.aupdate_state(
            {"configurable": {"thread_id": context.thread_id}, "metadata": dict(context.metadata())},
            cast(dict[str, object], state),
            as_node=ANSWERING_NODE,
        )
        return state
