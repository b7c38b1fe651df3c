"""Iter-RetGen: each round searches with question and last draft (Shao et al., 2023, arXiv 2305.15294)."""

from __future__ import annotations

from typing import Unpack

from langgraph.runtime import Runtime

from ...modules.reader.evidence import render_evidence
from ...modules.reader.multistep_prompts import draft_messages, parse_draft
from ..rag.graph import GraphOptions, RagGraph
from ..threads.context import RunContext
from ..threads.state import RagState
from .rounds import Written, build_rounds, chunks_of, write_step
from .shown_evidence import shown_evidence


def build_iter_retgen(**options: Unpack[GraphOptions]) -> RagGraph:
    """Build the Iter-RetGen graph; its context needs a retriever and a reader. Options as for ``RagGraph``.

    ::

        retrieve_round ─> draft ─ question + draft ─> retrieve_round
              └ no depth left ─> augment ─> generate

    The reader answers from the chunks of the last round. At depth d it takes at most d + 1 model calls.

    ::

        graph = build_iter_retgen(context=RagContext(reader=llm, retriever=retriever), checkpointer="memory:")
        print(graph.invoke("Which oil does KS-1 need?")["answer"])
    """
    return build_rounds("iter_retgen", draft, augment=augment, **options)


async def draft(state: RagState, runtime: Runtime[RunContext]) -> dict[str, object]:
    """Write a draft from the chunks of this round; question and draft are the next query."""
    query = state["query"]

    def read(reply: str) -> Written:
        text = parse_draft(reply)
        return Written(text=text, next_query=f"{query} {text}" if text else "")

    evidence = render_evidence(chunks_of(state, state["steps"][-1]))
    messages = draft_messages(query, evidence, runtime.context.services.prompts)
    return await write_step(state, runtime, node="draft", messages=messages, read=read)


async def augment(state: RagState, runtime: Runtime[RunContext]) -> dict[str, object]:
    """Render the evidence for the reader: the chunks of the last round."""
    chosen = runtime.context.services.evidence.of_chunks(chunks_of(state, state["steps"][-1]))
    return await shown_evidence(chosen, state, runtime)
