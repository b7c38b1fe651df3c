"""ReAct: an agent that thinks and acts in turn; its tool is the retriever (Yao et al., ICLR 2023, arXiv 2210.03629)."""

from __future__ import annotations

from typing import Unpack

from langgraph.runtime import Runtime

from ...modules.reader.evidence import render_evidence
from ...modules.reader.multistep_prompts import Observed, parse_action, react_messages
from ..rag.graph import GraphOptions, RagGraph
from ..threads.context import RunContext
from ..threads.state import RagState
from .rounds import build_rounds, chunks_of, write_step


def build_react(**options: Unpack[GraphOptions]) -> RagGraph:
    """Build the ReAct graph; its context needs a retriever and a reader. Options as for ``RagGraph``.

    ::

        retrieve_round ─> act ─ "Action: Search[…]" ─> retrieve_round
              │            └ "Action: Finish[…]" ─┐
              └ no depth left ─────────────────> augment ─> generate

    The reader answers from the passages of all rounds. At depth d it takes at most d + 1 model calls.

    ::

        graph = build_react(context=RagContext(reader=llm, retriever=retriever), checkpointer="memory:")
        print(graph.invoke("Which oil does KS-1 need?")["answer"])
    """
    return build_rounds("react", act, **options)


async def act(state: RagState, runtime: Runtime[RunContext]) -> dict[str, object]:
    """Think and act on the earlier searches and their hits; a reply without a search ends the rounds."""
    messages = react_messages(state["query"], _observed(state), runtime.context.services.prompts)
    return await write_step(state, runtime, node="act", messages=messages, read=_read)


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
