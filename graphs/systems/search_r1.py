"""Search-R1: thoughts, searches and what they found between tags (Jin et al., 2025, arXiv 2503.09516)."""

from __future__ import annotations

from typing import Unpack

from langgraph.runtime import Runtime

from ...modules.reader.tagged_prompts import STOPS, parse_tagged, search_r1_messages
from ..rag.graph import GraphOptions, RagGraph
from ..threads.context import RunContext
from ..threads.state import RagState
from .rounds import Written, build_rounds, observed_rounds, write_step


def build_search_r1(**options: Unpack[GraphOptions]) -> RagGraph:
    """Build the Search-R1 graph; its context needs a retriever and a reader. Options as for ``RagGraph``.

    ::

        retrieve_round ─> think ─ "<search>…" ─> retrieve_round
              │             └ "<answer>…" ─┐
              └ no depth left ────────────> augment ─> generate

    The reader answers from the passages of all rounds. At depth d it takes at most d + 1 model calls.

    ::

        graph = build_search_r1(context=RagContext(reader=llm, retriever=retriever), checkpointer="memory:")
        print(graph.invoke("Which oil does KS-1 need?")["answer"])
    """
    return build_rounds("search_r1", think, **options)


async def think(state: RagState, runtime: Runtime[RunContext]) -> dict[str, object]:
    """Think and search, or end the rounds, after what the earlier rounds have found."""
    messages = search_r1_messages(state["query"], observed_rounds(state), runtime.context.services.prompts)
    return await write_step(state, runtime, node="think", messages=messages, read=_read, stop=STOPS, keep_thinking=True)


def _read(reply: str) -> Written:
    step = parse_tagged(reply)
    return Written(text=step.text, next_query=step.query)
