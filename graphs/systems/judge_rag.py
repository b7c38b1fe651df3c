"""RAG with a judge: chunks are scored in parallel, and a partly useful one may ask a sub-question on its own thread."""

from __future__ import annotations

from typing import Unpack

from langgraph.graph import END, START, StateGraph

from ..rag.graph import GraphOptions, RagGraph
from ..threads.context import RunContext
from ..threads.state import RagState
from . import asking_on, judging, linking, nodes, sub_runs


def build_judge_rag(**options: Unpack[GraphOptions]) -> RagGraph:
    """Build the recursive graph with a judge; its context needs a retriever, a reader and a judge.

    Options as for ``RagGraph``.

    ::

        retrieve ─ Send ×k ─> judge ─> plan_sub_runs ─ Send ─> call_new_rag ─> augment ─> generate
             └─ Send ─> judge_set ───────^  └──────── nothing to ask ────────────^

    A judge that takes all chunks at once (``SetJudge``) is asked in ``judge_set``. With ``Limits(expansion="link")``
    or "both", ``plan_sub_runs`` first sends to ``follow_links``, whose passages are judged, and comes again.

    ::

        context = RagContext(reader=llm, retriever=retriever, judge=judge)
        graph = build_judge_rag(context=context, checkpointer="memory:")
        print(graph.invoke("Which oil does KS-1 need?")["answer"])
    """
    builder = StateGraph(RagState, context_schema=RunContext)
    for node in (nodes.retrieve, sub_runs.plan_sub_runs, linking.follow_links, nodes.augment, nodes.generate):
        builder.add_node(node.__name__, node)
    # Their input comes by Send alone. A schema of its own would give each of its keys a channel that every step visits.
    for branch in (judging.judge, judging.judge_set, asking_on.call_new_rag):
        builder.add_node(branch.__name__, branch, input_schema=RagState)  # type: ignore[arg-type]
    builder.add_edge(START, "retrieve")
    builder.add_conditional_edges("retrieve", judging.to_judges, ["judge", "judge_set", "augment"])
    builder.add_edge("judge", "plan_sub_runs")
    builder.add_edge("judge_set", "plan_sub_runs")
    builder.add_conditional_edges("plan_sub_runs", sub_runs.to_sub_runs, ["call_new_rag", "augment", "follow_links"])
    builder.add_conditional_edges("follow_links", linking.to_linked_judges, ["judge", "judge_set", "plan_sub_runs"])
    builder.add_edge("call_new_rag", "augment")
    builder.add_edge("augment", "generate")
    builder.add_edge("generate", END)
    return RagGraph(builder, system="judge", **options)
