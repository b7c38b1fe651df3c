"""The threads on the path from the root of a search tree to one of its nodes, read for being answered again."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import cast

from langgraph.runtime import Runtime

from ...modules.calls.journal import ThreadCalls
from ...modules.calls.usage import CallRecord
from ...modules.errors import SettingsError
from ..systems.nodes import generate
from ..threads.branches import Branches
from ..threads.context import Compiled, RunContext, utc_now
from ..threads.handed_on import ANSWERING_NODE, handed_on
from ..threads.snapshots import is_finished
from ..threads.state import ChunkPatch, JsonScalar, RagState, Try, updated
from ..tree.nodes import QueryNode


@dataclass(frozen=True, kw_only=True)
class PathThread:
    """A finished thread of a tree, on the path to a node."""

    thread_id: str
    state: RagState
    depth: int
    asked_by: str
    """Id of the chunk of the thread above that asks it; ``""`` for the root."""
    metadata: Mapping[str, object] = field(default_factory=dict)
    """Metadata of its newest checkpoint."""


async def read_path(graph: Compiled, path: Sequence[QueryNode]) -> list[PathThread]:
    """Read the threads of a path from their newest checkpoints, root first.

    Raises:
        SettingsError: One of them is not finished.
    """
    threads: list[PathThread] = []
    for above, node in zip((None, *path), path, strict=False):
        snapshot = await graph.aget_state({"configurable": {"thread_id": node.thread_id}})
        if not is_finished(snapshot):
            raise SettingsError(f"The thread {node.thread_id!r} is {node.status}. Finish it first: ask --resume.")
        chunks = above.chunks if above else ()
        asked_by = next((c.chunk_id for c in chunks if node.thread_id in (each.thread_id for each in c.sub_runs)), "")
        threads.append(
            PathThread(
                thread_id=node.thread_id,
                state=cast(RagState, dict(snapshot.values)),
                depth=node.depth,
                asked_by=asked_by,
                metadata=cast(Mapping[str, object], snapshot.metadata or {}),
            )
        )
    return threads


def context_of_thread(context: RunContext, thread_id: str, *, parent: str, depth: int) -> RunContext:
    """Return the context of another thread of a tree."""
    calls: ThreadCalls | None = context.calls.of_thread(thread_id) if context.calls else None
    return replace(
        context,
        thread_id=thread_id,
        parent_thread_id=parent,
        depth=depth,
        branches=Branches(),
        calls=calls,
        started_at=utc_now(),
    )


def runtime_of(context: RunContext) -> Runtime[RunContext]:
    """Return what LangGraph would hand to a node of the thread."""
    return Runtime(context=context, stream_writer=lambda event: None)


async def answered(state: RagState, context: RunContext) -> RagState:
    """Return the state with the reader's answer to its evidence.

    Raises:
        ModelCallError: The reader failed after its last attempt.
    """
    return updated(state, await generate(state, runtime_of(context)))


def with_sub_answer(state: RagState, chunk_id: str, old_thread_id: str, thread_id: str, below: RagState) -> RagState:
    """Return the state with another thread of one of a chunk's sub-questions, and the answer of its state ``below``."""
    answer = handed_on(below["answer"], below["usage"])
    chunk = next(each for each in state["similar_chunks"] if each.metadata["chunk_id"] == chunk_id)
    changes: dict[str, JsonScalar | list[Try]] = {}
    if chunk.metadata["next_rag_thread_id"] == old_thread_id:
        changes = {"next_rag_thread_id": thread_id, "sub_answer": answer, "sub_run_error": "", "budget_spent": ""}
    if tries := cast(list[Try], chunk.metadata.get("tries") or []):
        changes["tries"] = [
            Try(**{**each, "thread_id": thread_id, "answer": answer, "error": ""})
            if each["thread_id"] == old_thread_id
            else each
            for each in tries
        ]
    return updated(state, {"similar_chunks": [ChunkPatch(chunk_id=chunk_id, changes=changes)]})


def taken_over(usage: Sequence[CallRecord], chunk_ids: set[str]) -> list[CallRecord]:
    """Return the records of calls that need not be made again, as cached ones: those about these chunks, or none.

    They keep their ids, so that the texts of the calls are found.
    """
    kept = (record for record in usage if record["node"] != ANSWERING_NODE)
    return [
        CallRecord(**{**record, "cached": True})
        for record in kept
        if not record["chunk_id"] or record["chunk_id"] in chunk_ids
    ]
