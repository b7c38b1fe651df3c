"""The part of a graph that a question reaches."""

from __future__ import annotations

import pytest

from judgetree.modules.structure.neighbourhood import MOST_NODES, neighbourhood
from judgetree.modules.structure.pagerank import PassageRanking
from judgetree.modules.structure.passages import Passage
from judgetree.modules.structure.triples import Triple, triple_graph

TRIPLES = {
    "film": [Triple("Casablanca", "was directed by", "Curtiz")],
    "man": [Triple("Curtiz", "was born in", "Budapest"), Triple("Curtiz", "died in", "Hollywood")],
    "city": [Triple("Budapest", "lies on", "the Danube")],
    "other": [Triple("Oslo", "lies in", "Norway")],
}
GRAPH = triple_graph([Passage(chunk_id=each, text="") for each in TRIPLES], "", TRIPLES, "")


def test_seeds_best_passages_and_what_joins_them_are_shown_with_their_relations() -> None:
    found = neighbourhood(PassageRanking(GRAPH), "Where was the director of Casablanca born?", {"film": 1.0})
    names = [place.name for place in found.places]
    assert names[:3] == ["film", "man", "city"]
    assert "oslo" not in names
    assert {place.name for place in found.places if place.seed} == {"film", "casablanca"}
    shown = {place.node: place.name for place in found.places}
    said = [(shown[b.source], b.relation, shown[b.target], b.passages) for b in found.bonds if b.relation]
    assert ("curtiz", "was born in", "budapest", ("man",)) in said
    assert found.left_out == 0


def test_what_is_shown_is_bounded_and_the_rest_counted() -> None:
    many = {f"p{n}": [Triple("hub", f"has {k}", f"thing {k} of {n}") for k in range(20)] for n in range(50)}
    graph = triple_graph([Passage(chunk_id=each, text="") for each in many], "", many, "")
    ranking = PassageRanking(graph)
    for most in (2, MOST_NODES):
        found = neighbourhood(ranking, "hub", {"p1": 1.0}, most_nodes=most)
        assert len(found.places) == most
        assert found.left_out == graph.nodes - most
        assert len(found.bonds) <= 300


@pytest.mark.parametrize("hits", [{}, {"gone": 1.0}])
def test_nothing_is_reached_from_nothing(hits: dict[str, float]) -> None:
    found = neighbourhood(PassageRanking(GRAPH), "nothing known", hits)
    assert (found.places, found.bonds, found.left_out) == ((), (), 0)
