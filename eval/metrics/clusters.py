"""Clusters of questions that depend on each other, since they share a fact or their file says so."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import networkx as nx


def clusters_of(shared: Mapping[str, Sequence[str]]) -> dict[str, str]:
    """Return the cluster of each question: those that share something, directly or by others, are in one.

    >>> clusters_of({"q1": ("a", "b"), "q2": ("b", "c"), "q3": ("d",), "q4": ()})
    {'q1': 'q1', 'q2': 'q1', 'q3': 'q3', 'q4': 'q4'}

    Args:
        shared: What a question has in common with others, by question.

    Returns:
        The first question of the cluster, by question, in their order.
    """
    graph = nx.Graph()
    graph.add_nodes_from(("question", question) for question in shared)
    graph.add_edges_from(
        (("question", question), ("shared", part)) for question, parts in shared.items() for part in parts
    )
    places = {question: place for place, question in enumerate(shared)}
    first: dict[str, str] = {}
    for component in nx.connected_components(graph):
        members = sorted((name for kind, name in component if kind == "question"), key=places.__getitem__)
        first |= dict.fromkeys(members, members[0])
    return {question: first[question] for question in shared}
