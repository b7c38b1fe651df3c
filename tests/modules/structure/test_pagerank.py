"""Personalised PageRank: that of networkx, and what it makes of seeds and phrases."""

from __future__ import annotations

from dataclasses import replace

import networkx as nx
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from judgetree.modules.structure.pagerank import (
    PassageRanking,
    Steps,
    Walk,
    inverse_frequencies,
    personalised_pagerank,
    steps_of,
)
from judgetree.modules.structure.passage_graph import Edges, PassageGraph


def graph() -> PassageGraph:
    """Nodes: p1 to p4, then anna, born in oslo, oslo."""
    mentions = Edges.of([(0, 4, 1.0), (1, 4, 2.0), (1, 6, 1.0), (2, 6, 1.0)])
    triples = Edges.labelled([(4, 6, 0, 1.0)])
    return PassageGraph(
        kind="triples",
        content="",
        passages=["p1", "p2", "p3", "p4"],
        phrases=["anna", "born in oslo", "oslo"],
        relations=["born in"],
        edges={"mentions": mentions, "triples": triples},
    )


@given(
    size=st.integers(1, 7),
    damping=st.floats(0.0, 0.95),
    data=st.data(),
)
def test_the_pagerank_is_that_of_networkx(size: int, damping: float, data: st.DataObject) -> None:
    row = st.lists(st.sampled_from([0.0, 0.0, 0.5, 1.0, 3.0]), min_size=size, max_size=size)
    weights = np.array(data.draw(st.lists(row, min_size=size, max_size=size)))
    seeds = np.array(data.draw(row.filter(any)))
    walked = personalised_pagerank(
        Steps.of(csr_array(weights.T)), seeds, damping=damping, tolerance=1e-12, most_steps=2000
    )
    expected = nx.pagerank(
        nx.from_numpy_array(weights, create_using=nx.DiGraph),
        alpha=damping,
        personalization=dict(enumerate(seeds.tolist())),
        tol=1e-12,
        max_iter=2000,
    )
    assert walked == pytest.approx([expected[node] for node in range(size)], abs=1e-9)


def test_a_rarer_phrase_takes_more_of_the_walk_and_edges_go_both_ways() -> None:
    steps = steps_of(graph()).matrix.toarray()
    assert steps.sum(axis=0).tolist() == pytest.approx([1, 1, 1, 0, 1, 0, 1])
    assert ((steps > 0) == (steps > 0).T).all()
    star = PassageGraph(
        kind="entities",
        content="",
        passages=["p1", "p2", "p3"],
        phrases=["rare", "hub"],
        edges={"mentions": Edges.of([(0, 3, 1.0), (0, 4, 1.0), (1, 4, 1.0), (2, 4, 1.0)])},
    )
    from_first = {weight: steps_of(star, weight).matrix.toarray()[3:, 0] for weight in (0.0, 1.0, 2.0)}
    assert from_first[0.0].tolist() == [0.5, 0.5]
    assert 0.5 < from_first[1.0][0] < from_first[2.0][0]


def test_a_phrase_is_as_frequent_as_its_passages_are_many_however_many_edges_they_have() -> None:
    once = graph()
    twice = replace(once, edges={**once.edges, "object": Edges.labelled([(1, 4, 0, 1.0), (1, 4, 1, 1.0)])})
    assert inverse_frequencies(once).tolist() == pytest.approx([1, 1, 1, 1, np.log(3), np.log(5), np.log(3)])
    assert inverse_frequencies(twice).tolist() == inverse_frequencies(once).tolist()


def test_passages_are_ranked_from_the_seeds_through_phrases_and_relations() -> None:
    ranking = PassageRanking(graph())
    ranked = ranking.ranked(ranking.seeds("", {"p1": 1.0, "gone": 5.0}), limit=9)
    assert [chunk_id for chunk_id, _ in ranked] == ["p1", "p2", "p3"]
    assert ranking.ranked(ranking.seeds("", {"p4": 1.0}), limit=9) == [("p4", 1.0)]
    assert ranking.ranked(ranking.seeds("Was Anna there?", {}), limit=1)[0][0] == "p2"
    assert ranking.ranked(ranking.seeds("", {}), limit=9) == []


def test_phrases_of_a_query_are_found_longest_first() -> None:
    ranking = PassageRanking(graph())
    found = [ranking.graph.name_of(node) for node in ranking.phrases_in("ANNA: born in Oslo, or Oslo, Anna?")]
    assert found == ["anna", "born in oslo", "oslo"]
    seeds = ranking.seeds("anna", {"p1": 3.0, "p4": 1.0})
    assert seeds.sum() == pytest.approx(1)
    assert seeds[4] == pytest.approx(Walk().phrase_share)
    assert seeds[0] == pytest.approx(3 * seeds[3])


@pytest.mark.parametrize("passages", [[], ["p1"]])
def test_a_graph_without_phrases_ranks_its_seeds(passages: list[str]) -> None:
    ranking = PassageRanking(PassageGraph(kind="entities", content="", passages=passages, phrases=[], edges={}))
    assert ranking.ranked(ranking.seeds("Anna", dict.fromkeys(passages, 1.0)), limit=3) == [(p, 1.0) for p in passages]


def test_equal_scores_come_by_chunk_id_also_at_the_limit() -> None:
    edges = {"mentions": Edges.of([(node, 4, 1.0) for node in range(4)])}
    whole = PassageGraph(kind="entities", content="", passages=["b", "d", "a", "c"], phrases=["x"], edges=edges)
    ranking = PassageRanking(whole)
    assert [chunk_id for chunk_id, _ in ranking.ranked(ranking.seeds("x", {}), limit=2)] == ["a", "b"]
