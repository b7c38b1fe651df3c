"""The nodes of the graphs. A node's name is its function's name, here, in events and in pictures.

No node that ``Send`` reaches may raise: one that does cancels its siblings, whose results are paid for and lost.
"""

from __future__ import annotations

import logging

from langchain_core.documents import Document
from langgraph.runtime import Runtime
from langgraph.types import Overwrite

from ..modules.errors import BudgetSpent, ModelCallError
from ..modules.evidence import render_evidence, usable_chunks
from ..modules.judge import Verdict
from ..modules.prompts import Message, closed_book_messages, is_refusal, reader_messages
from ..modules.usage import CallMeter
from .context import RunContext
from .events import emit
from .fingerprint import sub_thread_id
from .state import CallNewRagState, ChunkPatch, JsonScalar, JudgeState, RagState
from .threads import run_sub_thread

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
}


async def retrieve(state: RagState, runtime: Runtime[RunContext]) -> dict[str, object]:
    """Replace the chunks by those found for the query, ranked from 0, none of them judged yet."""
    context = runtime.context
    meter = CallMeter(node="retrieve")
    hits = await search(state["query"], context, meter)
    chunks = [
        as_found(chunk, retrieval_score=float(score), rank=rank, recursion_depth=context.depth)
        for rank, (chunk, score) in enumerate(hits)
    ]
    emit(runtime, "chunks", node="retrieve", query=state["query"], chunk_ids=[c.metadata["chunk_id"] for c in chunks])
    return {"similar_chunks": Overwrite(chunks), "usage": meter.records}


async def search(query: str, context: RunContext, meter: CallMeter) -> list[tuple[Document, float]]:
    """(chunk, retrieval score), best first, from the retriever that every graph must be given."""
    retriever = context.services.retriever
    if retriever is None:
        raise TypeError("this graph retrieves: give RagContext a retriever")
    return await retriever.asearch(query, meter=meter)


def as_found(chunk: Document, **place: JsonScalar) -> Document:
    """A copy of the chunk that nobody has judged, with ``place`` in its metadata."""
    return Document(page_content=chunk.page_content, metadata={**chunk.metadata, **UNJUDGED, **place})


async def judge(state: JudgeState, runtime: Runtime[RunContext]) -> dict[str, object]:
    """Judge one chunk; a judge that fails gives an unknown verdict, a spent budget a cancelled one."""
    context, chunk = runtime.context, state["similar_chunk"]
    chunk_id = str(chunk.metadata["chunk_id"])
    meter = CallMeter(node="judge", chunk_id=chunk_id, budget=context.budget)
    expand = context.depth < context.services.limits.max_rec_depth
    try:
        if context.services.judge is None:
            raise TypeError("this graph judges: give RagContext a judge")
        verdict = await context.services.judge.judge(state["old_query"], chunk, meter=meter, expand=expand)
    except BudgetSpent as spent:
        verdict = Verdict(status="cancelled", problem=str(spent))
    except Exception as error:
        logger.exception("the judge failed on chunk %s", chunk_id)
        verdict = Verdict(status="unknown", problem=f"{type(error).__name__}: {error}")
    emit(runtime, "verdict", node="judge", chunk_id=chunk_id, verdict=verdict.status, score=verdict.score)
    return {"similar_chunks": [_verdict_patch(chunk_id, verdict)], "usage": meter.records}


def _verdict_patch(chunk_id: str, verdict: Verdict) -> ChunkPatch:
    unanswered = verdict.status == "judged" and verdict.problem
    return ChunkPatch(
        chunk_id=chunk_id,
        changes={
            "verdict": verdict.status,
            "score": verdict.score,
            "score_confidence": None if verdict.confidence is None else float(verdict.confidence),
            "reason": verdict.reason if verdict.status == "judged" else verdict.problem,
            "next_query": verdict.next_query,
            "sub_run_error": f"no sub-question: {verdict.problem}" if unanswered else "",
        },
    )


async def plan_sub_runs(state: RagState, runtime: Runtime[RunContext]) -> dict[str, object]:
    """Write the thread of each sub-question into its chunk, before any of them starts, while the budget lasts.

    Plans nothing if some chunk suffices, or on the deepest level. It is also where the judges' branches join, since a
    route behind a branch would see that branch's verdict alone.
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
            changes = {"sub_run_error": f"not asked: the budget of {context.budget.limit} model calls is spent"}
        patches.append(ChunkPatch(chunk_id=chunk_id, changes=changes))
    return {"similar_chunks": patches}


def chunks_to_expand(chunks: list[Document], context: RunContext) -> list[Document]:
    """Chunks that score 1 and carry a sub-question, in rank order; none if some chunk scores 2 or no depth is left."""
    suffices = any(chunk.metadata["score"] == 2 for chunk in chunks)
    if suffices or context.depth >= context.services.limits.max_rec_depth:
        return []
    return [chunk for chunk in chunks if chunk.metadata["score"] == 1 and chunk.metadata["next_query"]]


async def call_new_rag(state: CallNewRagState, runtime: Runtime[RunContext]) -> dict[str, object]:
    """Ask the sub-question of one chunk on its own thread; the answer, or what went wrong, returns into the chunk."""
    chunk_id = str(state["similar_chunk"].metadata["chunk_id"])
    thread_id = str(state["similar_chunk"].metadata["next_rag_thread_id"])
    changes: dict[str, JsonScalar]
    try:
        final = await run_sub_thread(state["query_for_next_rag"], thread_id, runtime)
        changes = {"sub_answer": final["answer"], "sub_run_error": ""}
    except BudgetSpent as spent:
        changes = {"sub_run_error": str(spent)}
    except ModelCallError as error:
        changes = {"sub_run_error": str(error)}
    except Exception as error:
        logger.exception("sub-run %s failed", thread_id)
        changes = {"sub_run_error": f"{type(error).__name__}: {error}"}
    emit(runtime, "sub_run_done", node="call_new_rag", chunk_id=chunk_id, next_rag_thread_id=thread_id, **changes)
    return {"similar_chunks": [ChunkPatch(chunk_id=chunk_id, changes=changes)]}


async def augment(state: RagState) -> dict[str, object]:
    """Write down the evidence that the reader will see."""
    return {"context": render_evidence(usable_chunks(state["similar_chunks"]))}


async def generate(state: RagState, runtime: Runtime[RunContext]) -> dict[str, object]:
    """Let the reader answer from the evidence."""
    return await _answer(reader_messages(state["query"], state["context"]), runtime)


async def generate_closed_book(state: RagState, runtime: Runtime[RunContext]) -> dict[str, object]:
    """Let the reader answer from what it knows."""
    return await _answer(closed_book_messages(state["query"]), runtime)


async def _answer(messages: list[Message], runtime: Runtime[RunContext]) -> dict[str, object]:
    context = runtime.context
    meter = CallMeter(node="generate", budget=context.budget, held_by=context.thread_id)
    completion = await context.services.reader.complete(
        messages,
        meter=meter,
        on_text=(lambda text: emit(runtime, "answer_growing", node="generate", answer=text))
        if context.stream_answer and context.depth == 0
        else None,
    )
    status = "refused" if is_refusal(completion.text) else "answered"
    emit(runtime, "answer", node="generate", answer=completion.text, status=status)
    return {"answer": completion.text, "status": status, "usage": meter.records}
