"""Personalised PageRank over a graph of passages and phrases: passages that many short ways lead to from the seeds.

Sources: Haveliwala, Topic-sensitive PageRank (WWW 2002); Gutiérrez et al., HippoRAG (NeurIPS 2024), whose triples of a
model are left out here.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..errors import needs_extra
from .passage_graph import PassageGraph
from .phrases import joined
from .titles import MOST_WORDS, words_of

if TYPE_CHECKING:
    from scipy.sparse import csr_array

Scores = npt.NDArray[np.float64]

TOLERANCE = 1e-6
"""The walk ends once a step changes all scores together by less; they add up to 1."""
MOST_STEPS = 100


@dataclass(frozen=True, kw_only=True)
class Walk:
    """How a random walk from the seeds goes."""

    damping: float = 0.5
    """Probability of a further step; else the walk begins again at a seed. In [0, 1)."""
    hub_weight: float = 1.0
    """Power of the inverse document frequency of a phrase by which its edges are weighted; 0 weights hubs as others."""
    phrase_share: float = 0.5
    """Share of the walks that begin at a phrase of the query, if it names one; in [0, 1]."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Steps:
    """The probabilities of the steps of a walk."""

    matrix: csr_array
    """By (target, source), float64; columns add up to 1, or to 0 for a node without edges."""
    dead_ends: npt.NDArray[np.int64]
    """Nodes without edges, at which the walk begins again."""

    @classmethod
    def of(cls, weights: csr_array) -> Steps:
        """Scale the columns of weights of 0 or more by (target, source)."""
        with needs_extra("graph", what="The PageRank of a graph"):
            from scipy.sparse import dia_array  # noqa: PLC0415 - of an extra
        total = np.asarray(weights.sum(axis=0)).ravel()
        scale = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
        scaled = weights @ dia_array((scale[None, :], [0]), shape=weights.shape)
        return cls(matrix=scaled.tocsr(), dead_ends=np.flatnonzero(total <= 0))


def steps_of(graph: PassageGraph, hub_weight: float = 1.0) -> Steps:
    """Return the steps of a walk in both directions of each edge.

    An edge of weight w has log(1 + w), and for each phrase at its ends the inverse document frequency
    log(1 + passages / passages with it), to the power of ``hub_weight``, as a factor.

    Raises:
        DependencyError: scipy is not installed.
    """
    with needs_extra("graph", what="The PageRank of a graph"):
        from scipy.sparse import coo_array  # noqa: PLC0415 - of an extra
    sources = np.concatenate([each.sources for each in graph.edges.values()] or [np.empty(0, np.int32)])
    targets = np.concatenate([each.targets for each in graph.edges.values()] or [np.empty(0, np.int32)])
    weights = np.concatenate([each.weights for each in graph.edges.values()] or [np.empty(0, np.float32)])
    factors = inverse_frequencies(graph) ** hub_weight
    weights = np.log1p(weights.astype(np.float64)) * factors[sources] * factors[targets]
    shape = (graph.nodes, graph.nodes)
    one_way = coo_array((weights, (targets, sources)), shape=shape).tocsr()
    return Steps.of((one_way + one_way.T).tocsr())


def inverse_frequencies(graph: PassageGraph) -> Scores:
    """Return log(1 + passages / passages that have an edge with it) of each phrase, and 1 for each passage."""
    passages = len(graph.passages)
    ends = [
        pair for each in graph.edges.values() for pair in ((each.sources, each.targets), (each.targets, each.sources))
    ]
    pairs = [np.empty(0, np.int64)]
    for near, far in ends:
        inside = (near < passages) & (far >= passages)
        pairs.append(near[inside].astype(np.int64) * graph.nodes + far[inside])
    # A passage that names a phrase in several edges, such as those of two triples, has it once.
    counts = np.bincount(np.unique(np.concatenate(pairs)) % max(graph.nodes, 1), minlength=graph.nodes)
    found = np.log1p(passages / np.maximum(counts, 1.0))
    found[:passages] = 1.0
    return found


def personalised_pagerank(
    steps: Steps, seeds: Scores, *, damping: float, tolerance: float = TOLERANCE, most_steps: int = MOST_STEPS
) -> Scores:
    """Return the probability of each node that the walk is there: the PageRank of a graph, shape (nodes,), sum 1.

    Args:
        steps: As ``steps_of`` returns them.
        seeds: Weight of each node as a beginning, 0 or more; all 0 gives all 0.
        damping: Probability of a further step.
        tolerance: Largest sum of the changes of the last step.
        most_steps: Bound of the number of steps.
    """
    total = float(seeds.sum())
    if total <= 0:
        return np.zeros_like(seeds, dtype=np.float64)
    beginning = seeds / total
    scores = beginning
    for _ in range(most_steps):
        again = 1.0 - damping + damping * float(scores[steps.dead_ends].sum())
        former, scores = scores, damping * (steps.matrix @ scores) + again * beginning
        if float(np.abs(scores - former).sum()) < tolerance:
            break
    return scores


class PassageRanking:
    """Ranks the passages of any graph that has phrases by personalised PageRank.

    ::

        ranking = PassageRanking(graph)
        best = ranking.ranked(ranking.seeds("Who directed Casablanca?", {"chunk1": 1.0}), limit=20)
    """

    def __init__(self, graph: PassageGraph, walk: Walk | None = None) -> None:
        """Read the graph once (100,000 passages: about a second); searches in any number of threads share it.

        Raises:
            DependencyError: scipy is not installed.
        """
        self.graph = graph
        self.walk = walk or Walk()
        self._steps = steps_of(graph, self.walk.hub_weight)
        self._frequencies = inverse_frequencies(graph)
        self._phrases = {phrase: node for node, phrase in enumerate(graph.phrases, start=len(graph.passages))}

    def phrases_in(self, query: str) -> list[int]:
        """Return the nodes of the phrases that a query names, the longest first at each word; none lies in another.

        A phrase of one word counts in any letter case.
        """
        words = [word.casefold() for word in words_of(query)]
        found, at = [], 0
        while at < len(words):
            for length in range(min(MOST_WORDS, len(words) - at), 0, -1):
                node = self._phrases.get(joined(words[at : at + length]))
                if node is not None:
                    found.append(node)
                    break
            else:
                length = 1
            at += length
        return list(dict.fromkeys(found))

    def seeds(self, query: str, passages: Mapping[str, float]) -> Scores:
        """Return the weight of each node as a beginning, shape (nodes,), sum 1; all 0 if the graph has none.

        ``passages`` weighs chunk ids, above 0. Phrases of the query share ``phrase_share`` by their inverse document
        frequencies; without either, the other has all.
        """
        seeds = np.zeros(self.graph.nodes)
        nodes = {self.graph.passage(chunk_id): weight for chunk_id, weight in passages.items()}
        known = {node: weight for node, weight in nodes.items() if node is not None}
        phrases = self.phrases_in(query)
        share = self.walk.phrase_share if known else 1.0
        share = share if phrases else 0.0
        for node, weight in known.items():
            seeds[node] = (1.0 - share) * weight / sum(known.values())
        if phrases:
            seeds[phrases] = share * self._frequencies[phrases] / self._frequencies[phrases].sum()
        return seeds

    def scores(self, seeds: Scores) -> Scores:
        """Return the PageRank of each node, shape (nodes,), for the weights of the beginnings."""
        return personalised_pagerank(self._steps, seeds, damping=self.walk.damping)

    def ranked(self, seeds: Scores, limit: int) -> list[tuple[str, float]]:
        """Return at most ``limit`` chunk ids that the walk reaches, with their PageRank; best first, ties by id."""
        scores = self.scores(seeds)[: len(self.graph.passages)]
        reached = np.flatnonzero(scores)
        if reached.size > limit:
            least = np.partition(scores[reached], reached.size - limit)[reached.size - limit]
            reached = reached[scores[reached] >= least]
        best = sorted(((self.graph.passages[node], float(scores[node])) for node in reached.tolist()), key=_best_first)
        return best[:limit]


def _best_first(hit: tuple[str, float]) -> tuple[float, str]:
    return -hit[1], hit[0]
