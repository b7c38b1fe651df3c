"""Intervals and paired tests of many columns of scores over the same questions, with draws that all columns share.

The methods are those of ``intervals`` and ``statistics``, whose functions draw anew for each column: 160 columns of 500
questions take seconds here and minutes there. Needs scipy (extra ``eval``).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .intervals import ALPHA, RESAMPLES, batch_of
from .statistics import sign_flip_p_value

_Floats = NDArray[np.float64]
_EXACT_BELOW = int(np.log2(RESAMPLES)) + 1
_ROUNDING = 1e-9
"""Sums that differ by less are equal."""


@dataclass(frozen=True, kw_only=True)
class Means:
    """Means of the columns with 95 % intervals, each of shape (columns,)."""

    mean: _Floats
    low: _Floats
    high: _Floats
    """NaN, as ``low``, for a single question."""


def means_of(scores: _Floats) -> Means:
    """Compute the means of columns with the percentile bootstrap over questions; ``scores[i, c]`` is of question i."""
    questions, _ = scores.shape
    means: _Floats = scores.mean(axis=0)
    if questions == 1:
        nothing = np.full_like(means, np.nan)
        return Means(mean=means, low=nothing, high=nothing)
    rng = np.random.default_rng(0)
    drawn = []
    for size in _batches(questions):
        places = rng.integers(questions, size=(size, questions)) + questions * np.arange(size)[:, None]
        counts = np.bincount(places.ravel(), minlength=size * questions).reshape(size, questions)
        drawn.append(counts.astype(np.float64) @ scores / questions)
    low, high = np.quantile(np.concatenate(drawn), [ALPHA / 2, 1 - ALPHA / 2], axis=0)
    return Means(mean=means, low=np.minimum(low, means), high=np.maximum(high, means))


def sign_flip_p_values(differences: _Floats) -> _Floats:
    """Compute the two-sided p value of the paired permutation test for each column of differences.

    ``differences[i, c]`` is of question i. A column with few differences is tested exactly, as by
    ``statistics.sign_flip_p_value``; the others share ``RESAMPLES`` random exchanges.
    """
    questions, columns = differences.shape
    sums = differences.sum(axis=0)
    slack = _ROUNDING * np.abs(differences).sum(axis=0)
    below, above = np.zeros(columns), np.zeros(columns)
    rng = np.random.default_rng(0)
    for size in _batches(questions):
        signs = rng.integers(2, size=(size, questions)).astype(np.float64) * 2 - 1
        exchanged = signs @ differences
        below += (exchanged <= sums + slack).sum(axis=0)
        above += (exchanged >= sums - slack).sum(axis=0)
    p_values = np.minimum(1.0, 2 * (np.minimum(below, above) + 1) / (RESAMPLES + 1))
    for column in np.flatnonzero(np.count_nonzero(differences, axis=0) < _EXACT_BELOW):
        p_values[column] = sign_flip_p_value(differences[:, column])
    return p_values


def _batches(questions: int) -> Iterator[int]:
    size = batch_of(questions)
    for start in range(0, RESAMPLES, size):
        yield min(size, RESAMPLES - start)
