"""Self-Ask: follow-up questions, each answered by a search (Press et al., Findings of EMNLP 2023, arXiv 2210.03350)."""

from __future__ import annotations

from typing import Literal, Unpack

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime

from ...modules.reader.evidence import render_evidence
from ...modules.reader.multistep_prompts import QuestionAnswer, follow_up_messages, parse_follow_up
from ...modules.reader.prompts import reader_messages
from ...modules.reader.refusals import is_refusal
from ..rag.graph import GraphOptions, RagGraph
from ..threads.context import RunContext
from ..threads.state import RagState
from . import nodes
from .rounds import Written, chunks_of, has_depth_left, retrieve_round, to_next_round, write_step
from .shown_evidence import shown_evidence

_STOP = ("Intermediate answer:",)
"""Label of the follow-up's answer, which the reader writes from its chunks."""


def build_self_ask(**options: Unpack[GraphOptions]) -> RagGraph:
    """Build the Self-Ask graph; its context needs a retriever and a reader. Options as for ``RagGraph``.

    ::

        retrieve_round ─> ask_follow_up ─ "Follow up: …" ─> retrieve_round ─> answer_follow_up ─> ask_follow_up
              │                └ "So the final answer is: …" ─┐                     │
              └ no depth at all ───────────────────────────> augment <─ no depth left ┘    augment ─> generate

    The reader answers each follow-up from the chunks found for it, and the question from its own chunks with all
    follow-ups and their answers. At depth d it takes at most 2 d + 1 model calls.

    ::

        graph = build_self_ask(context=RagContext(reader=llm, retriever=retriever), checkpointer="memory:")
        print(graph.invoke("Which oil does KS-1 need?")["answer"])
    """
    builder = StateGraph(RagState, context_schema=RunContext)
    for node in (retrieve_round, ask_follow_up, answer_follow_up, augment, nodes.generate):
        builder.add_node(node.__name__, node)
    builder.add_edge(START, "retrieve_round")
    builder.add_conditional_edges("retrieve_round", after_search, ["ask_follow_up", "answer_follow_up", "augment"])
    builder.add_conditional_edges("ask_follow_up", to_next_round, ["retrieve_round", "augment"])
    builder.add_conditional_edges("answer_follow_up", to_follow_up, ["ask_follow_up", "augment"])
    builder.add_edge("augment", "generate")
    builder.add_edge("generate", END)
    return RagGraph(builder, system="self_ask", **options)


async def ask_follow_up(state: RagState, runtime: Runtime[RunContext]) -> dict[str, object]:
    """Ask the model for the next follow-up question; a reply without one ends the rounds."""
    answer = state["steps"][-1]["text"]

    def read(reply: str) -> Written:
        return Written(text=answer, next_query=parse_follow_up(reply))

    messages = follow_up_messages(state["query"], _answered(state), runtime.context.services.prompts)
    return await write_step(state, runtime, node="ask_follow_up", messages=messages, read=read, stop=_STOP)


async def answer_follow_up(state: RagState, runtime: Runtime[RunContext]) -> dict[str, object]:
    """Let the reader answer the follow-up question from its chunks."""
    step = state["steps"][-1]
    evidence = render_evidence(chunks_of(state, step))
    messages = reader_messages(step["query"], evidence, runtime.context.services.prompts)
    return await write_step(
        state, runtime, node="answer_follow_up", messages=messages, read=_as_text, is_sub_answer=True
    )


async def augment(state: RagState, runtime: Runtime[RunContext]) -> dict[str, object]:
    """Render the evidence for the reader: the question's own chunks, then follow-ups with answers.

    Refused follow-ups are left out, since they carry no information.
    """
    first, *follow_ups = state["steps"]
    shown = runtime.context.services.evidence.of_chunks(chunks_of(state, first))
    answered = [step for step in follow_ups if not is_refusal(step["text"])]
    return await shown_evidence(shown, state, runtime, answered)


async def after_search(
    state: RagState, runtime: Runtime[RunContext]
) -> Literal["ask_follow_up", "answer_follow_up", "augment"]:
    """Route to the reader after a follow-up's search, and to the next follow-up after the question's own."""
    return "answer_follow_up" if len(state["steps"]) > 1 else await to_follow_up(state, runtime)


async def to_follow_up(state: RagState, runtime: Runtime[RunContext]) -> Literal["ask_follow_up", "augment"]:
    """Route to a follow-up only if it can still be searched for."""
    return "ask_follow_up" if await has_depth_left(state, runtime) else "augment"


def _as_text(reply: str) -> Written:
    return Written(text=reply)


def _answered(state: RagState) -> list[QuestionAnswer]:
    """Return follow-ups with answers, refusals included, in order.

    One without budget for its answer, or whose answer was cut off, is left out.
    """
    return [(step["query"], step["text"]) for step in state["steps"][1:] if step["text"]]
