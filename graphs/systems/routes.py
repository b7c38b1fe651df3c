"""Where the judge graph goes next. With nothing to send a route names a node: an empty list ends a run silently.

Routes are coroutines, here and in the other graphs, because LangGraph runs plain functions in a thread, where they
wait behind searches.
"""

from __future__ import annotations

from langgraph.runtime import Runtime
from langgraph.types import Send

from ..threads.context import RunContext
from ..threads.state import CallNewRagState, JudgeState, RagState


async def to_judges(state: RagState, runtime: Runtime[RunContext]) -> list[Send] | str:
    """One judge a chunk; straight to ``augment`` without chunks, or on the deepest level if leaves are not judged."""
    limits, chunks = runtime.context.services.limits, state["similar_chunks"]
    is_leaf = runtime.context.depth >= limits.max_rec_depth
    if not chunks or (is_leaf and not limits.judge_leaves):
        return "augment"
    return [Send("judge", JudgeState(old_query=state["query"], similar_chunk=chunk)) for chunk in chunks]


async def to_sub_runs(state: RagState) -> list[Send] | str:
    """One ``call_new_rag`` for each chunk whose sub-run was planned; ``augment`` if none was."""
    sends = [
        Send(
            "call_new_rag",
            CallNewRagState(query_for_next_rag=str(chunk.metadata["next_query"]), similar_chunk=chunk),
        )
        for chunk in state["similar_chunks"]
        if chunk.metadata["next_rag_thread_id"]
    ]
    return sends or "augment"
