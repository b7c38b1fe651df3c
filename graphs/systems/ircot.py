"""IRCoT: each sentence of a chain of thought is the next query (Trivedi et al., ACL 2023, arXiv 2212.10509)."""

from __future__ import annotations

from typing import Literal

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime

from ...modules.reader.evidence import render_evidence
from ...modules.reader.multistep_prompts import parse_thought, thought_messages
from ...modules.settings import Durability
from ..rag.graph import CheckpointerFactory, RagGraph
from ..threads.context import RagContext, RunContext
from ..threads.state import RagState
from . import nodes
from .rounds import has_depth_left, retrieve_round, to_next_round, write_step


def build_ircot(
    *,
    checkpointer: str | CheckpointerFactory | None = "memory:",
    context: RagContext | None = None,
    durability: Durability = "async",
) -> RagGraph:
    """Build the IRCoT graph; its context needs a retriever and a reader. Arguments as for ``RagGraph``.

    ::

        retrieve_round ─> reason ─ a sentence ─> retrieve_round
              │              └ "So the answer is: …" ─┐
              └ no depth left ───────────────────────> augment ─> generate

    The reader answers from the paragraphs of all rounds. At depth d it takes at most d + 1 model calls.

    ::

        graph = build_ircot(context=RagContext(reader=llm, retriever=retriever), checkpointer="memory:")
        print(graph.invoke("Which oil does KS-1 need?")["answer"])
    """
    builder = StateGraph(RagState, context_schema=RunContext)
    for node in (retrieve_round, reason, nodes.augment, nodes.generate):
        builder.add_node(node.__name__, node)
    builder.add_edge(START, "retrieve_round")
    builder.add_conditional_edges("retrieve_round", to_reason, ["reason", "augment"])
    builder.add_conditional_edges("reason", to_next_round, ["retrieve_round", "augment"])
    builder.add_edge("augment", "generate")
    builder.add_edge("generate", END)
    return RagGraph(builder, system="ircot", checkpointer=checkpointer, context=context, durability=durability)


async def reason(state: RagState, runtime: Runtime[RunContext]) -> dict[str, object]:
    """Write the next sentence from all paragraphs found so far; it is the next query unless it states the answer."""
    thoughts = [step["text"] for step in state["steps"] if step["text"]]
    messages = thought_messages(state["query"], render_evidence(state["similar_chunks"]), thoughts)
    return await write_step(state, runtime, node="reason", messages=messages, read=_read)


async def to_reason(state: RagState, runtime: Runtime[RunContext]) -> Literal["reason", "augment"]:
    """Route to a sentence only if it can still be searched for."""
    return "reason" if has_depth_left(state, runtime) else "augment"


def _read(reply: str) -> tuple[str, str]:
    thought = parse_thought(reply)
    return thought.text, "" if thought.is_last else thought.text
