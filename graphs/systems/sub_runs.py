"""The nodes that plan supplementary questions and ask them, and the route between them."""

from __future__ import annotations

import logging
from dataclasses import replace

from langchain_core.documents import Document
from langgraph.errors import GraphBubbleUp
from langgraph.runtime import Runtime
from langgraph.types import Send, StateSnapshot

from ...modules.errors import BudgetSpent, ModelCallError, UserError
from ..rag.thread_runs import run_sub_thread, saved_thread
from ..search.candidate import Candidate
from ..search.frontier import Grant, Skipped
from ..threads.branches import Branches
from ..threads.candidates import as_ancestor, candidate_of, findings_of, saved_grant
from ..threads.context import RunContext, emit, utc_now
from ..threads.fingerprint import sub_thread_id
from ..threads.state import CallNewRagState, ChunkPatch, JsonScalar, RagState

logger = logging.getLogger(__name__)


async def plan_sub_runs(state: RagState, runtime: Runtime[RunContext]) -> dict[str, object]:
    """Write the thread of each sub-question into its chunk before any of them is asked.

    Plans nothing if some chunk suffices, or on the deepest level. The judges' branches join here: a route behind a
    branch would see only that branch's verdict.
    """
    context = runtime.context
    patches: list[ChunkPatch] = []
    for chunk in chunks_to_expand(state["similar_chunks"], context):
        chunk_id, next_query = str(chunk.metadata["chunk_id"]), str(chunk.metadata["next_query"])
        thread_id = sub_thread_id(context.thread_id, chunk_id, next_query, context.fingerprint)
        patches.append(ChunkPatch(chunk_id=chunk_id, changes={"next_rag_thread_id": thread_id}))
        emit(
            runtime,
            "sub_run_planned",
            node="plan_sub_runs",
            chunk_id=chunk_id,
            next_query=next_query,
            next_rag_thread_id=thread_id,
        )
    if context.frontier is not None:
        context.frontier.planned(context.thread_id, [each["chunk_id"] for each in patches], findings_of(state))
    return {"similar_chunks": patches}


def chunks_to_expand(chunks: list[Document], context: RunContext) -> list[Document]:
    """Return chunks with score 1 and a sub-question, by rank; none if a chunk scores 2 or no depth is left."""
    suffices = any(chunk.metadata["score"] == 2 for chunk in chunks)
    if suffices or context.depth >= context.services.limits.max_rec_depth:
        return []
    return [chunk for chunk in chunks if chunk.metadata["score"] == 1 and chunk.metadata["next_query"]]


async def to_sub_runs(state: RagState, runtime: Runtime[RunContext]) -> list[Send] | str:
    """Route to one ``call_new_rag`` per planned sub-run; to ``augment`` without any."""
    chunks = state["similar_chunks"]
    calls = _expected_calls(len(chunks), runtime.context)
    sends = [
        Send(
            "call_new_rag",
            CallNewRagState(
                query_for_next_rag=str(chunk.metadata["next_query"]), similar_chunk=chunk, expected_calls=calls
            ),
        )
        for chunk in chunks
        if chunk.metadata["next_rag_thread_id"]
    ]
    return sends or "augment"


def _expected_calls(chunks: int, context: RunContext) -> int:
    """Return the model calls that a sub-run below a thread usually takes, if it finds as many chunks as this one."""
    limits, judge = context.services.limits, context.services.judge
    is_judged = judge is not None and (limits.judge_leaves or context.depth + 1 < limits.max_rec_depth)
    expected = getattr(judge, "expected_calls", None)
    return 1 + (0 if not is_judged else expected(chunks) if expected else chunks)


async def call_new_rag(state: CallNewRagState, runtime: Runtime[RunContext]) -> dict[str, object]:
    """Ask the sub-question of one chunk on its own thread, once it is granted; writes the answer, the error, or why it
    was not asked, into the chunk.

    Raises:
        UserError: An error that the whole question would meet, such as a rejected key.
    """
    chunk, context = state["similar_chunk"], runtime.context
    chunk_id = str(chunk.metadata["chunk_id"])
    thread_id = str(chunk.metadata["next_rag_thread_id"])
    async with context.branches.entered():
        try:
            changes = await _asked(state, thread_id, runtime)
        except UserError as error:
            if context.frontier is not None:
                context.frontier.fail(error)
            raise
        finally:
            if context.frontier is not None:
                context.frontier.left(context.thread_id, chunk_id)
    emit(
        runtime, "sub_run_done", node="call_new_rag", chunk_id=chunk_id, **{"next_rag_thread_id": thread_id, **changes}
    )
    return {"similar_chunks": [ChunkPatch(chunk_id=chunk_id, changes=changes)]}


def _context_of(candidate: Candidate, thread_id: str, grant: Grant | None, runtime: Runtime[RunContext]) -> RunContext:
    """Return the context of a candidate's sub-run."""
    parent = runtime.context
    return replace(
        parent,
        thread_id=thread_id,
        parent_thread_id=parent.thread_id,
        depth=parent.depth + 1,
        path=candidate.path,
        ancestors=(*parent.ancestors, as_ancestor(candidate)),
        grant=grant,
        branches=Branches(),
        started_at=utc_now(),
        calls=parent.calls.of_thread(thread_id) if parent.calls else None,
        emit_to=parent.emit_to or runtime.stream_writer,
    )


async def _asked(state: CallNewRagState, thread_id: str, runtime: Runtime[RunContext]) -> dict[str, JsonScalar]:
    context, query = runtime.context, state["query_for_next_rag"]
    saved = await saved_thread(thread_id, context)
    candidate = candidate_of(state["similar_chunk"], context, calls=state["expected_calls"])
    if context.frontier is None:
        return await _sub_answer(query, _context_of(candidate, thread_id, None, runtime), saved)
    grant = saved_grant(saved) if saved is not None else None
    if grant is not None:
        context.frontier.honour(candidate, thread_id, grant)
    else:
        decision = await context.frontier.ask(candidate, thread_id)
        if isinstance(decision, Skipped):
            is_spent = decision.reason != "policy"
            return {"next_rag_thread_id": "", "skipped": decision.reason, "budget_spent": is_spent}
        grant = decision
    try:
        answer = await _sub_answer(query, _context_of(candidate, thread_id, grant, runtime), saved)
    finally:
        context.frontier.ended(thread_id)
    return {**answer, "round": grant.round, "priority": grant.priority}


async def _sub_answer(query: str, child: RunContext, saved: StateSnapshot | None) -> dict[str, JsonScalar]:
    try:
        final = await run_sub_thread(query, child, saved)
    except (UserError, GraphBubbleUp):
        raise
    except (BudgetSpent, ModelCallError) as error:
        return {"sub_run_error": str(error), "budget_spent": isinstance(error, BudgetSpent)}
    except Exception as error:
        logger.exception("sub-run %s failed", child.thread_id)
        return {"sub_run_error": f"{type(error).__name__}: {error}"}
    return {"sub_answer": final["answer"], "sub_run_error": "", "budget_spent": False}
