"""Greedy selection of candidates that are relevant and belong together: objectives, and the greedy over them.

A new objective is a class with ``gain`` and ``add``, and a line in ``OBJECTIVES``.
"""

from __future__ import annotations

import heapq
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

Numbers = npt.NDArray[np.float64]

RELEVANCE, A = "relevance", "a"
"""Parameters of objectives."""
SELECTIONS: Mapping[str, Mapping[str, float]] = {
    "mmr": {RELEVANCE: 0.9},
    "facility_location": {RELEVANCE: 0.3},
    "log_det": {RELEVANCE: 0.5, A: 1.0},
}
"""Parameters of each selection with their defaults, which were chosen on 100 HotpotQA training questions."""
GAIN_DIGITS = 6
"""Gains are rounded: vectors in single precision, and another machine, would order equal ones by chance."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Candidates:
    """What is chosen from, best first: equal gains go to the earlier candidate."""

    relevance: Numbers
    """Shape (n,), each in [0, 1]."""
    similarity: Numbers
    """Shape (n, n): cosines, 1 on the diagonal."""

    def __len__(self) -> int:
        return len(self.relevance)


def candidates_of(scores: Sequence[float], vectors: Sequence[npt.ArrayLike | None]) -> Candidates:
    """Make candidates of retrieval scores and vectors of one length.

    The best score is the relevance 1, the lowest 0; all are 1 if they are equal. A candidate whose vector is missing,
    zero, or not finite is similar to itself alone.
    """
    return Candidates(relevance=_relevance(scores), similarity=_cosines(vectors))


def _relevance(scores: Sequence[float]) -> Numbers:
    halves = np.asarray(scores, dtype=np.float64) / 2  # whose differences are finite
    finite = np.isfinite(halves)
    low, high = (halves[finite].min(), halves[finite].max()) if finite.any() else (0.0, 0.0)
    relevance = np.zeros(len(halves))
    relevance[finite] = (halves[finite] - low) / (high - low) if high > low else 1.0
    return relevance


def _cosines(vectors: Sequence[npt.ArrayLike | None]) -> Numbers:
    given = {place: np.asarray(vector, dtype=np.float64) for place, vector in enumerate(vectors) if vector is not None}
    rows = np.zeros((len(vectors), max((vector.size for vector in given.values()), default=1)))
    for place, vector in given.items():
        rows[place] = vector
    rows[~np.isfinite(rows).all(axis=1)] = 0.0
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    rows /= np.where(lengths > 0, lengths, 1.0)
    cosines = np.clip(rows @ rows.T, -1.0, 1.0)
    np.fill_diagonal(cosines, 1.0)
    return cosines


class Objective(Protocol):
    """A function of sets of candidates, which grows its set one by one.

    The gain of a candidate never rises while the set grows, which the lazy greedy relies on.
    """

    def gain(self, candidate: int) -> float:
        """Return what a candidate outside the set adds to the value of the set."""
        ...

    def add(self, candidate: int) -> None:
        """Put a candidate into the set."""
        ...


class MaximalMarginalRelevance:
    """``relevance`` times relevance, less ``1 - relevance`` times the similarity to the most similar one of the set.

    A negative cosine counts as 0, as an empty set does. Source: Carbonell and Goldstein, The use of MMR (SIGIR 1998).
    """

    def __init__(self, candidates: Candidates, params: Mapping[str, float]) -> None:
        weight = params[RELEVANCE]
        self._relevance = weight * candidates.relevance
        self._similarity = (1 - weight) * np.maximum(candidates.similarity, 0.0)
        self._nearest = np.zeros(len(candidates))

    def gain(self, candidate: int) -> float:
        """Return the marginal relevance, in [``relevance`` - 1, ``relevance``]."""
        return float(self._relevance[candidate] - self._nearest[candidate])

    def add(self, candidate: int) -> None:
        """Put a candidate into the set."""
        np.maximum(self._nearest, self._similarity[candidate], out=self._nearest)


class FacilityLocation:
    """``relevance`` times the sum of relevance, plus ``1 - relevance`` times how well the set covers all candidates.

    Each candidate is covered as far as its nearest in the set is similar (a negative cosine counts as 0), and weighs as
    much as it is relevant; all covered is 1. Monotone and submodular.
    """

    def __init__(self, candidates: Candidates, params: Mapping[str, float]) -> None:
        weight, relevance = params[RELEVANCE], candidates.relevance
        total = float(relevance.sum())
        shares = relevance / total if total > 0 else np.full(len(candidates), 1 / max(len(candidates), 1))
        self._relevance = weight * relevance
        self._covers = (1 - weight) * shares * np.maximum(candidates.similarity, 0.0)
        self._covered = np.zeros(len(candidates))

    def gain(self, candidate: int) -> float:
        """Return the gain, from 0 up."""
        more = np.maximum(self._covers[candidate] - self._covered, 0.0)
        return float(self._relevance[candidate] + more.sum())

    def add(self, candidate: int) -> None:
        """Put a candidate into the set."""
        np.maximum(self._covered, self._covers[candidate], out=self._covered)


class LogDet:
    """``relevance`` times the sum of relevance, plus ``1 - relevance`` times log det(I + a K) / log(1 + a).

    K is the kernel of the set's cosines, each times the relevance of both. Monotone and submodular, since K has no
    negative eigenvalue; log det K alone is neither bounded below nor monotone. Gains come from a Cholesky decomposition
    that grows by a row a choice (Chen, Zhang and Zhou, Fast greedy MAP inference for DPP, NeurIPS 2018).
    """

    def __init__(self, candidates: Candidates, params: Mapping[str, float]) -> None:
        weight, a = params[RELEVANCE], params[A]
        quality = candidates.relevance
        self._relevance = weight * quality
        self._scale = (1 - weight) / math.log1p(a)
        self._kernel = a * quality[:, None] * candidates.similarity * quality[None, :]
        self._left = 1.0 + np.diagonal(self._kernel)
        self._rows: list[Numbers] = []

    def gain(self, candidate: int) -> float:
        """Return the gain, from 0 up."""
        # I + aK has no eigenvalue below 1, and so nothing left is below 1 but by rounding.
        return float(self._relevance[candidate]) + self._scale * math.log(max(float(self._left[candidate]), 1.0))

    def add(self, candidate: int) -> None:
        """Put a candidate into the set."""
        row = self._kernel[candidate].copy()
        for earlier in self._rows:
            row -= earlier[candidate] * earlier
        row /= math.sqrt(max(float(self._left[candidate]), 1.0))
        self._rows.append(row)
        self._left = self._left - row * row


OBJECTIVES: Mapping[str, Callable[[Candidates, Mapping[str, float]], Objective]] = {
    "mmr": MaximalMarginalRelevance,
    "facility_location": FacilityLocation,
    "log_det": LogDet,
}
"""Objectives by name."""


def greedy(objective: Objective, candidates: int, k: int) -> list[tuple[int, float]]:
    """Choose up to ``k`` of ``candidates``; returns (candidate, gain) in the order of choice, gains never rise.

    The value is at least 1 - 1/e of the best set's if the objective is monotone and submodular (Nemhauser, Wolsey and
    Fisher 1978). Gains are computed again only for who may be next (Minoux 1978): the choice is that of the plain
    greedy.
    """
    return list(_lazily(objective, [1.0] * candidates, math.inf, most=k))


def greedy_within(make: Callable[[], Objective], costs: Sequence[float], budget: float) -> list[int]:
    """Choose candidates whose ``costs`` add up to ``budget`` or less; returns them in the order of choice.

    A candidate that would lower the value, as it may under ``mmr``, is left out.

    Takes the better of two sets: the greedy by gain for each unit of cost, and the best single candidate that fits,
    with what the same greedy adds to it. The value is at least (1 - 1/e) / 2 of the best set's if the objective is
    monotone and submodular (Khuller, Moss and Naor 1999; Leskovec et al., KDD 2007).

    Args:
        make: Makes the objective with an empty set.
        costs: Of each candidate, above 0.
        budget: Most cost of all.

    Raises:
        ValueError: A cost is not above 0.
    """
    if any(not cost > 0 for cost in costs):
        raise ValueError(f"A cost is {min(costs)!r}; costs must be above 0.")
    scaled = list(_lazily(make(), costs, budget))
    empty = make()
    alone = {place: empty.gain(place) for place, cost in enumerate(costs) if cost <= budget}
    if not alone:
        return []
    best = max(alone, key=lambda place: (alone[place], -place))
    filled = list(_lazily(make(), costs, budget, first=[best]))
    by_value = max((scaled, filled), key=lambda chosen: math.fsum(gain for _, gain in chosen))
    return [place for place, _ in by_value]


def _lazily(
    objective: Objective, costs: Sequence[float], budget: float, *, most: float = math.inf, first: Sequence[int] = ()
) -> Iterator[tuple[int, float]]:
    """Yield (candidate, gain): those of ``first``, then by gain for each unit of cost what still fits.

    A gain that was computed for a smaller set is an upper bound, so that only the front of the queue is computed again.
    """
    left, size = budget - math.fsum(costs[place] for place in first), len(first)
    for place in first:
        yield place, _added(objective, place)
    queue = [(-math.inf, place, 0.0, -1) for place in range(len(costs)) if place not in first]
    while queue and size < most:
        _, place, gain, computed_at = heapq.heappop(queue)
        if costs[place] > left:
            continue
        if computed_at != size:
            gain = round(objective.gain(place), GAIN_DIGITS)
            if gain >= 0 or budget == math.inf:
                heapq.heappush(queue, (-gain / costs[place], place, gain, size))
            continue
        objective.add(place)
        left -= costs[place]
        size += 1
        yield place, gain


def _added(objective: Objective, place: int) -> float:
    gain = round(objective.gain(place), GAIN_DIGITS)
    objective.add(place)
    return gain
