"""The closed-book baseline: answers from the model's own knowledge."""

from __future__ import annotations

from typing import Unpack

from langgraph.graph import END, START, StateGraph

from ..rag.graph import GraphOptions, RagGraph
from ..threads.context import RunContext
from ..threads.state import RagState
from . import nodes


def build_closed_book(**options: Unpack[GraphOptions]) -> RagGraph:
    """Build the closed-book graph; its context needs a reader. Options as for ``RagGraph``.

    ::

        graph = build_closed_book(context=RagContext(reader=llm))
        print(graph.invoke("Which oil does KS-1 need?")["answer"])
    """
    builder = StateGraph(RagState, context_schema=RunContext)
    builder.add_node("generate", nodes.generate_closed_book)
    builder.add_edge(START, "generate")
    builder.add_edge("generate", END)
    return RagGraph(builder, system="llm", **options)
