"""The nodes that judge one chunk, or all chunks of a query, and the route to them."""

from __future__ import annotations

import logging
from collections.abc import Awaitable, Callable, Sequence
from typing import TypeVar

from langchain_core.documents import Document
from langgraph.errors import GraphBubbleUp
from langgraph.runtime import Runtime
from langgraph.types import Send

from ...modules.calls.usage import CallMeter
from ...modules.errors import BudgetSpent, UserError
from ...modules.judge.contract import (
    AnyJudge,
    Judge,
    SetJudge,
    SetVerdict,
    Verdict,
    checked_set_verdict,
    checked_verdict,
    judges_sets,
)
from ..search.expansion_rule import expansion_rule
from ..threads.context import RunContext, emit
from ..threads.eager import Withdrawn
from ..threads.state import ChunkPatch, JudgeSetState, JudgeState, RagState

logger = logging.getLogger(__name__)


async def to_judges(state: RagState, runtime: Runtime[RunContext]) -> list[Send] | str:
    """Route to one judge per chunk, or to one for all of them; to ``augment`` where nothing is to be judged.

    That is without chunks, or on the deepest level without ``judge_leaves``.
    """
    limits, chunks = runtime.context.services.limits, state["similar_chunks"]
    is_leaf = runtime.context.depth >= limits.max_rec_depth
    if not chunks or (is_leaf and not limits.judge_leaves):
        return "augment"
    return sends_to_judges(chunks, state, runtime.context)


def sends_to_judges(
    chunks: Sequence[Document], state: RagState, context: RunContext, *, expand: bool = True
) -> list[Send]:
    """Return one branch per chunk, or one for all of them; with ``expand=False`` no chunk asks a sub-question."""
    query = state["query"]
    if judges_sets(_judge_of(context)):
        return [Send("judge_set", JudgeSetState(old_query=query, similar_chunks=[*chunks], expand=expand))]
    return [Send("judge", JudgeState(old_query=query, similar_chunk=chunk, expand=expand)) for chunk in chunks]


async def judge(state: JudgeState, runtime: Runtime[RunContext]) -> dict[str, object]:
    """Judge one chunk; a failed judge gives an unknown verdict, a spent budget a cancelled one.

    Raises:
        UserError: An error that every chunk would meet, such as a rejected key.
    """
    chunk, context = state["similar_chunk"], runtime.context
    meter = _meter("judge", context, chunk_id=_id_of(chunk))
    judge = _judge_of(context)
    if judges_sets(judge):
        raise TypeError("this thread judges chunk by chunk, and its judge takes all chunks at once")

    calls, stop = context.judge_calls, context.services.stop
    async with context.branches.entered():
        try:
            async with calls.cancellable(meter, stop):
                verdict = await judge_chunk(
                    judge, state["old_query"], chunk, meter=meter, expand=_expands(state, context)
                )
        except Withdrawn:
            verdict = Verdict(status="cancelled", problem="not judged: another chunk sufficed")
    calls.judged(verdict.score, verdict.confidence, stop)
    return {"similar_chunks": [_patch(chunk, verdict, runtime)], "usage": meter.records}


async def judge_set(state: JudgeSetState, runtime: Runtime[RunContext]) -> dict[str, object]:
    """Judge all chunks of a query together; a failed judge and a spent budget as in ``judge``, for all of them."""
    chunks, context = state["similar_chunks"], runtime.context
    meter = _meter("judge_set", context)
    judge = _judge_of(context)
    if not judges_sets(judge):
        raise TypeError("this thread judges all chunks at once, and its judge takes them one by one")

    async with context.branches.entered():
        given = await judge_chunks(judge, state["old_query"], chunks, meter=meter, expand=_expands(state, context))
    patches = [
        _patch(chunk, verdict, runtime)
        for chunk, verdict in zip(chunks, given.verdicts, strict=True)
        if verdict.status == "judged" or chunk.metadata["verdict"] != "judged"  # a chunk that is read again keeps its
    ]
    emit(runtime, "set_verdict", node="judge_set", suffices=given.suffices, p_suffices=given.p_suffices)
    return {
        "similar_chunks": patches,
        "set_suffices": given.suffices,
        "p_suffices": given.p_suffices,
        "usage": meter.records,
    }


async def judge_chunk(judge: Judge, query: str, chunk: Document, *, meter: CallMeter, expand: bool) -> Verdict:
    """Return the checked verdict on a copy of a chunk; unknown if the judge fails, cancelled once the budget is spent.

    Raises:
        UserError: An error that every chunk would meet, such as a rejected key.
    """

    async def ask() -> Verdict:
        return checked_verdict(await judge.judge(query, _copied(chunk), meter=meter, expand=expand))

    return await _asked(ask, meter, instead=lambda verdict: verdict)


async def judge_chunks(
    judge: SetJudge, query: str, chunks: Sequence[Document], *, meter: CallMeter, expand: bool
) -> SetVerdict:
    """Return the checked verdict on copies of all chunks; a failed judge, a spent budget and errors as ``judge_chunk``,
    for all of them.
    """

    async def ask() -> SetVerdict:
        copies = [_copied(chunk) for chunk in chunks]
        return checked_set_verdict(await judge.judge_set(query, copies, meter=meter, expand=expand), len(chunks))

    return await _asked(ask, meter, instead=lambda verdict: SetVerdict(verdicts=(verdict,) * len(chunks)))


T = TypeVar("T")


async def _asked(ask: Callable[[], Awaitable[T]], meter: CallMeter, *, instead: Callable[[Verdict], T]) -> T:
    """Return what the judge says, or ``instead`` of the verdict that stands for its failure."""
    try:
        if meter.budget is None:
            return await ask()
        async with meter.budget.in_time():
            return await ask()
    except (UserError, GraphBubbleUp):
        raise
    except BudgetSpent as spent:
        return instead(Verdict(status="cancelled", problem=str(spent), budget_spent=spent.limit))
    except Exception as error:
        logger.exception("the judge failed on %s", f"chunk {meter.chunk_id}" if meter.chunk_id else "the chunks")
        return instead(Verdict(status="unknown", problem=f"{type(error).__name__}: {error}"))


def _meter(node: str, context: RunContext, *, chunk_id: str = "") -> CallMeter:
    return CallMeter(
        node=node, chunk_id=chunk_id, budget=context.budget, judged_in=context.thread_id, calls=context.calls
    )


def _judge_of(context: RunContext) -> AnyJudge:
    if context.services.judge is None:
        raise TypeError("this graph judges: give RagContext a judge")
    return context.services.judge


def _expands(state: JudgeState | JudgeSetState, context: RunContext) -> bool:
    limits = context.services.limits
    return state.get("expand", True) and context.depth < limits.max_rec_depth and expansion_rule(limits.expansion).asks


def _id_of(chunk: Document) -> str:
    return str(chunk.metadata["chunk_id"])


def _copied(chunk: Document) -> Document:
    """Return a copy, since a judge may modify its chunk."""
    return Document(page_content=chunk.page_content, metadata=dict(chunk.metadata))


def _patch(chunk: Document, verdict: Verdict, runtime: Runtime[RunContext]) -> ChunkPatch:
    """Write a verdict into its chunk, and show it live."""
    chunk_id = _id_of(chunk)
    emit(runtime, "verdict", node="judge", chunk_id=chunk_id, verdict=verdict.status, score=verdict.score)
    unanswered = verdict.status == "judged" and verdict.problem
    return ChunkPatch(
        chunk_id=chunk_id,
        changes={
            "verdict": verdict.status,
            "score": verdict.score,
            "score_confidence": verdict.confidence,
            "p_needed": verdict.p_needed,
            "p_calibrated": verdict.is_calibrated,
            "reason": verdict.reason if verdict.status == "judged" else verdict.problem,
            "next_query": verdict.next_query,
            "sub_run_error": f"no sub-question: {verdict.problem}" if unanswered else "",
            "budget_spent": "calls" if verdict.budget_spent is True else verdict.budget_spent or "",
            "skipped": "stop" if verdict.status == "cancelled" and not verdict.budget_spent else "",
        },
    )
