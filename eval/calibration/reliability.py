"""How often a judge's P(needed) is right: bins, and the expected calibration error."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

BINS = 10

_Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class ReliabilityBin:
    """The chunks with P(needed) in [low, high); the last bin includes ``high``."""

    low: float
    high: float
    chunks: int
    predicted: float
    """Mean P(needed)."""
    observed: float
    """Share of gold chunks."""
    share: float
    """Share of all chunks, by their weights."""


def reliability_bins(
    predicted: _Floats | Sequence[float], is_gold: _Floats | Sequence[float], weights: _Floats | None = None
) -> tuple[ReliabilityBin, ...]:
    """Return the bins with chunks in them, ascending; ``weights`` count in means and shares, and not in ``chunks``."""
    rating, truth = np.asarray(predicted, dtype=np.float64), np.asarray(is_gold, dtype=np.float64)
    weight = np.ones_like(rating) if weights is None else weights
    of = np.minimum((rating * BINS).astype(np.int64), BINS - 1)
    chunks = np.bincount(of, minlength=BINS)
    mass, ratings, golds = (np.bincount(of, each, minlength=BINS) for each in (weight, weight * rating, weight * truth))
    return tuple(
        ReliabilityBin(
            low=place / BINS,
            high=(place + 1) / BINS,
            chunks=int(chunks[place]),
            predicted=float(ratings[place] / mass[place]),
            observed=float(golds[place] / mass[place]),
            share=float(mass[place] / mass.sum()),
        )
        for place in np.flatnonzero(chunks).tolist()
    )


def calibration_error(bins: Sequence[ReliabilityBin]) -> float:
    """Compute the expected calibration error, the mean of abs(predicted - observed) by share; NaN without bins."""
    return sum(each.share * abs(each.predicted - each.observed) for each in bins) if bins else float("nan")
