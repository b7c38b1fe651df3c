"""Iter-RetGen: each round searches with question and last draft (Shao et al., 2023, arXiv 2305.15294)."""

from __future__ import annotations

from typing import Literal

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime

from ...modules.reader.evidence import render_evidence
from ...modules.reader.multistep_prompts import draft_messages, parse_draft
from ...modules.settings import Durability
from ..rag.graph import CheckpointerFactory, RagGraph
from ..threads.context import RagContext, RunContext
from ..threads.state import RagState
from . import nodes
from .rounds import chunks_of, has_depth_left, retrieve_round, to_next_round, write_step


def build_iter_retgen(
    *,
    checkpointer: str | CheckpointerFactory | None = "memory:",
    context: RagContext | None = None,
    durability: Durability = "async",
) -> RagGraph:
    """Build the Iter-RetGen graph; its context needs a retriever and a reader. Arguments as for ``RagGraph``.

    ::

        retrieve_round ─> draft ─ question + draft ─> retrieve_round
              └ no depth left ─> augment ─> generate

    The reader answers from the chunks of the last round. At depth d it takes at most d + 1 model calls.

    ::

        graph = build_iter_retgen(context=RagContext(reader=llm, retriever=retriever), checkpointer="memory:")
        print(graph.invoke("Which oil does KS-1 need?")["answer"])
    """
    builder = StateGraph(RagState, context_schema=RunContext)
    for node in (retrieve_round, draft, augment, nodes.generate):
        builder.add_node(node.__name__, node)
    builder.add_edge(START, "retrieve_round")
    builder.add_conditional_edges("retrieve_round", to_draft, ["draft", "augment"])
    builder.add_conditional_edges("draft", to_next_round, ["retrieve_round", "augment"])
    builder.add_edge("augment", "generate")
    builder.add_edge("generate", END)
    return RagGraph(builder, system="iter_retgen", checkpointer=checkpointer, context=context, durability=durability)


async def draft(state: RagState, runtime: Runtime[RunContext]) -> dict[str, object]:
    """Write a draft from the chunks of this round; question and draft are the next query."""
    query = state["query"]

    def read(reply: str) -> tuple[str, str]:
        text = parse_draft(reply)
        return text, f"{query} {text}" if text else ""

    messages = draft_messages(query, render_evidence(chunks_of(state, state["steps"][-1])))
    return await write_step(state, runtime, node="draft", messages=messages, read=read)


async def augment(state: RagState) -> dict[str, object]:
    """Render the evidence for the reader: the chunks of the last round."""
    return nodes.as_evidence(chunks_of(state, state["steps"][-1]))


async def to_draft(state: RagState, runtime: Runtime[RunContext]) -> Literal["draft", "augment"]:
    """Route to a draft only if it can still be searched for."""
    return "draft" if has_depth_left(state, runtime) else "augment"
