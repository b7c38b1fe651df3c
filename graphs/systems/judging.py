"""The node that judges one chunk, and the route to it."""

from __future__ import annotations

import logging

from langchain_core.documents import Document
from langgraph.errors import GraphBubbleUp
from langgraph.runtime import Runtime
from langgraph.types import Send

from ...modules.calls.usage import CallMeter
from ...modules.errors import BudgetSpent, UserError
from ...modules.judge.contract import Verdict, checked_verdict
from ..threads.context import RunContext, emit
from ..threads.state import ChunkPatch, JudgeState, RagState

logger = logging.getLogger(__name__)


async def to_judges(state: RagState, runtime: Runtime[RunContext]) -> list[Send] | str:
    """Route to one judge per chunk; to ``augment`` without chunks, or on the deepest level without ``judge_leaves``."""
    limits, chunks = runtime.context.services.limits, state["similar_chunks"]
    is_leaf = runtime.context.depth >= limits.max_rec_depth
    if not chunks or (is_leaf and not limits.judge_leaves):
        return "augment"
    return [Send("judge", JudgeState(old_query=state["query"], similar_chunk=chunk)) for chunk in chunks]


async def judge(state: JudgeState, runtime: Runtime[RunContext]) -> dict[str, object]:
    """Judge one chunk; a failed judge gives an unknown verdict, a spent budget a cancelled one.

    Raises:
        UserError: An error that every chunk would meet, such as a rejected key.
    """
    chunk = state["similar_chunk"]
    chunk_id = str(chunk.metadata["chunk_id"])
    context = runtime.context
    meter = CallMeter(node="judge", chunk_id=chunk_id, budget=context.budget, calls=context.calls)
    async with runtime.context.branches.entered():
        verdict = await _verdict(state["old_query"], chunk, meter, runtime.context)
    emit(runtime, "verdict", node="judge", chunk_id=chunk_id, verdict=verdict.status, score=verdict.score)
    return {"similar_chunks": [_verdict_patch(chunk_id, verdict)], "usage": meter.records}


async def _verdict(query: str, chunk: Document, meter: CallMeter, context: RunContext) -> Verdict:
    expand = context.depth < context.services.limits.max_rec_depth
    judge = context.services.judge
    if judge is None:
        raise TypeError("this graph judges: give RagContext a judge")
    own = Document(page_content=chunk.page_content, metadata=dict(chunk.metadata))  # a judge may modify its chunk
    try:
        return checked_verdict(await judge.judge(query, own, meter=meter, expand=expand))
    except (UserError, GraphBubbleUp):
        raise
    except BudgetSpent as spent:
        return Verdict(status="cancelled", problem=str(spent), budget_spent=True)
    except Exception as error:
        logger.exception("the judge failed on chunk %s", meter.chunk_id)
        return Verdict(status="unknown", problem=f"{type(error).__name__}: {error}")


def _verdict_patch(chunk_id: str, verdict: Verdict) -> ChunkPatch:
    unanswered = verdict.status == "judged" and verdict.problem
    return ChunkPatch(
        chunk_id=chunk_id,
        changes={
            "verdict": verdict.status,
            "score": verdict.score,
            "score_confidence": verdict.confidence,
            "reason": verdict.reason if verdict.status == "judged" else verdict.problem,
            "next_query": verdict.next_query,
            "sub_run_error": f"no sub-question: {verdict.problem}" if unanswered else "",
            "budget_spent": verdict.budget_spent,
        },
    )
