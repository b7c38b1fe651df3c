"""A growing tree as events of the AG-UI protocol: sub-questions are subagents, verdicts reasoning."""

from __future__ import annotations

from collections.abc import Iterator
from typing import cast

from ag_ui.core import (
    ActivityDeltaEvent,
    ActivitySnapshotEvent,
    BaseEvent,
    ReasoningEndEvent,
    ReasoningMessageContentEvent,
    ReasoningMessageEndEvent,
    ReasoningMessageStartEvent,
    ReasoningStartEvent,
    RunErrorEvent,
    RunFinishedEvent,
    RunStartedEvent,
    SubagentErrorEvent,
    SubagentFinishedEvent,
    SubagentStartedEvent,
    TextMessageContentEvent,
    TextMessageEndEvent,
    TextMessageStartEvent,
)

from ....graphs.drawing.words import VERDICT_WORDS
from ....graphs.tree.nodes import ChunkNode, QueryNode, walk_chunks, walk_queries
from ...stores.saved_trees import TreeThread
from ..serving.errors import failure_words
from .growth import Growth

ACTIVITY = "SEARCH_TREE"
"""Type of the activity whose content is the tree's document."""
SUBAGENT = "sub-question"


class AgUiRun:
    """The events of one tree for one client; a run is the thread of a question, also of a sub-question."""

    def __init__(self, thread: TreeThread) -> None:
        self._run_id = thread.thread_id
        self._thread_id = thread.conversation_id or thread.thread_id
        self._parent = thread.parent_thread_id or None
        self._reasons = f"{thread.thread_id}:reasoning"
        self._judged: set[tuple[str, str]] = set()
        self._open: dict[str, QueryNode] = {}
        """Subagents that have started and not ended, by thread."""
        self._started: set[str] = set()

    def events(self, state: Growth) -> Iterator[BaseEvent]:
        """Yield the events of one state of the tree, those of the first state with the run's start."""
        tree_id = f"{self._run_id}:tree"
        if state.changes is None:
            yield RunStartedEvent(thread_id=self._thread_id, run_id=self._run_id, parent_run_id=self._parent)
            yield ReasoningStartEvent(message_id=self._reasons)
            yield ActivitySnapshotEvent(
                message_id=tree_id, activity_type=ACTIVITY, content=state.document, replace=True
            )
        else:
            yield ActivityDeltaEvent.model_validate(
                {"message_id": tree_id, "activity_type": ACTIVITY, "patch": state.changes}
            )
        yield from self._subagents_started(state.root)
        for query, chunk in walk_chunks(state.root):
            place = query.thread_id, chunk.chunk_id
            if chunk.verdict == "judged" and place not in self._judged:
                self._judged.add(place)
                yield from self._reasoning(query, chunk)
        yield from self._subagents_ended(state.root)

    def end(self, root: QueryNode) -> Iterator[BaseEvent]:
        """Yield the events after the last state: the answer, or the error of a failed run."""
        for thread_id, node in self._open.items():
            message = failure_words(node.error) or "It was ended before it had an answer."
            yield SubagentErrorEvent(subagent_run_id=thread_id, message=message)
        yield ReasoningEndEvent(message_id=self._reasons)
        if root.status != "finished":
            yield RunErrorEvent(message=failure_words(root.error) or "The question failed.", code=root.status)
            return
        if root.answer:
            answer_id = f"{self._run_id}:answer"
            yield TextMessageStartEvent(message_id=answer_id, role="assistant")
            yield TextMessageContentEvent(message_id=answer_id, delta=root.answer)
            yield TextMessageEndEvent(message_id=answer_id)
        yield RunFinishedEvent(thread_id=self._thread_id, run_id=self._run_id, result=_outcome(root))

    def _subagents_started(self, root: QueryNode) -> Iterator[BaseEvent]:
        for node in walk_queries(root):
            if node is root or node.thread_id in self._started:
                continue
            self._started.add(node.thread_id)
            parent = node.parent_thread_id if node.parent_thread_id != root.thread_id else None
            yield SubagentStartedEvent(
                subagent_run_id=node.thread_id, name=SUBAGENT, description=node.query, parent_subagent_run_id=parent
            )
            self._open[node.thread_id] = node

    def _subagents_ended(self, root: QueryNode) -> Iterator[BaseEvent]:
        # One that failed may be resumed, and is reported at the end.
        for node in reversed(list(walk_queries(root))):
            if node.thread_id not in self._open:
                continue
            self._open[node.thread_id] = node
            if node.status == "finished":
                del self._open[node.thread_id]
                yield SubagentFinishedEvent(subagent_run_id=node.thread_id, result=_outcome(node))

    def _reasoning(self, query: QueryNode, chunk: ChunkNode) -> Iterator[BaseEvent]:
        message_id = f"{query.thread_id}:{chunk.chunk_id}"
        within = query.thread_id if query.thread_id in self._open else None
        yield ReasoningMessageStartEvent(message_id=message_id, subagent_run_id=within)
        yield ReasoningMessageContentEvent(message_id=message_id, subagent_run_id=within, delta=_format_verdict(chunk))
        yield ReasoningMessageEndEvent(message_id=message_id, subagent_run_id=within)


def failed(message: str) -> BaseEvent:
    """Return the last event of a stream that broke off."""
    return RunErrorEvent(message=message)


def document_of(event: BaseEvent) -> dict[str, object]:
    """Return an event as it is sent."""
    return cast(dict[str, object], event.model_dump(mode="json", by_alias=True))


def _outcome(node: QueryNode) -> dict[str, object]:
    return {"answer": node.answer, "answer_status": node.answer_status}


def _format_verdict(chunk: ChunkNode) -> str:
    parts = [f"{chunk.name}: {VERDICT_WORDS[chunk.verdict_label]}.", chunk.reason]
    if chunk.next_query:
        parts.append(f"Asks: {chunk.next_query}")
    return " ".join(part for part in parts if part)
