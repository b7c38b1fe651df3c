"""A search tree as a networkx graph and as GraphML, for graph tools."""

from __future__ import annotations

import networkx as nx

from ..threads.state import JsonScalar
from .nodes import ChunkNode, QueryNode, walk_chunks, walk_queries
from .printable import printable


def build_graph(root: QueryNode) -> nx.DiGraph:
    """A directed graph from queries to their chunks and from chunks to their sub-questions.

    A query node is named by its thread id, a chunk node by ``thread id/chunk id`` (two queries may find one chunk).
    ``kind`` is "query" or "chunk". Attributes are scalars that GraphML can hold; what is None is left out, and
    characters that XML forbids are replaced.
    """
    graph = nx.DiGraph()
    for query in walk_queries(root):
        _add_node(graph, query.thread_id, _query_attributes(query))
    for parent, chunk in walk_chunks(root):
        name = f"{parent.thread_id}/{chunk.chunk_id}"
        _add_node(graph, name, {**chunk.metadata, **_chunk_attributes(parent, chunk)})
        graph.add_edge(printable(parent.thread_id), printable(name), kind="retrieved")
        if chunk.child is not None:
            graph.add_edge(printable(name), printable(chunk.child.thread_id), kind="asked")
    return graph


def draw_graphml(root: QueryNode) -> str:
    """The graph of ``build_graph`` as GraphML text; metadata keys are the attribute names."""
    return "\n".join(nx.generate_graphml(build_graph(root)))


def _query_attributes(node: QueryNode) -> dict[str, JsonScalar]:
    cost = node.cost
    return {
        "kind": "query",
        "thread_id": node.thread_id,
        "depth": node.depth,
        "query": node.query,
        "answer": node.answer,
        "status": node.status,
        "answer_status": node.answer_status,
        "error": node.error,
        "started_at": node.started_at,
        "ended_at": node.ended_at,
        "llm_calls": cost["llm_calls"],
        "prompt_tokens": cost["prompt_tokens"],
        "completion_tokens": cost["completion_tokens"],
        "seconds": cost["seconds"],
    }


def _chunk_attributes(parent: QueryNode, chunk: ChunkNode) -> dict[str, JsonScalar]:
    return {
        "kind": "chunk",
        "thread_id": parent.thread_id,
        "chunk_id": chunk.chunk_id,
        "text": chunk.text,
        "verdict": chunk.verdict,
    }


def _add_node(graph: nx.DiGraph, name: str, attributes: dict[str, JsonScalar]) -> None:
    graph.add_node(printable(name))
    graph.nodes[printable(name)].update(
        (printable(key), printable(value) if isinstance(value, str) else value)
        for key, value in attributes.items()
        if value is not None
    )
