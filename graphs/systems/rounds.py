"""Shared graph of systems that search in rounds: the search, the model's step, the route to the next round.

A round is a ``Step`` of the state; the query of the first round is the question. All rounds run on one thread, so every
chunk is in ``similar_chunks`` once, under the first round that found it.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable
from typing import Literal, Unpack

from langchain_core.documents import Document
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime

from ...modules.calls.messages import CallOptions, Message
from ...modules.calls.usage import CallMeter
from ...modules.errors import BudgetSpent
from ..rag.graph import GraphOptions, RagGraph
from ..threads.context import RunContext, emit
from ..threads.state import RagState, Step
from . import nodes

Node = Callable[..., Awaitable[dict[str, object]]]
"""A node of a graph: from the state, and perhaps the runtime, to an update."""


def build_rounds(
    system: str,
    write: Node,
    *,
    augment: Node = nodes.augment,
    **options: Unpack[GraphOptions],
) -> RagGraph:
    """Build the graph of a system that makes one model call between two searches.

    ::

        retrieve_round ─> write ─ a next query ─> retrieve_round
              │             └ no next query ─┐
              └ no depth left ──────────────> augment ─> generate
    """
    builder = StateGraph(RagState, context_schema=RunContext)
    for node in (retrieve_round, write, augment, nodes.generate):
        builder.add_node(node.__name__, node)
    builder.add_edge(START, "retrieve_round")
    builder.add_conditional_edges("retrieve_round", has_depth_left, {True: write.__name__, False: "augment"})
    builder.add_conditional_edges(write.__name__, to_next_round, ["retrieve_round", "augment"])
    builder.add_edge("augment", "generate")
    builder.add_edge("generate", END)
    return RagGraph(builder, system=system, **options)


async def retrieve_round(state: RagState, runtime: Runtime[RunContext]) -> dict[str, object]:
    """Search for the next query, at first the question, and add the chunks that no earlier round found.

    New chunks are ranked behind the existing ones. ``recursion_depth`` is their round, ``found_by`` its query.
    """
    steps, chunks = state.get("steps", []), state.get("similar_chunks", [])
    query = steps[-1]["next_query"] if steps else state["query"]
    meter = CallMeter(node="retrieve_round")
    started = time.perf_counter()
    hits = await nodes.search(query, runtime.context, meter)
    search_record = nodes.searched(query, started, hits)
    found = {str(chunk.metadata["chunk_id"]): (chunk, score) for chunk, score in hits}
    known = [str(chunk.metadata["chunk_id"]) for chunk in chunks]
    added = [
        nodes.as_found(chunk, retrieval_score=float(score), rank=rank, recursion_depth=len(steps), found_by=query)
        for rank, (chunk, score) in enumerate((found[key] for key in found if key not in known), start=len(known))
    ]
    if not steps:
        added += nodes.kept_besides(added, state, recursion_depth=0, found_by=query)
    ids = dict.fromkeys([*found, *(str(chunk.metadata["chunk_id"]) for chunk in added)])
    step = Step(round=len(steps), query=query, chunk_ids=list(ids), text="", next_query="")
    shown = [*known, *(chunk.metadata["chunk_id"] for chunk in added)]
    emit(runtime, "chunks", node="retrieve_round", query=state["query"], chunk_ids=shown)
    return {
        "similar_chunks": added,
        "steps": [step],
        "kept_chunks": [],
        "usage": meter.records,
        "searches": [search_record],
    }


async def write_step(
    state: RagState,
    runtime: Runtime[RunContext],
    *,
    node: str,
    messages: list[Message],
    read: Callable[[str], tuple[str, str]],
    stop: tuple[str, ...] = (),
) -> dict[str, object]:
    """Make one model call about the newest round; without budget, skip it and end the rounds.

    Args:
        state: A state with one step or more.
        runtime: Runtime of the calling node.
        node: Name of the calling node, for usage and events.
        messages: The prompt.
        read: Parses a reply into the step's text and its next query. A query of an earlier round ends the rounds,
            since it would find the same chunks again.
        stop: Texts at which the reply ends; it holds none of them.

    Raises:
        ModelCallError: The call failed after its last attempt; the thread can be resumed from here.
    """
    context, step = runtime.context, state["steps"][-1]
    meter = CallMeter(node=node, budget=context.budget, calls=context.calls)
    try:
        completion = await context.services.reader.complete(messages, meter=meter, options=CallOptions(stop=stop))
    except BudgetSpent as spent:
        patches = nodes.cut_short_patches(state.get("similar_chunks", []), f"the search ended early: {spent}")
        return {"similar_chunks": patches}
    text, next_query = read(completion.text)
    if _folded(next_query) in {_folded(earlier["query"]) for earlier in state["steps"]}:
        next_query = ""
    emit(runtime, "step", node=node, round=step["round"], query=step["query"], text=text, next_query=next_query)
    return {"steps": [Step(**{**step, "text": text, "next_query": next_query})], "usage": meter.records}


def chunks_of(state: RagState, step: Step) -> list[Document]:
    """Return the chunks found by a step, best first, those of earlier rounds included."""
    chunks = {str(chunk.metadata["chunk_id"]): chunk for chunk in state["similar_chunks"]}
    return [chunks[chunk_id] for chunk_id in step["chunk_ids"]]


async def has_depth_left(state: RagState, runtime: Runtime[RunContext]) -> bool:
    """Return whether another round may follow; ``max_rec_depth`` counts the rounds after the first."""
    return len(state["steps"]) <= runtime.context.services.limits.max_rec_depth


async def to_next_round(state: RagState) -> Literal["retrieve_round", "augment"]:
    """Route to another round if the newest step has a next query, else to the answer."""
    return "retrieve_round" if state["steps"][-1]["next_query"] else "augment"


def _folded(query: str) -> str:
    return " ".join(query.split()).casefold()
