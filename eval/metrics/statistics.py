"""Significance of differences between systems: paired tests, detectable differences, noise.

Needs scipy and statsmodels (extra ``eval``), so only reports and comparisons import it.

Every function takes one number for each question; a missing value (None or NaN) raises ValueError. A failed question
scores 0. Where ``groups`` gives the dialogue or cluster of each question, whole ones are drawn and exchanged.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.power import TTestPower

from .intervals import (
    ALPHA,
    CONFIDENCE,
    RESAMPLES,
    Clusters,
    ClusterTotals,
    MeanInterval,
    Scores,
    batch_of,
    checked_scores,
    mean_interval,
)
from .power import MOST_QUESTIONS, POWER, detectable_difference

PairedTest = Literal["mcnemar", "permutation"]
"""mcnemar: for scores of 0 or 1, such as EM. permutation: for graded scores, such as F1."""

Unit = Literal["points", "score", "count", "tokens", "USD", "seconds"]
"""How differences are told: points are score × 100, for scores in [0, 1]; the others are the number itself."""

_Floats = NDArray[np.float64]


@dataclass(frozen=True, kw_only=True)
class Equivalence:
    """Whether two systems differ by less than a margin, by two one-sided tests at a level of 5 % (Schuirmann 1987)."""

    margin: float
    low: float | None
    """Lower end of the interval of the difference that has to lie within the margin: of 90 %, or more where several
    comparisons are corrected together (Bonferroni); None without one."""
    high: float | None
    confidence: float
    """That of the interval."""

    @property
    def is_shown(self) -> bool:
        """Whether the interval lies within the margin."""
        return self.low is not None and self.high is not None and -self.margin < self.low <= self.high < self.margin


@dataclass(frozen=True, kw_only=True)
class PairedComparison:
    """System A against system B on the same questions, by one score."""

    metric: str
    """Name of the score."""
    mean_a: float
    mean_b: float
    difference: MeanInterval
    """Mean of A minus B over questions, with its interval."""
    groups: int | None = None
    """Number of dialogues, or of clusters of questions that depend on each other; None if questions stand alone."""
    are_dialogues: bool = False
    a_better: int
    """Questions on which A scores higher; ties count for neither."""
    b_better: int
    test: PairedTest
    p_value: float
    """Two-sided p value, above 0."""
    least_p_value: float
    """Smallest p value that the test can give on these questions."""
    resamples: int | None = None
    """Number of random exchanges behind the p value; None for an exact test."""
    adjusted_p_value: float | None = None
    """P value after Holm's correction; None for a single comparison."""
    unit: Unit = "points"
    better: Literal["higher", "lower"] = "higher"
    """Which scores are better."""
    title: str = ""
    """What sentences call the score; ``""`` for its name."""
    comparisons: int = 1
    """Number of comparisons that ``adjusted_p_value`` is corrected for."""
    family: str = ""
    """What these comparisons are, in words, such as "of secondary outcomes"; ``""`` for all that were made."""
    equivalence: Equivalence | None = None
    """None unless a margin was given."""
    differing: int = 0
    """Number of units, as in ``units``, on which the two differ."""
    discordance: float | None = None
    """Share of questions on which one is right and the other wrong; None for graded scores, and with ``groups``."""
    smallest_detectable: float | None
    """True difference that would be shown with 80 % power, all corrections included; None if it cannot be estimated."""

    @property
    def is_shown(self) -> bool:
        """Whether a difference was shown: the (adjusted) p value is below .05 and the interval, if any, excludes 0."""
        low, high = self.difference.low, self.difference.high
        p_value = self.p_value if self.adjusted_p_value is None else self.adjusted_p_value
        is_apart = self.difference.mean != 0 if low is None or high is None else low > 0 or high < 0
        return p_value < ALPHA and is_apart

    @property
    def units(self) -> int:
        """Number of what the test exchanges: dialogues, clusters, or questions that stand alone."""
        return self.difference.n if self.groups is None else self.groups

    @property
    def can_be_shown(self) -> bool:
        """Whether so many questions can show any difference: if all differ alike, their p value is the least."""
        return least_p_value(self.units, resamples=None) * self.comparisons < ALPHA


@dataclass(frozen=True, kw_only=True)
class NoiseFloor:
    """Variation of a system's scores between repeated runs on the same questions."""

    means: tuple[float, ...]
    """Mean score of each run, in the order of the runs."""
    sd_of_means: float
    """Standard deviation of the run means (divisor k - 1): differences of this size arise by chance."""
    flipped_share: float
    """Share in [0, 1] of the questions whose score differs between runs."""
    n: int
    """Number of questions."""


def compare_paired(
    a: Scores,
    b: Scores,
    *,
    metric: str,
    test: PairedTest,
    groups: Clusters | None = None,
    resamples: int = RESAMPLES,
) -> PairedComparison:
    """Compare two systems; ``a[i]`` and ``b[i]`` are their scores on the same question.

    McNemar's test comes with the interval of Bonett and Price (Adjusted Wald confidence interval for a difference of
    binomial proportions based on paired data, 2012), the permutation test with that of the paired bootstrap over
    questions, dialogues or clusters.

    Args:
        a: Scores of A.
        b: Scores of B.
        metric: The score's name.
        test: The test; "mcnemar" needs scores of 0 and 1 and questions that stand alone.
        groups: ``groups[i]`` is the dialogue or cluster of question i; None for questions that stand alone.
        resamples: Number of bootstrap samples and of random exchanges.

    Raises:
        ValueError: There are no scores, they differ in number, a score is missing, or the test does not apply.
    """
    if len(a) != len(b):
        raise ValueError(f"Paired scores must cover the same questions, but A has {len(a)} and B has {len(b)}.")
    first, second = checked_scores(a, "scores of A"), checked_scores(b, "scores of B")
    differences = first - second
    totals = ClusterTotals.of(differences, groups)
    moved = int(np.count_nonzero(totals.sums))
    if test == "mcnemar":
        if groups is not None:
            raise ValueError("McNemar's test needs questions that stand alone; use the permutation test for groups.")
        if not np.isin([first, second], (0.0, 1.0)).all():
            raise ValueError("McNemar's test needs scores of 0 and 1, such as EM; use the permutation test for others.")
        p_value, interval, exact = mcnemar_p_value(differences), _bonett_price(differences), True
    else:
        p_value = sign_flip_p_value(totals.sums, resamples=resamples)
        interval = mean_interval(differences.tolist(), scale="amount", clusters=groups, resamples=resamples)
        if np.ptp(differences) == 0:  # the bootstrap of equal differences has no width
            interval = replace(interval, low=None, high=None)
        exact = 2.0**moved <= resamples
    is_binary = groups is None and bool(np.isin(differences, (-1.0, 0.0, 1.0)).all())
    discordance = moved / len(differences) if is_binary else None
    return PairedComparison(
        metric=metric,
        mean_a=float(first.mean()),
        mean_b=float(second.mean()),
        difference=interval,
        groups=None if groups is None else len(totals.sums),
        are_dialogues=groups is not None and any(isinstance(each, tuple) and each[0] == "dialogue" for each in groups),
        a_better=int((differences > 0).sum()),
        b_better=int((differences < 0).sum()),
        test=test,
        p_value=p_value,
        least_p_value=least_p_value(moved, resamples=None if exact else resamples),
        resamples=None if exact else resamples,
        differing=moved,
        discordance=discordance,
        smallest_detectable=(
            detectable_difference(len(differences), discordance=discordance)
            if discordance
            else _graded_detectable(differences, groups, moved)
        ),
    )


def _graded_detectable(differences: _Floats, groups: Clusters | None, moved: int) -> float | None:
    """Estimate by a t test, which ignores the least p value of a permutation test: None where that shows nothing."""
    if moved < _fewest_moved(1):
        return None
    return smallest_detectable_difference(differences, groups=groups)


def _fewest_moved(comparisons: int) -> float:
    """Return how many units must differ for a t test to tell of a permutation test: twice those that could show any."""
    return 2 * (1 + math.log2(comparisons / ALPHA))


def equivalence_of(
    a: Scores,
    b: Scores,
    *,
    margin: float,
    test: PairedTest,
    groups: Clusters | None = None,
    comparisons: int = 1,
    resamples: int = RESAMPLES,
) -> Equivalence:
    """Test whether two systems differ by less than a margin, by the interval of ``compare_paired`` at another level.

    Args:
        a: Scores of A.
        b: Scores of B.
        margin: The least difference that matters, above 0, in the unit of the scores.
        test: As for ``compare_paired``.
        groups: As for ``compare_paired``.
        comparisons: How many comparisons are corrected together.
        resamples: Number of bootstrap samples.
    """
    differences = checked_scores(a, "scores of A") - checked_scores(b, "scores of B")
    confidence = 1 - 2 * ALPHA / comparisons
    if test == "mcnemar":
        interval = _bonett_price(differences, confidence=confidence)
    else:
        interval = mean_interval(
            differences.tolist(), scale="amount", clusters=groups, resamples=resamples, confidence=confidence
        )
        if np.ptp(differences) == 0:
            interval = replace(interval, low=None, high=None)
    return Equivalence(margin=margin, low=interval.low, high=interval.high, confidence=confidence)


def mcnemar_p_value(differences: _Floats) -> float:
    """Compute the two-sided p value of McNemar's exact test over differences of -1, 0 and 1; 1.0 if all are 0."""
    a_alone, b_alone = int((differences > 0).sum()), int((differences < 0).sum())
    return float(mcnemar([[0, a_alone], [b_alone, 0]], exact=True).pvalue)


def sign_flip_p_value(differences: _Floats, *, resamples: int = RESAMPLES) -> float:
    """Compute the two-sided p value of the paired permutation test, over a difference for each question or dialogue.

    The test is exact if the 2**d exchanges of the d differences that are not 0 are at most ``resamples`` (d up to 13 by
    default), else it draws that many random ones, always the same. The result is at least ``least_p_value``, and 1.0
    if d < 2.
    """
    moved = differences[differences != 0]
    if len(moved) < 2:
        return 1.0
    result = stats.permutation_test(
        (moved,),
        np.sum,
        permutation_type="samples",
        n_resamples=resamples,
        batch=batch_of(len(moved)),
        vectorized=True,
        rng=np.random.default_rng(0),
    )
    return float(result.pvalue)


def least_p_value(differing: int, *, resamples: int | None) -> float:
    """Return the smallest two-sided p value that ``differing`` questions can give, for differences of any size.

    It is 2 / 2**differing for the exact test (``resamples`` None), and 2 / (resamples + 1) for random exchanges, since
    the observed outcome counts as one (Phipson and Smyth, Permutation p-values should never be zero, 2010).
    """
    if resamples is not None:
        return 2 / (resamples + 1)
    return min(1.0, 2.0 ** (1 - differing))


def smallest_detectable_difference(differences: _Floats, *, groups: Clusters | None = None) -> float | None:
    """Estimate the true difference of means that a paired t test (alpha .05, two-sided) finds with 80 % power.

    Number and variance of the differences are those of the data. None for one question, or for equal differences.
    """
    totals = ClusterTotals.of(differences, groups)
    count = len(totals.sums)
    if np.ptp(differences) == 0 or count == 1:
        return None
    spread = differences.std(ddof=1) if groups is None else totals.standard_error * np.sqrt(count)
    return float(_effect_size(count, ALPHA) * spread) or None


def questions_like(comparison: PairedComparison, difference: float, *, comparisons: int) -> int | None:
    """Estimate how many questions like those of a comparison show a true difference with 80 % power, by a t test.

    Dialogues and repeats count by their spread. None for more than ``MOST_QUESTIONS``, or without a spread.
    """
    if not comparison.smallest_detectable:
        return None
    spread = comparison.smallest_detectable / _effect_size(comparison.units, ALPHA / comparison.comparisons)
    units = TTestPower().solve_power(
        effect_size=difference / spread, alpha=ALPHA / comparisons, power=POWER, alternative="two-sided"
    )
    questions = math.ceil(float(np.asarray(units).item()) * comparison.difference.n / comparison.units)
    return questions if questions <= MOST_QUESTIONS else None


@functools.lru_cache(maxsize=1024)
def _effect_size(count: int, alpha: float) -> float:
    found = TTestPower().solve_power(nobs=count, alpha=alpha, power=POWER, alternative="two-sided")
    # At some n (73, 120, …) statsmodels falls back to another solver and returns an array of one number.
    return float(np.asarray(found).item())


def holm(p_values: Iterable[float]) -> list[float]:
    """Return p values in the same order, corrected for their number (Holm, 1979).

    The same as ``multipletests`` of statsmodels, which collects all garbage of the process at each call: 0.3 s.
    """
    given = np.array(list(p_values), dtype=float)
    order = np.argsort(given, kind="stable")
    raised = np.maximum.accumulate(given[order] * np.arange(len(given), 0, -1))
    adjusted = np.empty_like(given)
    adjusted[order] = np.minimum(raised, 1.0)
    return [float(each) for each in adjusted]


def adjust_comparisons(comparisons: Sequence[PairedComparison], *, family: str = "") -> tuple[PairedComparison, ...]:
    """Return the comparisons, in the same order, with p values corrected for their number (Holm, 1979).

    What would be found goes by the first step of the correction, which the least p value has to pass.
    """
    adjusted = holm(comparison.p_value for comparison in comparisons)
    count = len(comparisons)
    return tuple(
        replace(
            one,
            adjusted_p_value=p,
            comparisons=count,
            family=family,
            smallest_detectable=_detectable_among(count, one),
        )
        for one, p in zip(comparisons, adjusted, strict=True)
    )


def _detectable_among(count: int, comparison: PairedComparison) -> float | None:
    if comparison.discordance:
        n = comparison.difference.n
        return detectable_difference(n, discordance=comparison.discordance, comparisons=count)
    if comparison.differing < _fewest_moved(count):
        return None
    if (alone := comparison.smallest_detectable) is None:
        return None
    return alone * _effect_size(comparison.units, ALPHA / count) / _effect_size(comparison.units, ALPHA)


def noise_floor(scores: _Floats) -> NoiseFloor:
    """Measure how scores vary between two or more repeated runs; ``scores[r, i]`` is question i in run r."""
    means = scores.mean(axis=1)
    return NoiseFloor(
        means=tuple(means.tolist()),
        sd_of_means=float(means.std(ddof=1)),
        flipped_share=float((scores != scores[0]).any(axis=0).mean()),
        n=scores.shape[1],
    )


def _bonett_price(differences: _Floats, *, confidence: float = CONFIDENCE) -> MeanInterval:
    """Compute the interval of a difference of two paired shares; each of ``differences`` is -1, 0 or 1."""
    n, mean = len(differences), float(differences.mean())
    if n == 1:
        return MeanInterval(mean=mean, low=None, high=None, n=n)
    a_alone, b_alone = ((int((differences == sign).sum()) + 1) / (n + 2) for sign in (1, -1))
    centre = a_alone - b_alone
    half_width = float(stats.norm.ppf((1 + confidence) / 2)) * float(np.sqrt((a_alone + b_alone - centre**2) / (n + 2)))
    return MeanInterval(
        mean=mean, low=min(max(centre - half_width, -1.0), mean), high=max(min(centre + half_width, 1.0), mean), n=n
    )
