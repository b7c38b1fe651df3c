"""Means and shares with their 95 % intervals, over questions that may belong together.

Needs scipy and statsmodels (extra ``eval``). Everything takes one number for each question. A missing value (None or
NaN) is a ValueError: a failed question is wrong, and the caller passes 0 for it.

Questions of one dialogue are no independent observations. Where ``clusters`` names the dialogue of each, whole
dialogues are drawn, and a share counts as many observations as its design effect leaves (Korn and Graubard, Confidence
intervals for proportions with small expected number of positive counts, Survey Methodology 24, 1998).
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from statsmodels.stats.proportion import proportion_confint

CONFIDENCE = 0.95
ALPHA = 0.05
RESAMPLES = 10_000

Scale = Literal["share", "amount"]
"""share: each value lies in [0, 1], such as EM, F1 and recall. amount: anything else, such as calls and differences."""

Scores = Sequence[float | None]
"""A number for each question; None is admitted by the type alone, so that it can be refused with a reason."""
Clusters = Sequence[Hashable]
"""The dialogue of each question, or whatever else makes several of them depend on each other."""

_BATCH_VALUES = 1_000_000
"""Numbers that one batch of resamples holds: 8 MB, whatever the number of questions."""

_Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class MeanInterval:
    """A mean and its 95 % interval, in the unit of the values."""

    mean: float
    low: float | None
    """None where a single observation says nothing on how they vary."""
    high: float | None
    n: int
    """Number of values."""


@dataclass(frozen=True)
class ClusterTotals:
    """The values of each cluster added up; ``sums[i]`` and ``sizes[i]`` are those of one cluster."""

    sums: _Floats
    sizes: _Floats

    @classmethod
    def of(cls, values: _Floats, clusters: Clusters | None) -> ClusterTotals:
        """The totals in the order in which the clusters first appear; without clusters each value is one.

        Raises:
            ValueError: There are more of the values than of the clusters, or fewer.
        """
        if clusters is None:
            return cls(values, np.ones(len(values)))
        places: dict[Hashable, int] = {}
        at = [places.setdefault(cluster, len(places)) for cluster in clusters]
        if len(at) != len(values):
            raise ValueError(f"Each value has one cluster, but there are {len(values)} values and {len(at)} clusters.")
        return cls(*(np.bincount(at, weights).astype(np.float64) for weights in (values, None)))

    @property
    def mean(self) -> float:
        """Mean over values."""
        return float(self.sums.sum() / self.sizes.sum())

    @property
    def standard_error(self) -> float:
        """Of the mean, as that of a ratio of two sums over clusters; needs two clusters or more."""
        count = len(self.sums)
        residuals = self.sums - self.mean * self.sizes
        return float(np.sqrt((residuals**2).sum() * count / (count - 1)) / self.sizes.sum())

    @property
    def observations(self) -> float:
        """Independent observations that would estimate a share as well; from 1 to the number of values."""
        share, n, count = self.mean, float(self.sizes.sum()), len(self.sums)
        # Where all are right there is no variance to go by: at worst, a cluster is one observation.
        if count in (n, 1) or share in (0.0, 1.0):
            return float(count)
        error = self.standard_error
        return min(max(share * (1 - share) / error**2, 1.0), n) if error else n


def mean_interval(
    values: Scores, *, scale: Scale, clusters: Clusters | None = None, seed: int = 0, resamples: int = RESAMPLES
) -> MeanInterval:
    """The mean with its 95 % interval.

    Of a share whose values are all 0 or 1 it is Wilson's (1927), which is no point even where every question is right;
    of anything else the bootstrap's percentiles (Efron and Tibshirani, 1993, chapter 13). The order of the values may
    change the last digits of the bounds, nothing else does: same seed, same bounds. 500 values take about 0.1 s.

    Args:
        values: One for each question; repeats of a question are to be their mean.
        scale: What the values are.
        clusters: ``clusters[i]`` belongs to ``values[i]``; None takes the values as independent.
        seed: Of the bootstrap.
        resamples: Of the bootstrap.

    Raises:
        ValueError: There are no values, some are missing, or a share is not in [0, 1].
    """
    checked = checked_scores(values, "values")
    if scale == "share" and not ((checked >= 0) & (checked <= 1)).all():
        raise ValueError(f"A share lies in [0, 1], but the values reach from {checked.min()} to {checked.max()}.")
    totals = ClusterTotals.of(checked, clusters)
    mean, n = float(checked.mean()), len(checked)
    if scale == "share" and np.isin(checked, (0.0, 1.0)).all():
        low, high = wilson_bounds(mean, totals.observations)
        return MeanInterval(mean=mean, low=low, high=high, n=n)
    if len(totals.sums) == 1:
        return MeanInterval(mean=mean, low=None, high=None, n=n)
    # Equal values can come back an ulp apart, the lower bound on top: no mean lies outside of the values.
    low, high = np.clip(_bootstrap_bounds(totals, seed=seed, resamples=resamples), checked.min(), checked.max())
    return MeanInterval(mean=mean, low=float(low), high=float(high), n=n)


def wilson_bounds(share: float, observations: float) -> tuple[float, float]:
    """Wilson's score interval (95 %) of a share that so many independent observations gave; they may be a fraction."""
    low, high = proportion_confint(share * observations, observations, alpha=ALPHA, method="wilson")
    return min(max(0.0, float(low)), share), max(min(1.0, float(high)), share)


def checked_scores(values: Scores, what: str) -> _Floats:
    """The values as an array.

    Raises:
        ValueError: There are none, or one is missing or not finite; the message names them by ``what``.
    """
    if not len(values):
        raise ValueError(f"There are no {what}: at least one is needed.")
    for place, value in enumerate(values):
        if value is None or not math.isfinite(value):
            raise ValueError(
                f"The {what} must be finite numbers, but that at index {place} is {value}. Give a failed question 0; "
                "leave questions out, for both systems, only where the score is not defined."
            )
    return np.asarray(values, dtype=np.float64)


def batch_of(n: int) -> int:
    """Resamples of n values that fit into one batch."""
    return max(1, _BATCH_VALUES // n)


def _bootstrap_bounds(totals: ClusterTotals, *, seed: int, resamples: int) -> tuple[float, float]:
    has_clusters = bool((totals.sizes != 1).any())
    bounds = stats.bootstrap(
        (totals.sums, totals.sizes) if has_clusters else (totals.sums,),
        _ratio if has_clusters else np.mean,
        method="percentile",
        paired=has_clusters,
        confidence_level=CONFIDENCE,
        n_resamples=resamples,
        batch=batch_of(len(totals.sums)),
        vectorized=True,
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return float(bounds.low), float(bounds.high)


def _ratio(sums: _Floats, sizes: _Floats, axis: int) -> _Floats:
    mean: _Floats = sums.sum(axis=axis) / sizes.sum(axis=axis)
    return mean
