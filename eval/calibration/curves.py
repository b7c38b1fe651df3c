"""Calibration of P(needed): isotonic regression from 200 judgements on, else Platt's sigmoid. Needs scipy.

The curve is fitted for the share of gold that a search finds: judgements are weighted so that gold passages have that
share, since the cases that are judged hold more of them than the hits of a query.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import isotonic_regression, minimize

from ...modules.judge.fits import Curve, logit
from .fit import FOLDS, RatedCase
from .reliability import ReliabilityBin, calibration_error, reliability_bins

MIN_ISOTONIC = 200
"""Fewest judgements for isotonic regression, which overfits fewer."""

_Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class CurveFit:
    """A curve, and what it does to judgements that it was not fitted on, in five folds of the questions."""

    curve: Curve
    before: tuple[ReliabilityBin, ...]
    after: tuple[ReliabilityBin, ...]
    error_before: float
    """Expected calibration error, in [0, 1]."""
    error_after: float


def curve_fit(cases: Sequence[RatedCase], *, base_rate: float | None) -> CurveFit | None:
    """Fit the curve of a judge; None where some fold has judgements of one kind only.

    Args:
        cases: Questions with the ratings of their passages; unknown ratings are left out.
        base_rate: Share of gold among the passages that the judge will see, in (0, 1); None where the passages weigh as
            many as they stand for.
    """
    judged = [_judgements(case) for case in cases]
    folds = _folds(len(cases))
    places = range(len(cases))
    curves = [fit_curve(_joined(judged, [at for at in places if at not in held]), base_rate) for held in folds]
    whole = fit_curve(_joined(judged, places), base_rate)
    if whole is None or any(curve is None for curve in curves):
        return None
    rows, mapped = [], []
    for curve, held in zip(curves, folds, strict=True):
        assert curve is not None
        rows.append(_joined(judged, sorted(held)))
        mapped += [curve(rating) for rating in rows[-1][:, 0].tolist()]
    every = np.concatenate(rows)
    weights = _weights(every, base_rate)
    before, after = (reliability_bins(each, every[:, 1], weights) for each in (every[:, 0], mapped))
    return CurveFit(
        curve=whole,
        before=before,
        after=after,
        error_before=calibration_error(before),
        error_after=calibration_error(after),
    )


def fit_curve(judgements: _Floats, base_rate: float | None) -> Curve | None:
    """Fit one curve to rows of (rating, 1 for gold or 0, weight); None without both kinds."""
    rating, is_gold = judgements[:, 0], judgements[:, 1]
    if not 0 < is_gold.sum() < len(is_gold):
        return None
    weights = _weights(judgements, base_rate)
    return (_isotonic if len(rating) >= MIN_ISOTONIC else _platt)(rating, is_gold, weights)


def _isotonic(rating: _Floats, is_gold: _Floats, weights: _Floats) -> Curve:
    """Fit by pool-adjacent-violators, a point in the middle of each block.

    Blocks are kept away from 0 and 1 as if one more judgement of the other kind were in each (Laplace).
    """
    ratings, place = np.unique(rating, return_inverse=True)
    mass, golds = (np.bincount(place, each) for each in (weights, weights * is_gold))
    levels = isotonic_regression(golds / mass, weights=mass).x
    starts = np.flatnonzero(np.diff(levels, prepend=-1.0) > 1e-12)
    points = []
    for block in np.split(np.arange(len(levels)), starts[1:]):
        total = mass[block].sum()
        level = np.clip(float(levels[block[0]]), 1 / (total + 2), 1 - 1 / (total + 2))
        points.append((float((mass[block] * ratings[block]).sum() / total), float(level)))
    rising = np.maximum.accumulate([level for _, level in points]).tolist()  # small blocks are moved further
    return Curve(method="isotonic", points=tuple((x, y) for (x, _), y in zip(points, rising, strict=True)))


def _platt(rating: _Floats, is_gold: _Floats, weights: _Floats) -> Curve:
    """Fit slope and offset on the log odds, with the targets of Platt (1999)."""
    odds = np.array([logit(each) for each in rating.tolist()])
    golds, others = weights[is_gold > 0].sum(), weights[is_gold == 0].sum()
    target = np.where(is_gold > 0, (golds + 1) / (golds + 2), 1 / (others + 2))

    def loss(at: _Floats) -> float:
        z = at[0] * odds + at[1]
        return float((weights * (np.logaddexp(0.0, z) - target * z)).sum())

    found = minimize(loss, np.array([1.0, 0.0]), method="L-BFGS-B", bounds=[(0.0, None), (None, None)])
    return Curve(method="platt", slope=float(found.x[0]), offset=float(found.x[1]))


def _weights(judgements: _Floats, base_rate: float | None) -> _Floats:
    """Return weights that add up to the number of judgements; gold has the share ``base_rate`` of them, if given."""
    is_gold: _Floats = judgements[:, 1]
    weights: _Floats = judgements[:, 2]
    share = float(weights[is_gold > 0].sum() / weights.sum())
    if base_rate is not None and 0.0 < share < 1.0:
        weights = weights * np.where(is_gold > 0, base_rate / share, (1.0 - base_rate) / (1.0 - share))
    scaled: _Floats = weights * (len(weights) / weights.sum())
    return scaled


def _judgements(case: RatedCase) -> list[tuple[float, float, float]]:
    sides = ((case.gold, 1.0), (case.others, 0.0))
    return [(each.needed, truth, each.weight) for side, truth in sides for each in side if each.needed is not None]


def _joined(judged: Sequence[Sequence[tuple[float, float, float]]], places: Sequence[int] | range) -> _Floats:
    return np.array([row for at in places for row in judged[at]], dtype=np.float64).reshape(-1, 3)


def _folds(questions: int) -> list[set[int]]:
    order = np.random.default_rng(0).permutation(questions).tolist()
    return [set(order[fold::FOLDS]) for fold in range(min(FOLDS, questions))]
