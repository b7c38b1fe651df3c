"""ReAct: an agent that thinks and acts in turn; its tool is the retriever (Yao et al., ICLR 2023, arXiv 2210.03629)."""

from __future__ import annotations

from typing import Literal

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime

from ...modules.reader.evidence import render_evidence
from ...modules.reader.multistep_prompts import Observed, parse_action, react_messages
from ...modules.settings import Durability
from ..rag.graph import CheckpointerFactory, RagGraph
from ..threads.context import RagContext, RunContext
from ..threads.state import RagState
from . import nodes
from .rounds import chunks_of, has_depth_left, retrieve_round, to_next_round, write_step


def build_react(
    *,
    checkpointer: str | CheckpointerFactory | None = "memory:",
    context: RagContext | None = None,
    durability: Durability = "async",
) -> RagGraph:
    """Build the ReAct graph; its context needs a retriever and a reader. Arguments as for ``RagGraph``.

    ::

        retrieve_round ─> act ─ "Action: Search[…]" ─> retrieve_round
              │            └ "Action: Finish[…]" ─┐
              └ no depth left ─────────────────> augment ─> generate

    The reader answers from the passages of all rounds. At depth d it takes at most d + 1 model calls.

    ::

        graph = build_react(context=RagContext(reader=llm, retriever=retriever), checkpointer="memory:")
        print(graph.invoke("Which oil does KS-1 need?")["answer"])
    """
    builder = StateGraph(RagState, context_schema=RunContext)
    for node in (retrieve_round, act, nodes.augment, nodes.generate):
        builder.add_node(node.__name__, node)
    builder.add_edge(START, "retrieve_round")
    builder.add_conditional_edges("retrieve_round", to_act, ["act", "augment"])
    builder.add_conditional_edges("act", to_next_round, ["retrieve_round", "augment"])
    builder.add_edge("augment", "generate")
    builder.add_edge("generate", END)
    return RagGraph(builder, system="react", checkpointer=checkpointer, context=context, durability=durability)


async def act(state: RagState, runtime: Runtime[RunContext]) -> dict[str, object]:
    """Think and act on the earlier searches and their hits; a reply without a search ends the rounds."""
    messages = react_messages(state["query"], _observed(state))
    return await write_step(state, runtime, node="act", messages=messages, read=_read)


async def to_act(state: RagState, runtime: Runtime[RunContext]) -> Literal["act", "augment"]:
    """Route to an action only if it can still be a search."""
    return "act" if has_depth_left(state, runtime) else "augment"


def _read(reply: str) -> tuple[str, str]:
    action = parse_action(reply)
    return action.thought, action.query


def _observed(state: RagState) -> list[Observed]:
    """Return the rounds for the agent; the thought of a round precedes the search of the next."""
    thoughts = ["", *(step["text"] for step in state["steps"])]
    return [
        Observed(query=step["query"], passages=render_evidence(chunks_of(state, step)), thought=thought)
        for thought, step in zip(thoughts, state["steps"], strict=False)
    ]
