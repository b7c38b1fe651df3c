"""A system as a plain compiled graph of LangGraph, for its server: with the server's loop and checkpoints."""

from __future__ import annotations

import asyncio
import uuid
from collections.abc import Mapping
from typing import cast

from langchain_core.runnables import RunnableConfig
from langgraph.graph import END, START, StateGraph
from langgraph.graph.state import CompiledStateGraph
from langgraph.types import Overwrite

from ...modules.calls.budget import TreeBudget
from ..threads.amounts import budget_of, keep_root_answer
from ..threads.context import Compiled, RagContext, RunContext
from ..threads.fingerprint import digest_of, extra_inputs, fingerprint_of
from ..threads.state import RagState
from .run_start import RagInput, start_of

_MERGED = ("similar_chunks", "steps", "usage")
"""Keys of the state with reducers."""

ServedGraph = CompiledStateGraph[RagState, None, RagInput, RagState]


def served_graph(inner: Compiled, services: RagContext, *, system: str, source: str) -> ServedGraph:
    """Return a graph of one node, in which a system runs with its services.

    A node cannot get services from the server, whose contexts are JSON; so the node brings them.
    """

    async def rag(state: RagInput, config: RunnableConfig) -> RagState:
        start = start_of(cast(RagInput, dict(state)), "", None)
        fingerprint = await asyncio.to_thread(
            fingerprint_of,
            query=start["query"],
            system=system,
            source=source,
            services=services,
            extra=extra_inputs(start.get("reader_query", ""), start.get("kept_chunks", [])),
        )
        thread_id = str(config["configurable"].get("thread_id") or uuid.uuid4())
        context = _context_of(inner, services, await budget_of(services), fingerprint, thread_id)
        keep_root_answer(start.get("reader_query") or start["query"], context)
        # Without a config of its own it is a subgraph, which keeps its steps under this node and resumes there.
        final = await inner.ainvoke(cast(RagState, {**start, "fingerprint": fingerprint}), context=context)
        # The thread may hold the results of an earlier question.
        return cast(RagState, final | {key: Overwrite(final.get(key, [])) for key in _MERGED})

    builder = StateGraph(RagState, input_schema=RagInput)
    builder.add_node("rag", rag)
    builder.add_edge(START, "rag")
    builder.add_edge("rag", END)
    return builder.compile(name=inner.name)


def _context_of(
    inner: Compiled, services: RagContext, budget: TreeBudget, fingerprint: Mapping[str, str], thread_id: str
) -> RunContext:
    budget.reserve_answer(thread_id)
    return RunContext(
        services=services,
        budget=budget,
        graph=inner,
        fingerprint=digest_of(fingerprint),
        durability="async",
        thread_id=thread_id,
        root_thread_id=thread_id,
        stream_answer=True,
        is_served=True,
    )
