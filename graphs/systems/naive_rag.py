"""RAG without a judge: retrieve, augment, generate."""

from __future__ import annotations

from typing import Unpack

from langgraph.graph import END, START, StateGraph

from ..rag.graph import GraphOptions, RagGraph
from ..threads.context import RunContext
from ..threads.state import RagState
from . import nodes


def build_naive_rag(**options: Unpack[GraphOptions]) -> RagGraph:
    """Build the baseline without a judge; its context needs a retriever and a reader. Options as for ``RagGraph``.

    ::

        graph = build_naive_rag(context=RagContext(reader=llm, retriever=retriever), checkpointer="memory:")
        print(graph.invoke("Which oil does KS-1 need?")["answer"])
    """
    builder = StateGraph(RagState, context_schema=RunContext)
    for node in (nodes.retrieve, nodes.augment, nodes.generate):
        builder.add_node(node.__name__, node)
    builder.add_edge(START, "retrieve")
    builder.add_edge("retrieve", "augment")
    builder.add_edge("augment", "generate")
    builder.add_edge("generate", END)
    return RagGraph(builder, system="naive", **options)
