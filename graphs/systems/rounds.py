"""Shared graph of systems that search in rounds: the search, the model's step, the route to the next round.

A round is a ``Step`` of the state; the query of the first round is the question. All rounds run on one thread, so every
chunk is in ``similar_chunks`` once, under the first round that found it.
"""

from __future__ import annotations

import time
from collections.abc import Awaitable, Callable, Sequence
from dataclasses import dataclass
from typing import Literal, Unpack

from langchain_core.documents import Document
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime

from ...modules.calls.messages import CallOptions, Message
from ...modules.calls.usage import CallMeter
from ...modules.errors import BudgetSpent
from ...modules.reader.evidence import render_evidence
from ...modules.reader.multistep_prompts import Observed
from ..rag.graph import GraphOptions, RagGraph
from ..threads.amounts import keep_for_answer
from ..threads.context import RunContext, emit
from ..threads.state import JsonScalar, RagState, Step
from . import nodes

Node = Callable[..., Awaitable[dict[str, object]]]
"""A node of a graph: from the state, and perhaps the runtime, to an update."""


@dataclass(frozen=True, kw_only=True)
class Written:
    """What the model wrote about a round."""

    text: str
    """Text of the round; see ``Step``."""
    next_query: str = ""
    """Query of the next round, or a tool's input; ``""`` ends the rounds unless ``next_tool`` is named."""
    next_tool: str = ""
    """Name of the tool that gets the query; ``""`` for the search."""


def build_rounds(
    system: str,
    write: Node,
    *,
    augment: Node = nodes.augment,
    use_tool: Node | None = None,
    **options: Unpack[GraphOptions],
) -> RagGraph:
    """Build the graph of a system that makes one model call between two searches.

    ::

        retrieve_round ─> write ─ a next query ─> retrieve_round
              │             ├ input of a tool ─> use_tool ─> as after a search
              │             └ no next query ─┐
              └ no depth left ──────────────> augment ─> generate
    """
    builder = StateGraph(RagState, context_schema=RunContext)
    finds = (retrieve_round,) if use_tool is None else (retrieve_round, use_tool)
    for node in (*finds, write, augment, nodes.generate):
        builder.add_node(node.__name__, node)
    builder.add_edge(START, "retrieve_round")
    for node in finds:
        builder.add_conditional_edges(node.__name__, has_depth_left, {True: write.__name__, False: "augment"})
    builder.add_conditional_edges(write.__name__, to_next_round, [*(node.__name__ for node in finds), "augment"])
    builder.add_edge("augment", "generate")
    builder.add_edge("generate", END)
    return RagGraph(builder, system=system, **options)


async def retrieve_round(state: RagState, runtime: Runtime[RunContext]) -> dict[str, object]:
    """Search for the next query, at first the question, and add the chunks that no earlier round found.

    New chunks are ranked behind the existing ones. ``recursion_depth`` is their round, ``found_by`` its query.
    """
    steps = state.get("steps", [])
    query = steps[-1]["next_query"] if steps else state["query"]
    meter = CallMeter(node="retrieve_round")
    started = time.perf_counter()
    hits = await nodes.search(query, runtime.context, meter)
    search_record = nodes.search_record(query, started, hits, runtime.context)
    found = [nodes.reset_chunk(chunk, retrieval_score=float(score)) for chunk, score in hits]
    if not steps:
        found += nodes.carried_over_chunks(found, state)
    update = add_round(state, runtime, found, node="retrieve_round", query=query)
    return {**update, "kept_chunks": [], "usage": meter.records, "searches": [search_record]}


def add_round(
    state: RagState, runtime: Runtime[RunContext], found: Sequence[Document], *, node: str, query: str, tool: str = ""
) -> dict[str, object]:
    """Return the state update of a new round that found these chunks, best first, those of earlier rounds included."""
    steps, chunks = state.get("steps", []), state.get("similar_chunks", [])
    known = [str(chunk.metadata["chunk_id"]) for chunk in chunks]
    ids = list(dict.fromkeys(str(chunk.metadata["chunk_id"]) for chunk in found))
    new = {str(chunk.metadata["chunk_id"]): chunk for chunk in reversed(found)}
    place: dict[str, JsonScalar] = {"tool": tool, "found_by": f"{tool}[{query}]"} if tool else {"found_by": query}
    added = [
        nodes.reset_chunk(new[chunk_id], rank=rank, recursion_depth=len(steps), **place)
        for rank, chunk_id in enumerate((each for each in ids if each not in known), start=len(known))
    ]
    step = Step(round=len(steps), query=query, chunk_ids=ids, text="", next_query="", tool=tool, next_tool="")
    shown = [*known, *(chunk.metadata["chunk_id"] for chunk in added)]
    emit(runtime, "chunks", node=node, query=state["query"], chunk_ids=shown)
    return {"similar_chunks": added, "steps": [step]}


async def write_step(
    state: RagState,
    runtime: Runtime[RunContext],
    *,
    node: str,
    messages: list[Message],
    read: Callable[[str], Written],
    stop: tuple[str, ...] = (),
    is_sub_answer: bool = False,
    keep_thinking: bool = False,
) -> dict[str, object]:
    """Make one model call about the newest round; without budget, skip it and end the rounds.

    Args:
        state: A state with one step or more.
        runtime: Runtime of the calling node.
        node: Name of the calling node, for usage and events.
        messages: The prompt.
        read: Parses a reply. A query or input of an earlier round ends the rounds, since it would bring the same again.
        stop: Texts at which the reply ends; it holds none of them.
        is_sub_answer: Whether the reply answers the round's query, so that one that was cut off counts as none.
        keep_thinking: Whether ``read`` is given the model's thinking too, between think tags in front of the reply.

    Raises:
        ModelCallError: The call failed after its last attempt; the thread can be resumed from here.
    """
    context, step = runtime.context, state["steps"][-1]
    meter = CallMeter(node=node, budget=context.budget, calls=context.calls)
    keep_for_answer(state, context)
    try:
        async with context.budget.in_time():
            completion = await context.services.reader.complete(messages, meter=meter, options=CallOptions(stop=stop))
    except BudgetSpent as spent:
        chunks, problem = state.get("similar_chunks", []), f"the search ended early: {spent}"
        return {"similar_chunks": nodes.cut_short_patches(chunks, problem, spent.limit), "usage": meter.records}
    reply = "" if is_sub_answer and completion.is_cut_off else completion.written
    if keep_thinking and completion.thinking:
        end = "</think>" if reply else ""  # without a reply the thought has no end, and may hold the action
        reply = f"<think>{completion.thinking}{end}{reply}"
    written = read(reply)
    next_one = _told_apart(written.next_query, written.next_tool)
    if next_one in (_told_apart(each["query"], each["tool"]) for each in state["steps"]):
        written = Written(text=written.text)
    emit(runtime, "step", node=node, round=step["round"], query=step["query"], **vars(written))
    changed = Step(**{**step, "text": written.text, "next_query": written.next_query, "next_tool": written.next_tool})
    return {"steps": [changed], "usage": meter.records}


def chunks_of(state: RagState, step: Step) -> list[Document]:
    """Return the chunks found by a step, best first, those of earlier rounds included."""
    chunks = {str(chunk.metadata["chunk_id"]): chunk for chunk in state["similar_chunks"]}
    return [chunks[chunk_id] for chunk_id in step["chunk_ids"]]


def observed_rounds(state: RagState) -> list[Observed]:
    """Return the rounds for an agent; the thought of a round precedes the action of the next."""
    thoughts = ["", *(step["text"] for step in state["steps"])]
    return [
        Observed(
            query=step["query"], passages=render_evidence(chunks_of(state, step)), thought=thought, tool=step["tool"]
        )
        for thought, step in zip(thoughts, state["steps"], strict=False)
    ]


async def has_depth_left(state: RagState, runtime: Runtime[RunContext]) -> bool:
    """Return whether another round may follow; ``max_rec_depth`` counts the rounds after the first."""
    return len(state["steps"]) <= runtime.context.services.limits.max_rec_depth


async def to_next_round(state: RagState) -> Literal["retrieve_round", "use_tool", "augment"]:
    """Route to another round if the newest step has a next query or tool, else to the answer."""
    newest = state["steps"][-1]
    if newest["next_tool"]:
        return "use_tool"
    return "retrieve_round" if newest["next_query"] else "augment"


def _told_apart(query: str, tool: str) -> tuple[str, str]:
    """Return what two rounds that would bring the same have in common; tools may tell cases apart."""
    words = " ".join(query.split())
    return tool, words if tool else words.casefold()
