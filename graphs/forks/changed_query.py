"""The changed query of a fork: its chunks with the change, and what newly hangs below them."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import TypeVar, cast

from langchain_core.documents import Document
from langgraph.types import Send

from ...modules.calls.usage import CallMeter
from ...modules.judge.contract import judges_sets
from ..systems import judging
from ..systems.asking_on import call_new_rag
from ..systems.nodes import UNJUDGED, reset_chunk, search, search_record
from ..systems.sub_runs import chunks_to_expand, plan_sub_runs, to_sub_runs
from ..threads.candidates import findings_of, frontier_of
from ..threads.context import RunContext
from ..threads.state import CallNewRagState, JsonScalar, RagState, Try, updated
from ..tree.nodes import ChunkNode
from .change import Change
from .threads import runtime_of, taken_over

T = TypeVar("T")

_UNASKED: Mapping[str, JsonScalar | list[Try]] = {
    key: UNJUDGED[key]
    for key in (
        *("next_rag_thread_id", "shared_thread_id", "shared_sub_runs", "shared_llm_calls"),
        *("skipped", "round", "priority", "tries"),
        *("sub_answer", "sub_run_error", "budget_spent"),
    )
}


_OF_THE_ANSWER = ("answer", "status", "evidence", "fingerprint")


async def changed_query(state: RagState, change: Change, chunk: ChunkNode | None, context: RunContext) -> RagState:
    """Return the state of a query with the change, up to its evidence; new sub-questions are asked.

    ``chunk`` is the changed one; None for a change of the query. Sub-questions that were not asked before, for want of
    budget or by a policy, stay unasked: only the change makes new ones.
    """
    asked = {id_of(each): each for each in chunks_to_expand(_chunks(state), findings_of(state), context)}
    if change.topk is not None:
        state = await _searched(state, context)
    elif chunk is not None:
        edited = [_edited(each, change, chunk) if id_of(each) == chunk.chunk_id else each for each in _chunks(state)]
        state = before_the_answer(state, [each for each in edited if each is not None])
        state = await _set_judged(state, context, again=change.drop)
    else:
        state = before_the_answer(state, _chunks(state))
    wanted = {id_of(each) for each in chunks_to_expand(_chunks(state), findings_of(state), context)}
    chunks, new = [], []
    for each in _chunks(state):
        before = asked.get(id_of(each))
        if id_of(each) not in wanted:
            chunks.append(_with(each, _UNASKED) if _link(each) or each.metadata["skipped"] else each)
        elif before is not None and _question(before) == _question(each):
            chunks.append(_with(each, {key: before.metadata[key] for key in _UNASKED}))
        else:
            chunks.append(each)
            new.append(each)
    return await _asked(cast(RagState, {**state, "similar_chunks": chunks}), new, context)


def before_the_answer(state: RagState, chunks: Sequence[Document]) -> RagState:
    """Return a finished state without its answer, with these chunks and the calls that need not be made again."""
    ids = {id_of(chunk) for chunk in chunks}
    unshown = [_with(chunk, {"shown_place": None}) for chunk in chunks]
    usage = taken_over(state.get("usage", []), ids)
    kept = {key: value for key, value in state.items() if key not in _OF_THE_ANSWER}
    return cast(RagState, {**kept, "similar_chunks": unshown, "usage": usage})


def id_of(chunk: Document) -> str:
    """Return the id of a chunk."""
    return str(chunk.metadata["chunk_id"])


def _edited(chunk: Document, change: Change, judged: ChunkNode) -> Document | None:
    """Return a chunk with its change; None if it is dropped."""
    if change.drop:
        return None
    changes: dict[str, JsonScalar | list[Try]] = dict(_UNASKED)
    if change.score is not None:
        before = ": ".join(filter(None, (judged.verdict_label, judged.reason)))
        reason = f"set by hand, before {before}"
        changes |= {"verdict": "judged", "score": change.score, "reason": reason}
        changes |= {"score_confidence": None, "p_needed": None, "p_calibrated": False}
    if change.next_query is not None:
        changes["next_query"] = change.next_query
    return _with(chunk, changes)


async def _searched(state: RagState, context: RunContext) -> RagState:
    """Search again; chunks found before keep their verdicts, unless the judge takes all chunks together."""
    meter, started = CallMeter(node="retrieve"), time.perf_counter()
    hits = await search(state["query"], context, meter)
    known = {} if _judges_sets(context) else {id_of(chunk): chunk for chunk in _chunks(state)}
    chunks = []
    for rank, (hit, score) in enumerate(hits):
        place: dict[str, JsonScalar] = {"retrieval_score": float(score), "rank": rank}
        old = known.get(str(hit.metadata["chunk_id"]))
        chunks.append(reset_chunk(hit, **place, recursion_depth=context.depth) if old is None else _with(old, place))
    judged_before = [chunk for chunk in chunks if id_of(chunk) in known]
    kept = before_the_answer(state, judged_before)
    record = search_record(state["query"], started, hits, context)
    usage = [each for each in kept["usage"] if each["chunk_id"]] + meter.records
    state = cast(RagState, {**kept, "similar_chunks": chunks, "usage": usage, "searches": [record]})
    unjudged = [chunk for chunk in chunks if id_of(chunk) not in known]
    return _with_updates(state, await _verdicts(RagState(query=state["query"], similar_chunks=unjudged), context))


async def _set_judged(state: RagState, context: RunContext, *, again: bool) -> RagState:
    """Return the state without what was said of the set of its chunks as they were; ``again`` asks the judge anew.

    The chunks keep their verdicts. A judge that takes chunk by chunk, or had not closed the query, is not asked.
    """
    unsaid = cast(RagState, {**state, "set_suffices": None, "p_suffices": None})
    if not (again and state.get("set_suffices") and _judges_sets(context)):
        return unsaid
    said = ("set_suffices", "p_suffices", "usage")
    updates = [{key: each[key] for key in said if key in each} for each in await _verdicts(state, context)]
    return _with_updates(unsaid, updates)


async def _verdicts(state: RagState, context: RunContext) -> list[dict[str, object]]:
    """Return what the judge's nodes say of the chunks of a state."""
    route = await judging.to_judges(state, runtime_of(context))
    return await _all(_judged(send, context) for send in ([] if isinstance(route, str) else route))


def _judges_sets(context: RunContext) -> bool:
    return context.services.judge is not None and judges_sets(context.services.judge)


async def _judged(send: Send, context: RunContext) -> dict[str, object]:
    """Call the judge's node that a route leads to."""
    node = getattr(judging, send.node)
    return cast(dict[str, object], await node(send.arg, runtime_of(context)))


async def _asked(state: RagState, new: Sequence[Document], context: RunContext) -> RagState:
    """Plan and ask the sub-questions of the chunks, in separate rounds."""
    if not new:
        return state
    frontier = frontier_of(context.services, context.budget, context.thread_id, state["query"], context.fingerprint)
    runtime, ids = runtime_of(replace(context, frontier=frontier)), {id_of(chunk) for chunk in new}
    state = _with_updates(state, [await plan_sub_runs(RagState(query=state["query"], similar_chunks=[*new]), runtime)])
    route = await to_sub_runs(state, runtime)
    sends = [] if isinstance(route, str) else [cast(CallNewRagState, send.arg) for send in route]
    planned = [send for send in sends if id_of(send["similar_chunk"]) in ids]
    return _with_updates(state, await _all(call_new_rag(send, runtime) for send in planned))


async def _all(work: Iterable[Awaitable[T]]) -> list[T]:
    return list(await asyncio.gather(*work))


def _with_updates(state: RagState, updates: Iterable[Mapping[str, object]]) -> RagState:
    for update in updates:
        state = updated(state, update)
    return state


def _chunks(state: RagState) -> list[Document]:
    return state.get("similar_chunks", [])


def _with(chunk: Document, changes: Mapping[str, JsonScalar | list[Try]]) -> Document:
    return Document(page_content=chunk.page_content, metadata={**chunk.metadata, **changes})


def _question(chunk: Document) -> str:
    return str(chunk.metadata["next_query"])


def _link(chunk: Document) -> str:
    return str(chunk.metadata["next_rag_thread_id"] or chunk.metadata["shared_thread_id"])
