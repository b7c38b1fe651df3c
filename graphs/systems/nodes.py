"""The nodes of the graphs. A node's name in events and pictures is the name of its function.

A node reached by ``Send`` raises only ``UserError``, after its siblings have finished (see ``threads.branches``): an
exception cancels the siblings, and their results would be paid for and lost. An interrupt (``GraphBubbleUp``) cancels
none and is raised at once.

Routes are coroutines, because LangGraph runs plain functions in a thread, where they would queue behind searches.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Sequence
from dataclasses import replace
from typing import Literal

from langchain_core.documents import Document
from langgraph.errors import GraphBubbleUp
from langgraph.runtime import Runtime
from langgraph.types import Overwrite, Send

from ...modules.calls.growing_text import TextListener
from ...modules.calls.messages import Message
from ...modules.calls.tokens import is_longer
from ...modules.calls.usage import CallMeter
from ...modules.errors import BudgetSpent, ModelCallError, UserError
from ...modules.judge.contract import Verdict, checked_verdict
from ...modules.llm.endpoint import CallOptions
from ...modules.reader.evidence import render_evidence, render_sub_answer, split_evidence, usable_chunks
from ...modules.reader.prompts import closed_book_messages
from ...modules.reader.refusals import is_refusal
from ...modules.reader.strategies import digested, read_evidence
from ...modules.retriever.callbacks import search_heard
from ..rag.thread_runs import run_sub_thread
from ..threads.context import RunContext, emit
from ..threads.fingerprint import sub_thread_id
from ..threads.state import CallNewRagState, ChunkPatch, JsonScalar, JudgeState, RagState, Search, Step


async def to_judges(state: RagState, runtime: Runtime[RunContext]) -> list[Send] | str:
    """Route to one judge per chunk; to ``augment`` without chunks, or on the deepest level without ``judge_leaves``."""
    limits, chunks = runtime.context.services.limits, state["similar_chunks"]
    is_leaf = runtime.context.depth >= limits.max_rec_depth
    if not chunks or (is_leaf and not limits.judge_leaves):
        return "augment"
    return [Send("judge", JudgeState(old_query=state["query"], similar_chunk=chunk)) for chunk in chunks]


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


logger = logging.getLogger(__name__)

UNJUDGED: dict[str, JsonScalar] = {
    "verdict": "pending",
    "score": None,
    "score_confidence": None,
    "reason": "",
    "next_query": "",
    "next_rag_thread_id": "",
    "sub_answer": "",
    "sub_run_error": "",
    "budget_spent": False,
    "shown_place": None,
    "round_answer": "",
}


async def retrieve(state: RagState, runtime: Runtime[RunContext]) -> dict[str, object]:
    """Replace the chunks by the hits for the query, unjudged, ranked from 0."""
    context = runtime.context
    meter = CallMeter(node="retrieve")
    started = time.perf_counter()
    hits = await search(state["query"], context, meter)
    search_record = searched(state["query"], started, hits)
    found = [
        as_found(chunk, retrieval_score=float(score), rank=rank, recursion_depth=context.depth)
        for rank, (chunk, score) in enumerate(hits)
    ]
    chunks = [*found, *kept_besides(found, state, recursion_depth=context.depth)]
    emit(runtime, "chunks", node="retrieve", query=state["query"], chunk_ids=[c.metadata["chunk_id"] for c in chunks])
    return {
        "similar_chunks": Overwrite(chunks),
        "kept_chunks": [],
        "usage": meter.records,
        "searches": [search_record],
    }


def kept_besides(found: Sequence[Document], state: RagState, **place: JsonScalar) -> list[Document]:
    """Return the caller's chunks that were not found again, unjudged, ranked behind ``found``."""
    known = {chunk.metadata["chunk_id"] for chunk in found}
    kept = [chunk for chunk in state.get("kept_chunks", ()) if chunk.metadata["chunk_id"] not in known]
    return [as_found(chunk, rank=rank, **place) for rank, chunk in enumerate(kept, start=len(found))]


async def search(query: str, context: RunContext, meter: CallMeter) -> list[tuple[Document, float]]:
    """Search with the graph's retriever; returns (chunk, retrieval score), best first."""
    retriever = context.services.retriever
    if retriever is None:
        raise TypeError("this graph retrieves: give RagContext a retriever")
    return await search_heard(retriever, query, meter)


def searched(query: str, started: float, hits: Sequence[tuple[Document, float]]) -> Search:
    """Return the record of a search that ended now; ``started`` is its ``time.perf_counter()``."""
    return Search(
        query=query,
        chunk_ids=[str(chunk.metadata["chunk_id"]) for chunk, _ in hits],
        seconds=round(time.perf_counter() - started, 4),
        ended_at=round(time.time(), 4),
    )


def as_found(chunk: Document, **place: JsonScalar) -> Document:
    """Copy a chunk without its verdict, with ``place`` in its metadata."""
    return Document(page_content=chunk.page_content, metadata={**chunk.metadata, **UNJUDGED, **place})


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


async def augment(state: RagState) -> dict[str, object]:
    """Render the evidence for the reader."""
    return as_evidence(usable_chunks(state["similar_chunks"]))


def as_evidence(chunks: Sequence[Document], answered: Sequence[Step] = ()) -> dict[str, object]:
    """Return the state update that shows the reader these chunks, then the queries and answers of rounds."""
    pairs = (render_sub_answer(step["query"], step["text"]) for step in answered)
    ids = [str(chunk.metadata["chunk_id"]) for chunk in chunks]
    patches = [ChunkPatch(chunk_id=key, changes={"shown_place": at}) for at, key in enumerate(ids, 1)]
    for step in answered:
        patches += (ChunkPatch(chunk_id=key, changes={"round_answer": step["text"]}) for key in step["chunk_ids"])
    return {"evidence": "\n\n".join(filter(None, (render_evidence(chunks), *pairs))), "similar_chunks": patches}


async def generate(state: RagState, runtime: Runtime[RunContext]) -> dict[str, object]:
    """Let the reader answer from the evidence by the strategy."""
    services, meter = runtime.context.services, _answer_meter(runtime)
    chunks = state["similar_chunks"]
    evidence = await _fitting_evidence(state, runtime, meter)
    answer = await read_evidence(
        services.strategy,
        services.reader,
        state.get("reader_query") or state["query"],
        evidence,
        split_evidence(evidence, chunks),
        meter=meter,
        on_text=_growing(runtime, "answer"),
        on_thinking=_growing(runtime, "thinking"),
        prompts=services.prompts,
    )
    patches = cut_short_patches(chunks, answer.problem) if answer.problem else []
    return {**_answered(answer.text, meter, runtime), "similar_chunks": patches, "evidence": evidence}


async def _fitting_evidence(state: RagState, runtime: Runtime[RunContext], meter: CallMeter) -> str:
    """Return the evidence, digested if it is longer than half a prompt of the reader."""
    services, evidence = runtime.context.services, state["evidence"]
    most = services.context_tokens
    if most is None or not is_longer(evidence, most // 2):
        return evidence
    unheld = replace(meter, held_by="")  # the held call is reserved for the answer

    async def ask(messages: list[Message]) -> str | None:
        try:
            options = CallOptions(max_tokens=most // 4)
            return (await services.reader.complete(messages, meter=unheld, options=options)).text
        except UserError:
            raise
        except (BudgetSpent, ModelCallError) as error:
            logger.warning("evidence was cut, since digesting it failed: %s", error)
            return None

    passages = split_evidence(evidence, state["similar_chunks"])
    query = state.get("reader_query") or state["query"]
    return await digested(passages, query, ask, max_prompt_tokens=most, max_tokens=most // 2, prompts=services.prompts)


async def generate_closed_book(state: RagState, runtime: Runtime[RunContext]) -> dict[str, object]:
    """Let the reader answer from its own knowledge."""
    services, meter = runtime.context.services, _answer_meter(runtime)
    messages = closed_book_messages(state["query"], services.prompts)
    completion = await services.reader.complete(
        messages, meter=meter, on_text=_growing(runtime, "answer"), on_thinking=_growing(runtime, "thinking")
    )
    return _answered(completion.text, meter, runtime)


def _answer_meter(runtime: Runtime[RunContext]) -> CallMeter:
    """Make the meter of the answer's calls, one of which may be the call reserved for the thread."""
    context = runtime.context
    return CallMeter(node="generate", budget=context.budget, held_by=context.thread_id, calls=context.calls)


def _growing(runtime: Runtime[RunContext], what: Literal["answer", "thinking"]) -> TextListener | None:
    """Make a listener that emits each piece of the root's answer or thinking; None if nothing is streamed."""
    if not runtime.context.stream_answer or runtime.context.depth > 0:
        return None
    return lambda delta: emit(runtime, f"{what}_growing", node="generate", text=delta.text, restarted=delta.restarted)


def _answered(answer: str, meter: CallMeter, runtime: Runtime[RunContext]) -> dict[str, object]:
    status = "refused" if is_refusal(answer) else "answered"
    emit(runtime, "answer", node="generate", answer=answer, status=status)
    return {"answer": answer, "status": status, "usage": meter.records}


def cut_short_patches(chunks: Sequence[Document], problem: str) -> list[ChunkPatch]:
    """Write the spent budget, for the tree, into the last chunk, preferably one without a problem or a sub-run."""

    def is_free(chunk: Document) -> tuple[bool, bool]:
        return not chunk.metadata["sub_run_error"], not chunk.metadata["next_rag_thread_id"]

    return [
        ChunkPatch(
            chunk_id=str(chunk.metadata["chunk_id"]),
            changes={"sub_run_error": chunk.metadata["sub_run_error"] or problem, "budget_spent": True},
        )
        for chunk in sorted(chunks, key=is_free)[-1:]
    ]
