"""The nodes that plan supplementary questions and ask them, and the route between them."""

from __future__ import annotations

import logging

from langchain_core.documents import Document
from langgraph.errors import GraphBubbleUp
from langgraph.runtime import Runtime
from langgraph.types import Send

from ...modules.errors import BudgetSpent, ModelCallError, UserError
from ..rag.thread_runs import run_sub_thread
from ..threads.context import RunContext, emit
from ..threads.fingerprint import sub_thread_id
from ..threads.state import CallNewRagState, ChunkPatch, JsonScalar, RagState

logger = logging.getLogger(__name__)


async def plan_sub_runs(state: RagState, runtime: Runtime[RunContext]) -> dict[str, object]:
    """Write the thread of each sub-question into its chunk before any of them starts, while the budget lasts.

    Plans nothing if some chunk suffices, or on the deepest level. The judges' branches join here: a route behind a
    branch would see only that branch's verdict.
    """
    context = runtime.context
    patches: list[ChunkPatch] = []
    for chunk in chunks_to_expand(state["similar_chunks"], context):
        chunk_id, next_query = str(chunk.metadata["chunk_id"]), str(chunk.metadata["next_query"])
        thread_id = sub_thread_id(context.thread_id, chunk_id, next_query, context.fingerprint)
        changes: dict[str, JsonScalar]
        if context.budget.hold(thread_id):
            changes = {"next_rag_thread_id": thread_id}
            emit(
                runtime,
                "sub_run_planned",
                node="plan_sub_runs",
                chunk_id=chunk_id,
                next_query=next_query,
                next_rag_thread_id=thread_id,
            )
        else:
            problem = f"not asked: the budget of {context.budget.limit} model calls is spent"
            changes = {"sub_run_error": problem, "budget_spent": True}
        patches.append(ChunkPatch(chunk_id=chunk_id, changes=changes))
    return {"similar_chunks": patches}


def chunks_to_expand(chunks: list[Document], context: RunContext) -> list[Document]:
    """Return chunks with score 1 and a sub-question, by rank; none if a chunk scores 2 or no depth is left."""
    suffices = any(chunk.metadata["score"] == 2 for chunk in chunks)
    if suffices or context.depth >= context.services.limits.max_rec_depth:
        return []
    return [chunk for chunk in chunks if chunk.metadata["score"] == 1 and chunk.metadata["next_query"]]


async def call_new_rag(state: CallNewRagState, runtime: Runtime[RunContext]) -> dict[str, object]:
    """Ask the sub-question of one chunk on its own thread; writes the answer, or the error, into the chunk.

    Raises:
        UserError: An error that the whole question would meet, such as a rejected key.
    """
    chunk_id = str(state["similar_chunk"].metadata["chunk_id"])
    thread_id = str(state["similar_chunk"].metadata["next_rag_thread_id"])
    async with runtime.context.branches.entered():
        changes = await _sub_answer(state["query_for_next_rag"], thread_id, runtime)
    emit(runtime, "sub_run_done", node="call_new_rag", chunk_id=chunk_id, next_rag_thread_id=thread_id, **changes)
    return {"similar_chunks": [ChunkPatch(chunk_id=chunk_id, changes=changes)]}


async def _sub_answer(query: str, thread_id: str, runtime: Runtime[RunContext]) -> dict[str, JsonScalar]:
    try:
        final = await run_sub_thread(query, thread_id, runtime)
    except (UserError, GraphBubbleUp):
        raise
    except (BudgetSpent, ModelCallError) as error:
        return {"sub_run_error": str(error), "budget_spent": isinstance(error, BudgetSpent)}
    except Exception as error:
        logger.exception("sub-run %s failed", thread_id)
        return {"sub_run_error": f"{type(error).__name__}: {error}"}
    return {"sub_answer": final["answer"], "sub_run_error": "", "budget_spent": False}


async def to_sub_runs(state: RagState) -> list[Send] | str:
    """Route to one ``call_new_rag`` per planned sub-run; to ``augment`` without any."""
    sends = [
        Send(
            "call_new_rag",
            CallNewRagState(query_for_next_rag=str(chunk.metadata["next_query"]), similar_chunk=chunk),
        )
        for chunk in state["similar_chunks"]
        if chunk.metadata["next_rag_thread_id"]
    ]
    return sends or "augment"
