"""IRCoT: each sentence of a chain of thought is the next query (Trivedi et al., ACL 2023, arXiv 2212.10509)."""

from __future__ import annotations

from typing import Unpack

from langgraph.runtime import Runtime

from ...modules.reader.evidence import render_evidence
from ...modules.reader.multistep_prompts import parse_thought, thought_messages
from ..rag.graph import GraphOptions, RagGraph
from ..threads.context import RunContext
from ..threads.state import RagState
from .rounds import Written, build_rounds, write_step


def build_ircot(**options: Unpack[GraphOptions]) -> RagGraph:
    """Build the IRCoT graph; its context needs a retriever and a reader. Options as for ``RagGraph``.

    ::

        retrieve_round ─> reason ─ a sentence ─> retrieve_round
              │              └ "So the answer is: …" ─┐
              └ no depth left ───────────────────────> augment ─> generate

    The reader answers from the paragraphs of all rounds. At depth d it takes at most d + 1 model calls.

    ::

        graph = build_ircot(context=RagContext(reader=llm, retriever=retriever), checkpointer="memory:")
        print(graph.invoke("Which oil does KS-1 need?")["answer"])
    """
    return build_rounds("ircot", reason, **options)


async def reason(state: RagState, runtime: Runtime[RunContext]) -> dict[str, object]:
    """Write the next sentence from all paragraphs found so far; it is the next query unless it states the answer."""
    thoughts = [step["text"] for step in state["steps"] if step["text"]]
    evidence, prompts = render_evidence(state["similar_chunks"]), runtime.context.services.prompts
    messages = thought_messages(state["query"], evidence, thoughts, prompts)
    return await write_step(state, runtime, node="reason", messages=messages, read=_read)


def _read(reply: str) -> Written:
    thought = parse_thought(reply)
    return Written(text=thought.text, next_query="" if thought.is_last else thought.text)
