"""Logistic regression of gold on the features of the judge ``fused``. Needs scipy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import minimize

from ...modules.judge.fused import BIAS, FEATURES, weighed
from .data import ScoredCase
from .fit import FOLDS, RatedCase, RatedPassage
from .rating import rated_case

_PENALTY = 1.0
"""Of the squared weights of features of variance 1; that of scikit-learn's default."""

_Floats = NDArray[np.float64]
Features = Sequence[Mapping[str, float]]
"""Of the passages of a case, gold ones first."""


def fit_weights(cases: Sequence[ScoredCase], features: Sequence[Features]) -> dict[str, float]:
    """Return the weight of each feature, and the bias, for features as they are."""
    rows = np.array([[each[name] for name in FEATURES] for case in features for each in case], dtype=np.float64)
    is_gold = np.array(
        [at < len(case.gold) for case, own in zip(cases, features, strict=True) for at in range(len(own))]
    )
    weights, bias = logistic_weights(rows, is_gold)
    return {**{name: float(weight) for name, weight in zip(FEATURES, weights, strict=True)}, BIAS: bias}


def logistic_weights(rows: _Floats, is_gold: NDArray[np.bool_]) -> tuple[_Floats, float]:
    """Return the weight of each column and the bias, for columns as they are."""
    centre, spread = rows.mean(axis=0), rows.std(axis=0)
    spread[spread < 1e-9] = 1.0
    scaled = (rows - centre) / spread

    def loss(at: _Floats) -> tuple[float, _Floats]:
        odds = scaled @ at[1:] + at[0]
        error = 1.0 / (1.0 + np.exp(-odds)) - is_gold
        value = float((np.logaddexp(0.0, odds) - is_gold * odds).sum() + _PENALTY / 2 * (at[1:] ** 2).sum())
        return value, np.concatenate([[error.sum()], scaled.T @ error + _PENALTY * at[1:]])

    found = minimize(loss, np.zeros(rows.shape[1] + 1), jac=True, method="L-BFGS-B").x
    weights = found[1:] / spread
    return weights, float(found[0] - (weights * centre).sum())


def held_out(cases: Sequence[ScoredCase], features: Sequence[Features]) -> list[RatedCase]:
    """Rate each case by weights that were fitted without it, in five folds."""
    order = np.random.default_rng(0).permutation(len(cases)).tolist()
    rated: dict[int, RatedCase] = {}
    for fold in range(min(FOLDS, len(cases))):
        held = set(order[fold::FOLDS])
        rest = [at for at in range(len(cases)) if at not in held]
        weights = fit_weights([cases[at] for at in rest], [features[at] for at in rest])
        for at in held:
            ratings = [RatedPassage(needed=weighed(each, weights)) for each in features[at]]
            rated[at] = rated_case(cases[at], ratings)
    return [rated[at] for at in range(len(cases))]
