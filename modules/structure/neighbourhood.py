"""The part of a graph that a question reaches: where its walk begins, the best passages, and the phrases between."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Literal

import numpy as np

from .pagerank import PassageRanking
from .passage_graph import Edges, PassageGraph
from .triples import OBJECT, RELATED, SUBJECT

MOST_NODES = 60
_MOST_PASSAGES = 20
_MOST_QUERY_PHRASES = 10
_MOST_EDGES = 300


@dataclass(frozen=True, kw_only=True)
class GraphNode:
    """A passage or a phrase of a neighbourhood."""

    node: int
    """Its number in the graph."""
    kind: Literal["passage", "phrase"]
    name: str
    """Chunk id, or the phrase."""
    score: float
    """Its PageRank for the question; those of the whole graph add up to 1."""
    seed: float
    """Share of the walks that begin here, in [0, 1]; 0 for what the walk only leads to."""


@dataclass(frozen=True, kw_only=True)
class GraphEdge:
    """An edge of a neighbourhood; of several between the same places in the same direction, one for each relation."""

    source: int
    target: int
    relation: str
    """What the source does to the target, such as "was born in"; "" for a passage that names a phrase."""
    passages: tuple[str, ...] = ()
    """Chunk ids of the passages of the graph that state it; empty if it has no relation."""


@dataclass(frozen=True, kw_only=True)
class Neighbourhood:
    """The part of a graph that a question reaches."""

    query: str
    kind: str
    """Kind of the graph."""
    places: tuple[GraphNode, ...]
    """Best score first, passages before phrases."""
    bonds: tuple[GraphEdge, ...]
    left_out: int
    """Passages and phrases that the walk reaches too, and that are not among ``places``."""


def neighbourhood(
    ranking: PassageRanking, query: str, hits: Mapping[str, float], *, most_nodes: int = MOST_NODES
) -> Neighbourhood:
    """Return what a question reaches: seeds, best passages, and the phrases that join two or more of them.

    Args:
        ranking: The ranking by the graph.
        query: The question; phrases that it names are seeds.
        hits: Weight of each chunk that a search found, by id, above 0; they are seeds too.
        most_nodes: Most places.
    """
    graph = ranking.graph
    seeds = ranking.seeds(query, hits)
    scores = ranking.scores(seeds)
    passages = len(graph.passages)
    by_score = np.argsort(-scores, kind="stable")
    reached = [node for node in by_score.tolist() if scores[node] > 0]
    kept = [node for node in reached if node < passages][: min(_MOST_PASSAGES, max(most_nodes // 2, 1))]
    named = sorted(ranking.phrases_in(query), key=lambda node: -scores[node])[:_MOST_QUERY_PHRASES]
    phrases = [node for node in reached if node >= passages]
    joining = list(_joining(graph, {*kept, *named}, phrases))
    joining += _joining(graph, {*kept, *named, *joining[:most_nodes]}, phrases)  # what their relations lead to
    chosen = list(dict.fromkeys([*kept, *named, *joining]))[:most_nodes]
    return Neighbourhood(
        query=query,
        kind=graph.kind,
        places=tuple(
            GraphNode(
                node=node,
                kind="passage" if graph.is_passage(node) else "phrase",
                name=graph.name_of(node),
                score=float(scores[node]),
                seed=float(seeds[node]),
            )
            for node in sorted(chosen, key=lambda node: (node >= passages, -scores[node], node))
        ),
        bonds=tuple(_bonds(graph, set(chosen)))[:_MOST_EDGES],
        left_out=len(set(reached) - set(chosen)),
    )


def _joining(graph: PassageGraph, kept: set[int], phrases: list[int]) -> Iterator[int]:
    """Yield the phrases with edges to two or more of the nodes, in their order."""
    ends: defaultdict[int, set[int]] = defaultdict(set)
    for edges in graph.edges.values():
        for source, target in zip(edges.sources.tolist(), edges.targets.tolist(), strict=True):
            if source in kept:
                ends[target].add(source)
            if target in kept:
                ends[source].add(target)
    yield from (node for node in phrases if len(ends[node]) > 1)


def _bonds(graph: PassageGraph, nodes: set[int]) -> Iterator[GraphEdge]:
    stated = _Stated(graph)
    plain: set[tuple[int, int]] = set()
    for name, edges in sorted(graph.edges.items()):
        labels = edges.labels if name == RELATED else None
        for place in np.flatnonzero(np.isin(edges.sources, list(nodes)) & np.isin(edges.targets, list(nodes))).tolist():
            source, target = int(edges.sources[place]), int(edges.targets[place])
            if labels is not None:
                label = int(labels[place])
                passages = stated.by(source, label, target)
                yield GraphEdge(source=source, target=target, relation=graph.relations[label], passages=passages)
            elif (source, target) not in plain:
                plain.add((source, target))
                yield GraphEdge(source=source, target=target, relation="")


class _Stated:
    """Which passages state a relation: those that have its subject and its object under its label."""

    def __init__(self, graph: PassageGraph) -> None:
        self._graph = graph
        self._subjects = graph.edges[SUBJECT].reversed() if SUBJECT in graph.edges else None
        self._objects = graph.edges[OBJECT].reversed() if OBJECT in graph.edges else None

    def by(self, subject: int, label: int, object_: int) -> tuple[str, ...]:
        if self._subjects is None or self._objects is None:
            return ()
        both = _sources(self._subjects, subject, label) & _sources(self._objects, object_, label)
        return tuple(self._graph.name_of(node) for node in sorted(both))


def _sources(reversed_edges: Edges, phrase: int, label: int) -> set[int]:
    first, end = np.searchsorted(reversed_edges.sources, [phrase, phrase + 1])
    labels = reversed_edges.labels
    if labels is None:
        return set()
    return set(reversed_edges.targets[first:end][labels[first:end] == label].tolist())
