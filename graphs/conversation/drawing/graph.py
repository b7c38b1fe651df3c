"""A conversation with its search trees as a networkx graph."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....modules.memory.turns import OpenTurn, QaPair
from ....modules.storage.texts import printable
from ...threads.state import JsonScalar
from ...tree.documents import build_graph
from .turn_tree import TurnTree

if TYPE_CHECKING:
    import networkx as nx


def build_turn_graph(tree: TurnTree) -> nx.MultiDiGraph:
    """Build a directed graph of the turns, named by their ids, and of their search trees.

    ``kind`` of an edge, which is also its key, is "followed_by" from turn to turn, "reused_by" from a turn that found
    evidence to a turn that answers from it (``chunks``: their number), "searched" from a turn to its search tree, or
    the kind of an edge in a search tree. Attributes are scalars that GraphML can hold.
    """
    import networkx as nx  # noqa: PLC0415 - loaded when it is used

    graph = nx.MultiDiGraph()
    waiting = [tree.open_turn] if tree.open_turn else []
    graph.add_nodes_from((turn["turn_id"], _attributes(turn)) for turn in tree.turns)
    graph.add_nodes_from((turn["turn_id"], _open_attributes(turn)) for turn in waiting)
    every: list[QaPair | OpenTurn] = [*tree.turns, *waiting]
    for turn in every:
        if parent := tree.parent_of(turn):
            _add_edge(graph, parent["turn_id"], turn["turn_id"], "followed_by")
    for reuse in tree.reuses():
        ends = reuse.found_in["turn_id"], reuse.used_in["turn_id"]
        _add_edge(graph, *ends, "reused_by", chunks=len(reuse.chunks))
    _add_search_trees(graph, tree)
    return graph


def _add_search_trees(graph: nx.MultiDiGraph, tree: TurnTree) -> None:
    searched = [(turn["turn_id"], tree.tree_of(turn)) for turn in tree.turns]
    if tree.open_turn:
        searched.append((tree.open_turn["turn_id"], tree.open_tree))
    for turn_id, found in searched:
        if found is None:
            continue
        below = build_graph(found.root)
        graph.add_nodes_from(below.nodes(data=True))
        for start, end, attributes in below.edges(data=True):
            _add_edge(graph, start, end, attributes["kind"])
        _add_edge(graph, turn_id, printable(found.root.thread_id), "searched")


def _add_edge(graph: nx.MultiDiGraph, start: str, end: str, kind: str, **attributes: JsonScalar) -> None:
    graph.add_edge(start, end, key=kind, kind=kind, **attributes)


def _attributes(turn: QaPair) -> dict[str, object]:
    return {
        **_open_attributes(turn),
        "status": turn["status"],
        "standalone_query": printable(turn["standalone_query"]),
        "answer": printable(turn["answer"]),
        "answered_from": turn["answered_from"],
        "sources": len(turn["chunks"]),
        "needed_chat_history": " ".join(turn["needed_chat_history"] or ()),
        "collection": printable(turn["collection"]),
        "timestamp": turn["timestamp"],
        **turn["usage"],
    }


def _open_attributes(turn: QaPair | OpenTurn) -> dict[str, JsonScalar]:
    return {
        "kind": "turn",
        "turn_number": turn["turn_number"],
        "branch_id": turn["branch_id"],
        "query": printable(turn["query"]),
        "status": "open",
    }
