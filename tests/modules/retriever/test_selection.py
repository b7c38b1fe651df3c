"""Selections against brute force: the bounds of the greedy, its laziness, and odd candidates."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgetree.modules.retriever.selection import (
    GAIN_DIGITS,
    OBJECTIVES,
    Candidates,
    Objective,
    candidates_of,
    greedy,
    greedy_within,
)

SUBMODULAR = ("facility_location", "log_det")
BOUND = 1 - 1 / math.e
CASES, SIZE, CHOSEN = 1000, 12, 4
SUBSETS = [*itertools.combinations(range(SIZE), CHOSEN)]

Make = Callable[[], Objective]


def random_candidates(rng: np.random.Generator, size: int = SIZE) -> Candidates:
    """Texts of a few topics, or of none; scores that fall fast or slowly, and some equal ones."""
    topics = rng.normal(size=(int(rng.integers(1, 6)), 8))
    vectors = topics[rng.integers(0, len(topics), size)] + rng.choice([0.05, 0.3, 1.0, 10.0]) * rng.normal(
        size=(size, 8)
    )
    scores = np.sort(rng.random(size) ** rng.choice([0.3, 1.0, 4.0]))[::-1].round(int(rng.integers(1, 4)))
    return candidates_of([*scores], [*vectors])


def random_params(rng: np.random.Generator) -> dict[str, float]:
    return {"relevance": float(rng.choice([0.0, 0.1, 0.3, 0.7])), "a": float(rng.choice([0.01, 1.0, 10.0, 1e4]))}


def values(name: str, candidates: Candidates, params: Mapping[str, float], sets: Sequence[Sequence[int]]) -> np.ndarray:
    """Compute the objective of each set from its definition, without what the greedy uses."""
    weight, relevance, cosines = params["relevance"], candidates.relevance, candidates.similarity
    chosen = np.array(sets)
    summed = weight * relevance[chosen].sum(axis=1)
    if name == "facility_location":
        shares = relevance / relevance.sum()
        covered = np.maximum(cosines[chosen], 0).max(axis=1) @ shares
        return summed + (1 - weight) * covered
    kernel = relevance[:, None] * cosines * relevance[None, :]
    minors = kernel[chosen[:, :, None], chosen[:, None, :]]
    determinants = np.linalg.slogdet(np.eye(chosen.shape[1]) + params["a"] * minors)[1]
    return summed + (1 - weight) * determinants / math.log1p(params["a"])


@pytest.mark.parametrize("name", SUBMODULAR)
def test_the_greedy_is_near_the_best_of_all_sets(name: str) -> None:
    """(1 - 1/e) by Nemhauser et al. (1978), 12 choose 4; far better on average."""
    rng = np.random.default_rng(15)
    ratios = []
    for _ in range(CASES):
        candidates, params = random_candidates(rng), random_params(rng)
        found = greedy(OBJECTIVES[name](candidates, params), SIZE, CHOSEN)
        (value,) = values(name, candidates, params, [[place for place, _ in found]])
        assert value == pytest.approx(math.fsum(gain for _, gain in found), abs=1e-5)
        ratios.append(value / values(name, candidates, params, SUBSETS).max())
    assert min(ratios) >= BOUND
    assert max(ratios) <= 1 + 1e-9
    assert np.mean(ratios) >= 0.95
    assert min(ratios) < 1 - 1e-6  # or the cases were too easy to tell the greedy from the best


@pytest.mark.parametrize("name", SUBMODULAR)
def test_within_a_budget_it_keeps_half_of_that_bound(name: str) -> None:
    """(1 - 1/e) / 2 by Khuller et al. (1999), any number of 8 whose costs fit."""
    rng, size = np.random.default_rng(16), 8
    sets = [each for k in range(1, size + 1) for each in itertools.combinations(range(size), k)]
    ratios = []
    for _ in range(CASES):
        candidates, params = random_candidates(rng, size), random_params(rng)
        costs = np.ceil(rng.random(size) ** rng.choice([1.0, 6.0]) * 100)
        budget = float(rng.integers(int(costs.min()), 200))
        chosen = greedy_within(partial(OBJECTIVES[name], candidates, params), [*costs], budget)
        assert costs[chosen].sum() <= budget
        assert len(set(chosen)) == len(chosen)
        by_size: dict[int, list[tuple[int, ...]]] = {}
        for each in sets:
            if costs[[*each]].sum() <= budget:
                by_size.setdefault(len(each), []).append(each)
        best = max(values(name, candidates, params, fitting).max() for fitting in by_size.values())
        (value,) = values(name, candidates, params, [chosen])
        if best > 0:
            ratios.append(value / best)
    assert min(ratios) >= BOUND / 2
    assert max(ratios) <= 1 + 1e-9
    assert np.mean(ratios) >= 0.95


def test_a_large_good_candidate_beats_small_ones_with_more_gain_for_their_cost() -> None:
    """Where the greedy by gain for each unit of cost alone is as bad as wanted."""
    candidates = candidates_of([1.0, 0.02, 0.0], [[1, 0, 0], [0, 1, 0], [0, 0, 1]])
    make = partial(OBJECTIVES["facility_location"], candidates, {"relevance": 1.0})
    assert greedy_within(make, [100.0, 1.0, 50.0], 100.0) == [0]
    assert greedy_within(make, [100.0, 1.0, 50.0], 101.0) == [1, 0]


def test_a_budget_is_not_spent_on_what_lowers_the_value() -> None:
    """The copy costs more similarity than it has relevance."""
    candidates = candidates_of([1.0, 0.5, 0.2, 0.0], [[1, 0], [0, 1], [1, 0], [-1, -1]])
    make = partial(OBJECTIVES["mmr"], candidates, {"relevance": 0.5})
    assert greedy_within(make, [1.0, 1.0, 1.0, 9.0], 5.0) == [0, 1]
    assert [place for place, _ in greedy(make(), 4, 4)] == [0, 1, 3, 2]


def test_what_the_best_single_candidate_leaves_of_the_budget_is_used() -> None:
    candidates = candidates_of([1.0, 0.06, 0.05, 0.0], [*np.eye(4)])
    make = partial(OBJECTIVES["facility_location"], candidates, {"relevance": 1.0})
    assert greedy_within(make, [90.0, 4.0, 20.0, 200.0], 93.0) == [0]
    assert greedy_within(make, [90.0, 4.0, 3.0, 200.0], 93.0) == [0, 2]


@pytest.mark.parametrize("name", OBJECTIVES)
def test_the_lazy_greedy_chooses_what_the_plain_one_does(name: str) -> None:
    """The earliest of equal gains; copies of candidates, and texts without a vector, make ties."""
    rng = np.random.default_rng(17)
    for _ in range(200):
        vectors: list[np.ndarray | None] = [*rng.normal(size=(6, 3))]
        vectors = [vectors[place] for place in rng.integers(0, 6, 14)]
        vectors[3] = vectors[9] = None
        candidates = candidates_of([*rng.integers(0, 4, 14) / 3], vectors)
        params, plain = random_params(rng), []
        objective = OBJECTIVES[name](candidates, params)
        while len(plain) < 9:
            rest = [place for place in range(14) if place not in {chosen for chosen, _ in plain}]
            best = max(rest, key=lambda place: (round(objective.gain(place), GAIN_DIGITS), -place))
            plain.append((best, round(objective.gain(best), GAIN_DIGITS)))
            objective.add(best)
        assert greedy(OBJECTIVES[name](candidates, params), 14, 9) == plain


@pytest.mark.parametrize("name", OBJECTIVES)
def test_gains_are_computed_again_for_few(name: str) -> None:
    candidates = random_candidates(np.random.default_rng(18), 60)
    computed = 0

    class Counting:
        def __init__(self) -> None:
            self._inner = OBJECTIVES[name](candidates, {"relevance": 0.5, "a": 1.0})

        def gain(self, candidate: int) -> float:
            nonlocal computed
            computed += 1
            return self._inner.gain(candidate)

        def add(self, candidate: int) -> None:
            self._inner.add(candidate)

    assert len(greedy(Counting(), 60, 10)) == 10
    assert computed < 60 * 10 / 2


numbers = st.floats(-1e3, 1e3, allow_nan=False)
vectors = st.one_of(st.none(), st.lists(numbers, min_size=3, max_size=3), st.just([math.nan, 0, 0]), st.just([0, 0, 0]))


@pytest.mark.parametrize("name", OBJECTIVES)
@given(
    found=st.lists(st.tuples(st.floats(allow_nan=True, allow_infinity=True), vectors), max_size=9),
    k=st.integers(0, 12),
    relevance=st.floats(0, 1),
    a=st.floats(1e-6, 1e6),
)
def test_odd_candidates_are_chosen_once_each_with_falling_gains(
    name: str, found: list[tuple[float, list[float] | None]], k: int, relevance: float, a: float
) -> None:
    candidates = candidates_of([score for score, _ in found], [vector for _, vector in found])
    chosen = greedy(OBJECTIVES[name](candidates, {"relevance": relevance, "a": a}), len(found), k)
    assert len({place for place, _ in chosen}) == len(chosen) == min(k, len(found))
    gains = [gain for _, gain in chosen]
    assert all(math.isfinite(gain) and type(gain) is float for gain in gains)
    assert gains == sorted(gains, reverse=True)


@pytest.mark.parametrize("name", OBJECTIVES)
def test_fewer_chosen_are_the_first_of_more(name: str) -> None:
    candidates = random_candidates(np.random.default_rng(19), 30)
    params = {"relevance": 0.4, "a": 2.0}
    chosen = [greedy(OBJECTIVES[name](candidates, params), 30, k) for k in range(31)]
    assert all(chosen[k] == chosen[30][:k] for k in range(31))


@pytest.mark.parametrize("name", OBJECTIVES)
def test_relevance_alone_keeps_the_order(name: str) -> None:
    candidates = candidates_of([3.0, 2.0, 2.0, 1.0, 0.0], [[1, 0]] * 5)
    chosen = greedy(OBJECTIVES[name](candidates, {"relevance": 1.0, "a": 1.0}), 5, 5)
    assert chosen == [
        (0, 1.0),
        (1, pytest.approx(2 / 3)),
        (2, pytest.approx(2 / 3)),
        (3, pytest.approx(1 / 3)),
        (4, 0.0),
    ]


@pytest.mark.parametrize("name", OBJECTIVES)
def test_a_copy_of_the_best_gives_way_to_something_else(name: str) -> None:
    candidates = candidates_of([1.0, 0.99, 0.9, 0.0], [[1, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]])
    chosen = greedy(OBJECTIVES[name](candidates, {"relevance": 0.5, "a": 1.0}), 4, 2)
    assert [place for place, _ in chosen] == [0, 2]


def test_gains_worked_out_by_hand() -> None:
    """Cosines 0.6 between the first and the second, 0.8 between the second and the third; relevance 1, 0.5, 0."""
    candidates = candidates_of([30.0, 20.0, 10.0], [[1, 0], [0.6, 0.8], [0, 1]])
    assert candidates.similarity == pytest.approx(np.array([[1, 0.6, 0], [0.6, 1, 0.8], [0, 0.8, 1]]))
    params = {"relevance": 0.5, "a": 1.0}

    def gains(name: str) -> list[tuple[int, float]]:
        return greedy(OBJECTIVES[name](candidates, params), 3, 3)

    assert gains("mmr") == [(0, 0.5), (2, 0.0), (1, pytest.approx(0.25 - 0.4))]
    # Shares 2/3 and 1/3: the first covers 2/3 + 0.6/3, the second then 0.4/3 more; half of these counts.
    assert gains("facility_location") == [
        (0, 0.933333),
        (1, 0.316667),
        (2, 0.0),
    ]
    # det [[2, 0.3], [0.3, 1.25]] = 2.41, and what has no relevance adds nothing.
    assert gains("log_det") == [
        (0, 1.0),
        (1, round(0.25 + 0.5 * math.log2(2.41 / 2), 6)),
        (2, 0.0),
    ]


@pytest.mark.parametrize(
    ("scores", "relevance"),
    [
        ([5.0, 5.0], [1, 1]),
        ([3.0, 2.0, -1.0], [1, 0.75, 0]),
        ([1.7e308, 0.0, -1.7e308], [1, 0.5, 0]),
        ([5e-324, 0.0], [1, 1]),
        ([math.inf, 2.0, 1.0, math.nan], [0, 1, 0, 0]),
        ([math.nan], [0]),
        ([], []),
    ],
)
def test_scores_become_relevance(scores: list[float], relevance: list[float]) -> None:
    assert candidates_of(scores, [None] * len(scores)).relevance == pytest.approx(np.array(relevance))


def test_a_cost_of_nothing_is_refused() -> None:
    make = partial(OBJECTIVES["log_det"], candidates_of([1.0], [[1.0]]), {"relevance": 0.5, "a": 1.0})
    with pytest.raises(ValueError, match=r"A cost is 0\.0; costs must be above 0"):
        greedy_within(make, [0.0], 1.0)
    assert greedy_within(make, [2.0], 1.0) == []
