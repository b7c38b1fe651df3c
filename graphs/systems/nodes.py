"""The nodes of the graphs. A node's name in events and pictures is the name of its function.

A node reached by ``Send`` raises only ``UserError``, after its siblings have finished (see ``threads.branches``): an
exception cancels the siblings, and their results would be paid for and lost. An interrupt (``GraphBubbleUp``) cancels
none and is raised at once.

Routes are coroutines, because LangGraph runs plain functions in a thread, where they would queue behind searches.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Mapping, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from typing import Literal

from langchain_core.documents import Document
from langgraph.runtime import Runtime
from langgraph.types import Overwrite

from ...modules.calls.growing_text import TextListener
from ...modules.calls.messages import CallOptions, Message
from ...modules.calls.record import is_declined, recorded_now
from ...modules.calls.tokens import is_longer, text_tokens
from ...modules.calls.usage import CallMeter
from ...modules.config.answer_form import USUAL_FORM, AnswerForm
from ...modules.errors import BudgetSpent, LimitName, ModelCallError, UserError
from ...modules.judge.insert_block import without_block
from ...modules.reader.answer_forms import form_tokens, refuses
from ...modules.reader.evidence import split_evidence
from ...modules.reader.formed import in_form
from ...modules.reader.prompts import closed_book_messages
from ...modules.reader.strategies import digested, read_evidence
from ..threads.amounts import evidence_room
from ..threads.checkpoints import check_storable
from ..threads.context import RunContext, emit
from ..threads.state import ChunkPatch, JsonScalar, RagState, Search, Try
from .callbacks import search_with_callbacks
from .shown_evidence import shown_evidence

logger = logging.getLogger(__name__)

UNJUDGED: Mapping[str, JsonScalar | list[Try]] = {
    "verdict": "pending",
    "score": None,
    "score_confidence": None,
    "p_needed": None,
    "p_calibrated": False,
    "reason": "",
    "next_query": "",
    "next_rag_thread_id": "",
    "shared_thread_id": "",
    "shared_sub_runs": None,
    "shared_llm_calls": None,
    "skipped": "",
    "round": None,
    "priority": None,
    "tries": None,
    "sub_answer": "",
    "sub_run_error": "",
    "budget_spent": "",
    "shown_place": None,
    "round_answer": "",
}


LINK_KEYS = frozenset({"linked_from", "linked_by", "link_hop", "link_state"})
"""Metadata of chunks that follow links, or were taken in by one; no other chunk has them."""


async def retrieve(state: RagState, runtime: Runtime[RunContext]) -> dict[str, object]:
    """Replace the chunks by the hits for the query, unjudged, ranked from 0."""
    context = runtime.context
    meter = CallMeter(node="retrieve")
    started = time.perf_counter()
    hits = await search(state["query"], context, meter)
    record = search_record(state["query"], started, hits, context)
    found = [
        reset_chunk(chunk, retrieval_score=float(score), rank=rank, recursion_depth=context.depth)
        for rank, (chunk, score) in enumerate(hits)
    ]
    chunks = [*found, *carried_over_chunks(found, state, recursion_depth=context.depth)]
    emit(runtime, "chunks", node="retrieve", query=state["query"], chunk_ids=[c.metadata["chunk_id"] for c in chunks])
    return {
        "similar_chunks": Overwrite(chunks),
        "kept_chunks": [],
        "usage": meter.records,
        "searches": [record],
    }


def carried_over_chunks(found: Sequence[Document], state: RagState, **place: JsonScalar) -> list[Document]:
    """Return the caller's chunks that were not found again, unjudged, ranked behind ``found``."""
    known = {chunk.metadata["chunk_id"] for chunk in found}
    kept = [chunk for chunk in state.get("kept_chunks", ()) if chunk.metadata["chunk_id"] not in known]
    return [reset_chunk(chunk, rank=rank, **place) for rank, chunk in enumerate(kept, start=len(found))]


async def search(query: str, context: RunContext, meter: CallMeter) -> list[tuple[Document, float]]:
    """Search with the graph's retriever; returns (chunk, retrieval score), best first.

    The root's search finds nothing once the time of the tree is over, or it was stopped.

    Raises:
        BudgetSpent: The time was over in a sub-run.
        SettingsError: Metadata of a chunk cannot be saved.
    """
    retriever = context.services.retriever
    if retriever is None:
        raise TypeError("this graph retrieves: give RagContext a retriever")
    try:
        async with context.budget.in_time():
            hits = await search_with_callbacks(retriever, query, meter)
    except BudgetSpent:
        if context.depth:
            raise
        return []
    check_storable(chunk for chunk, _ in hits)
    return hits


def search_record(query: str, started: float, hits: Sequence[tuple[Document, float]], context: RunContext) -> Search:
    """Return the record of a search that ended now; ``started`` is its ``time.perf_counter()``."""
    record = Search(
        query=query,
        chunk_ids=[str(chunk.metadata["chunk_id"]) for chunk, _ in hits],
        seconds=round(time.perf_counter() - started, 4),
        ended_at=recorded_now(),
    )
    if not hits and (limit := context.budget.over):
        record["spent_limit"] = limit
    return record


def reset_chunk(chunk: Document, **place: JsonScalar) -> Document:
    """Copy a chunk without its verdict, with ``place`` in its metadata."""
    metadata = {key: value for key, value in without_block(chunk.metadata).items() if key not in LINK_KEYS}
    return Document(page_content=chunk.page_content, metadata={**metadata, **UNJUDGED, **place})


async def augment(state: RagState, runtime: Runtime[RunContext]) -> dict[str, object]:
    """Render the evidence for the reader."""
    if runtime.context.frontier is not None:
        runtime.context.frontier.finish_asking(runtime.context.thread_id)
    return await shown_evidence(runtime.context.services.evidence.of_chunks(state["similar_chunks"]), state, runtime)


async def generate(state: RagState, runtime: Runtime[RunContext]) -> dict[str, object]:
    """Let the reader answer from the evidence by the strategy."""
    meter = _answer_meter(runtime)
    try:
        return await _generated(state, runtime, meter)
    except Exception:
        runtime.context.lost_calls.extend(meter.records)
        raise


async def _generated(state: RagState, runtime: Runtime[RunContext], meter: CallMeter) -> dict[str, object]:
    services, chunks = runtime.context.services, state["similar_chunks"]
    evidence = await _fitting_evidence(state, runtime, meter)
    form = USUAL_FORM if runtime.context.depth else services.answer_form
    room = evidence_room(state.get("reader_query") or state["query"], runtime.context)
    has_room = room is None or not is_longer(evidence, room)
    if room is not None and not has_room:
        evidence = await _cut(evidence, state, room)
    async with _time_of(runtime.context):
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
            form=form,
        )
    patches = cut_short_patches(chunks, answer.problem, answer.limit) if answer.limit else []
    if not has_room:
        limit: LimitName = "cost" if services.limits.max_tree_tokens is None else "tokens"
        patches += cut_short_patches(chunks, "the evidence was cut: the budget of this question is spent", limit)
    return {**_answered(answer.text, meter, runtime, form), "similar_chunks": patches, "evidence": evidence}


async def _cut(evidence: str, state: RagState, room: int) -> str:
    """Shorten the passages of the evidence, so that it has so many tokens."""

    async def shorten(_: list[Message]) -> None:
        return None

    passages = split_evidence(evidence, state["similar_chunks"])
    longest = text_tokens(evidence) * 4 + 1000  # so that all passages are in one batch
    return await digested(passages, state["query"], shorten, max_prompt_tokens=longest, max_tokens=room)


def _time_of(context: RunContext) -> AbstractAsyncContextManager[None]:
    """Return the time of an answer: that of the search for a sub-run, its own for the root."""
    return context.budget.in_time() if context.depth else nullcontext()


async def _fitting_evidence(state: RagState, runtime: Runtime[RunContext], meter: CallMeter) -> str:
    """Return the evidence, digested if it is longer than half a prompt of the reader."""
    services, evidence = runtime.context.services, state["evidence"]
    most = services.context_tokens
    if most is not None and not runtime.context.depth:
        most = max(most - form_tokens(services.answer_form), most // 2)
    if most is None or not is_longer(evidence, most // 2):
        return evidence
    unheld = replace(meter, held_by="")  # the held call is reserved for the answer

    async def ask(messages: list[Message]) -> str | None:
        try:
            options = CallOptions(max_tokens=most // 4)
            return (await services.reader.complete(messages, meter=unheld, options=options)).written
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
    form = services.answer_form
    completion = await in_form(services.reader, form).complete(
        messages, meter=meter, on_text=_growing(runtime, "answer"), on_thinking=_growing(runtime, "thinking")
    )
    return _answered(completion.text, meter, runtime, form)


def _answer_meter(runtime: Runtime[RunContext]) -> CallMeter:
    """Emit that the answer is written now, and make the meter of its calls, one of which may be reserved for it."""
    context = runtime.context
    emit(runtime, "answering", node="generate")
    return CallMeter(node="generate", budget=context.budget, held_by=context.thread_id, calls=context.calls)


def _growing(runtime: Runtime[RunContext], what: Literal["answer", "thinking"]) -> TextListener | None:
    """Make a listener that emits each piece of the root's answer or thinking; None if nothing is streamed."""
    if not runtime.context.stream_answer or runtime.context.depth > 0:
        return None
    return lambda delta: emit(runtime, f"{what}_growing", node="generate", text=delta.text, restarted=delta.restarted)


def _answered(answer: str, meter: CallMeter, runtime: Runtime[RunContext], form: AnswerForm) -> dict[str, object]:
    status = "refused" if refuses(answer, form) or is_declined(answer, meter.records) else "answered"
    emit(runtime, "answer", node="generate", answer=answer, status=status)
    return {"answer": answer, "status": status, "usage": meter.records}


def cut_short_patches(chunks: Sequence[Document], problem: str, limit: LimitName) -> list[ChunkPatch]:
    """Write the spent budget, for the tree, into the last chunk, preferably one without a problem or a sub-run."""

    def is_free(chunk: Document) -> tuple[bool, bool]:
        return not chunk.metadata["sub_run_error"], not chunk.metadata["next_rag_thread_id"]

    return [
        ChunkPatch(
            chunk_id=str(chunk.metadata["chunk_id"]),
            changes={"sub_run_error": chunk.metadata["sub_run_error"] or problem, "budget_spent": limit},
        )
        for chunk in sorted(chunks, key=is_free)[-1:]
    ]
