"""CRAG: the first search is kept, corrected or widened, as its passages score (Yan et al., 2024, arXiv 2401.15884).

The paper's evaluator scores each passage, and two thresholds make an action of the scores (algorithm 1). Here the judge
scores: a 2 lies above the upper threshold, a 0 below the lower one. There is no web: what the paper searches for there
is searched for in the same collection, with the query rewritten and twice the top-k.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Literal, Unpack

from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Send

from ...modules.reader.multistep_prompts import parse_rewrite, rewrite_messages
from ..rag.graph import GraphOptions, RagGraph
from ..threads.amounts import keep_for_answer
from ..threads.context import RunContext, emit
from ..threads.state import RagState, Step
from . import judging, nodes
from .rounds import Written, has_depth_left, retrieve_round, to_next_round, write_step
from .shown_evidence import shown_evidence
from .widened import widened

Action = Literal["correct", "incorrect", "ambiguous"]
"""What follows from the scores of the first search."""


def build_crag(**options: Unpack[GraphOptions]) -> RagGraph:
    """Build the CRAG graph; its context needs a retriever, a reader and a judge. Options as for ``RagGraph``.

    ::

        retrieve_round ─ Send ×k ─> judge ─> choose_action ─ correct, or widened already ─> augment ─> generate
                 └─ Send ─> judge_set ─────────^  └ incorrect, ambiguous ─> rewrite ─ no other query ─^
            judge or judge_set <─ Send ─ widen <─ another query ───────────────┘

    The reader answers from the passages that score 1 or 2; where the first search was incorrect, from those that only
    the second one found. At depth 0 nothing is widened. Else it takes at most one call besides those of judge and
    reader, and the judge is given up to three times top-k passages.

    ::

        context = RagContext(reader=llm, retriever=retriever, judge=judge)
        graph = build_crag(context=context, checkpointer="memory:")
        print(graph.invoke("Which oil does KS-1 need?")["answer"])
    """
    builder = StateGraph(RagState, context_schema=RunContext)
    for node in (retrieve_round, choose_action, rewrite, widen, augment, nodes.generate):
        builder.add_node(node.__name__, node)
    for branch in (judging.judge, judging.judge_set):  # whose input comes by Send, as in the judge's graph
        builder.add_node(branch.__name__, branch, input_schema=RagState)  # type: ignore[arg-type]
    builder.add_edge(START, "retrieve_round")
    for search in ("retrieve_round", "widen"):
        builder.add_conditional_edges(search, to_evaluation, ["judge", "judge_set", "choose_action", "augment"])
    builder.add_edge("judge", "choose_action")
    builder.add_edge("judge_set", "choose_action")
    builder.add_conditional_edges("choose_action", to_correction, ["rewrite", "augment"])
    builder.add_conditional_edges("rewrite", to_next_round, {"retrieve_round": "widen", "augment": "augment"})
    builder.add_edge("augment", "generate")
    builder.add_edge("generate", END)
    return RagGraph(builder, system="crag", **options)


async def to_evaluation(state: RagState, runtime: Runtime[RunContext]) -> list[Send] | str:
    """Route to the judges of new chunks; without ``judge_leaves`` those of the last round are not judged."""
    if not runtime.context.services.limits.judge_leaves and not await _may_widen(state, runtime):
        return "augment"
    found = [chunk for chunk in state["similar_chunks"] if chunk.metadata["verdict"] == "pending"]
    return judging.sends_to_judges(found, state, runtime.context, expand=False) if found else "choose_action"


async def choose_action(state: RagState, runtime: Runtime[RunContext]) -> dict[str, object]:
    """Write the action into the first round, once its chunks are judged."""
    keep_for_answer(state, runtime.context)
    first, *second = state["steps"]
    if second:
        return {"steps": []}
    action = action_of(chunk.metadata["score"] for chunk in state["similar_chunks"])
    emit(runtime, "step", node="choose_action", round=0, query=first["query"], text=action, next_query="", next_tool="")
    return {"steps": [Step(**{**first, "text": action})]}


def action_of(scores: Iterable[int | None]) -> Action:
    """Return the action for the scores of all passages, None where the judge has failed.

    >>> action_of([0, 2, 1]), action_of([0, 0]), action_of([0, 1, None])
    ('correct', 'incorrect', 'ambiguous')
    """
    given = set(scores)
    return "correct" if 2 in given else "incorrect" if given <= {0} else "ambiguous"


async def to_correction(state: RagState, runtime: Runtime[RunContext]) -> Literal["rewrite", "augment"]:
    """Route to the second search unless the first was correct, or has been widened."""
    is_correct = state["steps"][0]["text"] == "correct"
    return "rewrite" if not is_correct and await _may_widen(state, runtime) else "augment"


async def rewrite(state: RagState, runtime: Runtime[RunContext]) -> dict[str, object]:
    """Write the query of the second search; a reply that repeats the question ends the rounds."""
    action = state["steps"][0]["text"]

    def read(reply: str) -> Written:
        return Written(text=action, next_query=parse_rewrite(reply))

    messages = rewrite_messages(state["query"], runtime.context.services.prompts)
    return await write_step(state, runtime, node="rewrite", messages=messages, read=read)


async def widen(state: RagState, runtime: Runtime[RunContext]) -> dict[str, object]:
    """Search with the rewritten query, for twice as many chunks if the retriever can find more."""
    context = runtime.context
    retriever = context.services.retriever
    if retriever is not None:
        context = replace(context, services=replace(context.services, retriever=widened(retriever)))
    return await retrieve_round(state, runtime.override(context=context))


async def augment(state: RagState, runtime: Runtime[RunContext]) -> dict[str, object]:
    """Render the evidence for the reader: useful chunks, without those of an incorrect search that was widened."""
    (first, *second), chunks = state["steps"], state["similar_chunks"]
    if second and first["text"] == "incorrect":
        chunks = [chunk for chunk in chunks if chunk.metadata["chunk_id"] not in first["chunk_ids"]]
    return await shown_evidence(runtime.context.services.evidence.of_chunks(chunks), state, runtime)


async def _may_widen(state: RagState, runtime: Runtime[RunContext]) -> bool:
    return len(state["steps"]) == 1 and await has_depth_left(state, runtime)
