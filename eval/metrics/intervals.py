"""Means and shares with their 95 % intervals, over questions that may be clustered.

Needs scipy and statsmodels (extra ``eval``). Every function takes one number for each question; a missing value (None
or NaN) raises ValueError. A failed question scores 0.

Questions of one dialogue are not independent. Where ``clusters`` gives the dialogue of each question, the bootstrap
draws whole dialogues, and the sample size of a share is divided by its design effect (Korn and Graubard, Confidence
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
"""share: each value is in [0, 1], such as EM, F1 and recall. amount: any number, such as calls and differences."""

Scores = Sequence[float | None]
"""A number for each question; None is in the type so that it can be rejected with a ValueError."""
Clusters = Sequence[Hashable]
"""The dialogue of each question, or another key shared by dependent questions."""

_BATCH_VALUES = 1_000_000
"""Numbers in one batch of resamples: 8 MB for any number of questions."""

_Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class MeanInterval:
    """A mean and its 95 % interval, in the unit of the values."""

    mean: float
    low: float | None
    """None for a single observation, which has no variance."""
    high: float | None
    n: int
    """Number of values."""


@dataclass(frozen=True)
class ClusterTotals:
    """Sum and number of the values of each cluster; ``sums[i]`` and ``sizes[i]`` belong to cluster i."""

    sums: _Floats
    sizes: _Floats

    @classmethod
    def of(cls, values: _Floats, clusters: Clusters | None) -> ClusterTotals:
        """Add up values by cluster, in order of first appearance; None makes each value its own cluster.

        Raises:
            ValueError: ``values`` and ``clusters`` differ in length.
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
        """Standard error of the mean, as of a ratio of two cluster sums; needs 2 clusters or more."""
        count = len(self.sums)
        residuals = self.sums - self.mean * self.sizes
        return float(np.sqrt((residuals**2).sum() * count / (count - 1)) / self.sizes.sum())

    @property
    def observations(self) -> float:
        """Effective sample size of a share, from 1 to the number of values."""
        share, n, count = self.mean, float(self.sizes.sum()), len(self.sums)
        # Equal values have no variance, so no design effect: count each cluster as one observation.
        if count in (n, 1) or share in (0.0, 1.0):
            return float(count)
        error = self.standard_error
        return min(max(share * (1 - share) / error**2, 1.0), n) if error else n


def mean_interval(
    values: Scores,
    *,
    scale: Scale,
    clusters: Clusters | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
    confidence: float = CONFIDENCE,
) -> MeanInterval:
    """Compute the mean and its 95 % interval.

    A share whose values are all 0 or 1 gets Wilson's interval (1927), which has a width even if all are right.
    Other values get the percentile bootstrap (Efron and Tibshirani, 1993, chapter 13). The same seed gives the same
    bounds, up to their last digits if the order of the values changes. 500 values take about 0.1 s.

    Args:
        values: One for each question; the mean of its repeats.
        scale: Whether the values are shares.
        clusters: ``clusters[i]`` belongs to ``values[i]``; None treats the values as independent.
        seed: Seed of the bootstrap.
        resamples: Number of bootstrap samples.
        confidence: Of the bootstrap, if not 95 %.

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
    # For equal values the bootstrap may return bounds an ulp apart, in the wrong order.
    bounds = _bootstrap_bounds(totals, seed=seed, resamples=resamples, confidence=confidence)
    low, high = np.clip(bounds, checked.min(), checked.max())
    return MeanInterval(mean=mean, low=float(low), high=float(high), n=n)


def ratio_interval(
    above: Scores, below: Scores, *, clusters: Clusters | None = None, seed: int = 0, resamples: int = RESAMPLES
) -> MeanInterval:
    """Compute the ratio of two sums over the same questions, ``above`` to ``below``, and its 95 % interval.

    The interval is that of the percentile bootstrap over questions or clusters, which is of use only where the sum
    ``below`` is far from 0.

    Args:
        above: A number for each question.
        below: Another one for each.
        clusters: As for ``mean_interval``.
        seed: Seed of the bootstrap.
        resamples: Number of bootstrap samples.

    Raises:
        ValueError: There are no numbers, they differ in number, some are missing, or the sum of ``below`` is 0.
    """
    first, second = (ClusterTotals.of(checked_scores(each, "values"), clusters).sums for each in (above, below))
    if len(first) != len(second) or not second.sum():
        raise ValueError("A ratio needs two numbers for each question, of which the second ones do not sum up to 0.")
    totals = ClusterTotals(first, second)
    if len(first) == 1:
        return MeanInterval(mean=totals.mean, low=None, high=None, n=len(above))
    rng, count, batch = np.random.default_rng(seed), len(first), batch_of(len(first))
    ratios: list[_Floats] = []
    for start in range(0, resamples, batch):
        drawn = rng.integers(count, size=(min(batch, resamples - start), count))
        with np.errstate(divide="ignore", invalid="ignore"):  # a sample whose second numbers cancel each other out
            ratios.append(first[drawn].sum(axis=1) / second[drawn].sum(axis=1))
    low, high = map(float, np.nanquantile(np.concatenate(ratios), [ALPHA / 2, 1 - ALPHA / 2]))
    return MeanInterval(mean=totals.mean, low=min(low, totals.mean), high=max(high, totals.mean), n=len(above))


def wilson_bounds(share: float, observations: float) -> tuple[float, float]:
    """Compute Wilson's 95 % score interval of a share over ``observations``, which may be a fraction."""
    low, high = proportion_confint(share * observations, observations, alpha=ALPHA, method="wilson")
    return min(max(0.0, float(low)), share), max(min(1.0, float(high)), share)


def checked_scores(values: Scores, what: str) -> _Floats:
    """Convert values to a float64 array; error messages call them ``what``.

    Raises:
        ValueError: There are no values, or one is missing or not finite.
    """
    if not len(values):
        raise ValueError(f"There are no {what}: at least one is needed.")
    for place, value in enumerate(values):
        if value is None or not math.isfinite(value):
            raise ValueError(
                f"The {what} must be finite numbers, but index {place} is {value}. Score a failed question 0; leave "
                "a question out, for both systems, only if its score is undefined."
            )
    return np.asarray(values, dtype=np.float64)


def batch_of(n: int) -> int:
    """Return how many resamples of ``n`` values fit into one batch, 1 or more."""
    return max(1, _BATCH_VALUES // n)


def _bootstrap_bounds(totals: ClusterTotals, *, seed: int, resamples: int, confidence: float) -> tuple[float, float]:
    has_clusters = bool((totals.sizes != 1).any())
    bounds = stats.bootstrap(
        (totals.sums, totals.sizes) if has_clusters else (totals.sums,),
        _ratio if has_clusters else np.mean,
        method="percentile",
        paired=has_clusters,
        confidence_level=confidence,
        n_resamples=resamples,
        batch=batch_of(len(totals.sums)),
        vectorized=True,
        rng=np.random.default_rng(seed),
    ).confidence_interval
    return float(bounds.low), float(bounds.high)


def _ratio(sums: _Floats, sizes: _Floats, axis: int) -> _Floats:
    mean: _Floats = sums.sum(axis=axis) / sizes.sum(axis=axis)
    return mean
