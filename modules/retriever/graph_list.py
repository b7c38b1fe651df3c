"""The passages that a graph ranks, as one more list of a fusion.

Hits of the searched fields and phrases of the query are the seeds of a personalised PageRank over the graph that
``judgetree index --graph entities`` made.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING

from ..errors import SearchArgumentError
from ..index.index import Index
from ..settings import load_settings
from ..structure.building import check_kind
from ..structure.entities import KIND
from ..structure.opened import OpenedGraph
from ..structure.pagerank import PassageRanking, Walk
from .fusion import PAGERANK, Ranked, fuse, fusion_for
from .search import FieldSearch, Hits

if TYPE_CHECKING:
    from pymilvus.client.abstract import BaseRanker

    from .contract import Searcher

MOST_SEEDS = 10
"""Hits of each searched field at which the walk begins; the first weighs 1, the second 1/2, …"""


class GraphList:
    """The ranking of one collection's passages by its graph.

    ::

        graph = GraphList(index, load_settings().home)
        retriever = Retriever(index, topk=5, search_type="hybrid", graph=graph)
    """

    def __init__(self, index: Index, home: Path, *, kind: str = KIND, walk: Walk | None = None) -> None:
        """``home`` is the data folder that has the graph; it is read at the first use.

        Raises:
            SettingsError: There is no such kind of graph.
        """
        check_kind(kind)
        self.kind = kind
        self.walk = walk or Walk()
        self._opened = OpenedGraph(index, home, kind, lambda graph: PassageRanking(graph, self.walk))

    def open(self) -> PassageRanking:
        """Return the ranking, read at the first call.

        Raises:
            CollectionError: The collection has no such graph, or has changed since it was made.
            DependencyError: scipy is not installed.
        """
        return self._opened.known()

    def fingerprint(self) -> dict[str, str]:
        """Return kind and digest of the graph, and the walk.

        Raises:
            CollectionError: The collection has no such graph, or has changed since it was made.
        """
        digest = self._opened.present().graph.digest
        return {"kind": self.kind, "graph": digest, "walk": json.dumps(asdict(self.walk), sort_keys=True)}

    def ranked(self, query: str, lists: Sequence[Sequence[str]], limit: int) -> list[tuple[str, float]]:
        """Return at most ``limit`` chunk ids and their PageRank, best first; ``lists`` are the hits of fields.

        Costs no request. Empty if the graph has neither a hit nor a phrase of the query.
        """
        ranking = self.open()
        weights: dict[str, float] = {}
        for hits in lists:
            for rank, chunk_id in enumerate(hits[:MOST_SEEDS], start=1):
                weights[chunk_id] = weights.get(chunk_id, 0.0) + 1.0 / rank
        return ranking.ranked(ranking.seeds(query, weights), limit)

    def fused_search(
        self, searcher: Searcher, requests: Sequence[FieldSearch], ranker: BaseRanker, query: str, limit: int
    ) -> Hits:
        """Fuse the hits of fields with the passages that the graph ranks; at most ``limit`` come, best first.

        Costs a search for each field, and a request for the passages that the graph alone found. Those that the filter
        of the search leaves out do not count.

        Raises:
            SearchArgumentError: The ranker fuses within Milvus alone.
            CollectionError: There is no graph, or the store refused or did not answer.
        """
        fusion = fusion_for(ranker.dict())
        if fusion is None:
            raise SearchArgumentError("A graph is fused by ranker_type rrf or weighted alone: take one of them.")
        fields = [(request.field.metric, searcher.search(request, limit)) for request in requests]
        chunks = {str(chunk.metadata["chunk_id"]): chunk for _, hits in fields for chunk, _ in hits}
        lists = [[str(chunk.metadata["chunk_id"]) for chunk, _ in hits] for _, hits in fields]
        ranked = self.ranked(query, lists, limit)
        chunks |= searcher.chunks([each for each, _ in ranked if each not in chunks], requests[0].expr)
        place = {chunk_id: number for number, chunk_id in enumerate(chunks)}
        ids = list(chunks)
        found: list[tuple[str, Ranked]] = [
            (metric, [(place[each], _distance(hit[1], metric)) for each, hit in zip(of_field, hits, strict=True)])
            for of_field, (metric, hits) in zip(lists, fields, strict=True)
        ]
        best = ranked[0][1] if ranked else 1.0
        found.append((PAGERANK, [(place[each], score / best) for each, score in ranked if each in place]))
        return [(chunks[ids[row]], score) for row, score in fuse(fusion, found, limit, ids.__getitem__)]


def graph_list_of(store: object, kind: str) -> GraphList:
    """Return the graph of a collection in the data folder of the settings.

    Raises:
        SearchArgumentError: ``store`` is no ``Index``.
        SettingsError: There is no such kind of graph.
    """
    if not isinstance(store, Index):
        raise SearchArgumentError(
            f"graph={kind!r} needs an indexed collection: give the retriever an Index, or leave graph out."
        )
    return GraphList(store, load_settings().home, kind=kind)


def _distance(score: float, metric: str) -> float:
    """Return what Milvus calls the distance of a hit."""
    return -score if metric == "L2" else score
