"""What a difference between two systems is worth: intervals, paired tests, detectable differences, noise.

Needs scipy and statsmodels (extra ``eval``), so nothing but reports and comparisons may import it.

Everything here takes one number for each question. Nothing is left out on the quiet: a missing value (None or NaN) is a
ValueError. A failed question is wrong, and the caller passes 0 for it.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower

CONFIDENCE = 0.95
ALPHA = 0.05
POWER = 0.8
RESAMPLES = 10_000

PairedTest = Literal["mcnemar", "permutation"]
"""mcnemar: for outcomes that are 0 or 1, such as EM. permutation: for graded scores, such as F1."""
_TEST_NAMES: dict[PairedTest, str] = {"mcnemar": "exact McNemar test", "permutation": "paired permutation test"}

_BATCH_VALUES = 1_000_000
"""Numbers that one batch of resamples holds: 8 MB, whatever the number of questions."""
_SHOWN = 3

Scores = Sequence[float | None]
"""A number for each question; None is admitted by the type alone, so that it can be refused with a reason."""


@dataclass(frozen=True, kw_only=True)
class MeanInterval:
    """A mean and its 95 % interval, in the unit of the values."""

    mean: float
    low: float | None
    """None where there is but one value, which says nothing on how they vary."""
    high: float | None
    n: int
    """Number of values."""


@dataclass(frozen=True, kw_only=True)
class PairedComparison:
    """System A against system B on the same questions, in one score in [0, 1] of which more is better."""

    metric: str
    """The score's name, as it is to stand in a sentence."""
    mean_a: float
    mean_b: float
    difference: MeanInterval
    """A less B, by question."""
    a_better: int
    """Questions on which A scores more; those on which both score the same count for neither."""
    b_better: int
    test: PairedTest
    p_value: float
    """Two-sided."""
    adjusted_p_value: float | None = None
    """After Holm's correction; None where only one comparison is made."""
    smallest_detectable: float | None
    """See ``smallest_detectable_difference``."""

    @property
    def is_shown(self) -> bool:
        """Whether a difference was shown: the p value, corrected if it is, is below .05, and the interval lacks 0."""
        low, high = self.difference.low, self.difference.high
        p_value = self.p_value if self.adjusted_p_value is None else self.adjusted_p_value
        return p_value < ALPHA and low is not None and high is not None and (low > 0 or high < 0)


@dataclass(frozen=True, kw_only=True)
class NoiseFloor:
    """How much a system's scores change when it is asked the same questions again."""

    means: tuple[float, ...]
    """Of each run, in the order given."""
    sd_of_means: float
    """Standard deviation of the run means (divisor k - 1). Differences of this size come by chance."""
    flipped_share: float
    """Share in [0, 1] of the questions that did not score the same in every run."""
    n: int
    """Number of questions."""


def mean_interval(values: Scores, *, seed: int = 0, resamples: int = RESAMPLES) -> MeanInterval:
    """The mean with its bootstrap percentile interval (Efron and Tibshirani, 1993, chapter 13).

    The order of the values may change the last digits of the bounds, nothing else does: same seed, same bounds.
    500 values take about 0.1 s.

    Raises:
        ValueError: There are no values, or some are missing.
    """
    checked = _checked(values, "values")
    mean, n = float(checked.mean()), len(checked)
    if n == 1:
        return MeanInterval(mean=mean, low=None, high=None, n=n)
    bounds = stats.bootstrap(
        (checked,),
        np.mean,
        method="percentile",
        confidence_level=CONFIDENCE,
        n_resamples=resamples,
        batch=_batch(n),
        vectorized=True,
        rng=np.random.default_rng(seed),
    ).confidence_interval
    # Equal values can come back an ulp apart, the lower bound on top: no mean lies outside of the values.
    low, high = np.clip([bounds.low, bounds.high], checked.min(), checked.max())
    return MeanInterval(mean=mean, low=float(low), high=float(high), n=n)


def align_scores(a: Mapping[str, float], b: Mapping[str, float]) -> tuple[list[float], list[float]]:
    """The scores of two systems by question id as two lists over the same questions, in the order of ``a``.

    Raises:
        ValueError: One of them lacks a question that the other has.
    """
    if odd := sorted(a.keys() ^ b.keys()):
        raise ValueError(
            f"The systems were not asked the same questions: {len(odd)} have a score from one of them only "
            f"({', '.join(odd[:_SHOWN])}{', …' if len(odd) > _SHOWN else ''}). "
            "Give a failed question 0, and compare over the questions that both were asked."
        )
    return list(a.values()), [b[question] for question in a]


def compare_paired(
    a: Scores, b: Scores, *, metric: str, test: PairedTest, seed: int = 0, resamples: int = RESAMPLES
) -> PairedComparison:
    """Compare two systems; ``a[i]`` and ``b[i]`` are their scores on the same question.

    The interval is that of the paired bootstrap: questions are drawn, each with both of its scores.

    Raises:
        ValueError: There are no scores, their numbers differ, some are missing, or the test does not suit them.
    """
    first, second = _paired(a, b)
    differences = first - second
    p_value = mcnemar_p_value(a, b) if test == "mcnemar" else sign_flip_p_value(a, b, seed=seed, resamples=resamples)
    return PairedComparison(
        metric=metric,
        mean_a=float(first.mean()),
        mean_b=float(second.mean()),
        difference=mean_interval(differences.tolist(), seed=seed, resamples=resamples),
        a_better=int((differences > 0).sum()),
        b_better=int((differences < 0).sum()),
        test=test,
        p_value=p_value,
        smallest_detectable=smallest_detectable_difference(a, b),
    )


def mcnemar_p_value(a: Scores, b: Scores) -> float:
    """Two-sided p value of McNemar's exact test: are as many questions right by A alone as by B alone?

    1.0 where both are right on the same questions.

    Raises:
        ValueError: As for ``compare_paired``; or a score is neither 0 nor 1.
    """
    first, second = _paired(a, b)
    if not np.isin([first, second], (0.0, 1.0)).all():
        raise ValueError("McNemar's test takes scores of 0 and 1, such as EM; use the permutation test for others.")
    a_right, b_right = first == 1.0, second == 1.0
    table = [[(mine & theirs).sum() for theirs in (b_right, ~b_right)] for mine in (a_right, ~a_right)]
    return float(mcnemar(table, exact=True).pvalue)


def sign_flip_p_value(a: Scores, b: Scores, *, seed: int = 0, resamples: int = RESAMPLES) -> float:
    """Two-sided p value of the paired permutation test: may A and B have been exchanged on any question?

    Exact where all exchanges of the d questions that differ are no more than ``resamples`` (d up to 13 by default),
    else from that many random ones, and then at least 2 / (resamples + 1). 1.0 where fewer than two questions differ.

    Raises:
        ValueError: As for ``compare_paired``.
    """
    first, second = _paired(a, b)
    differences = (first - second)[first != second]
    if len(differences) < 2:
        return 1.0
    result = stats.permutation_test(
        (differences,),
        np.sum,
        permutation_type="samples",
        n_resamples=resamples,
        batch=_batch(len(differences)),
        vectorized=True,
        rng=np.random.default_rng(seed),
    )
    return float(result.pvalue)


def smallest_detectable_difference(a: Scores, b: Scores) -> float | None:
    """The true difference of means that a paired t test (alpha .05, two-sided) would find with 80 % power.

    At this number of questions, and as much as their differences vary here. None where nothing can be said: one
    question, or the same difference on all of them.

    Raises:
        ValueError: As for ``compare_paired``.
    """
    first, second = _paired(a, b)
    differences = first - second
    if np.ptp(differences) == 0:
        return None
    effect_size = TTestPower().solve_power(nobs=len(differences), alpha=ALPHA, power=POWER, alternative="two-sided")
    # At some n (73, 120, …) statsmodels falls back to another solver and returns an array of one number.
    return float(np.asarray(effect_size).item() * differences.std(ddof=1))


def adjust_holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """P values corrected for their number (Holm, 1979), in the same order; none is smaller than it was.

    Raises:
        ValueError: Some p value is missing or not in [0, 1].
    """
    if not p_values:
        return ()
    checked = _checked(p_values, "p values")
    if not ((checked >= 0) & (checked <= 1)).all():
        raise ValueError(f"A p value lies in [0, 1]; got {', '.join(map(str, p_values))}.")
    return tuple(float(p) for p in multipletests(checked, alpha=ALPHA, method="holm")[1])


def adjust_comparisons(comparisons: Sequence[PairedComparison]) -> tuple[PairedComparison, ...]:
    """The same comparisons, in their order, with their p values corrected for one another."""
    adjusted = adjust_holm([comparison.p_value for comparison in comparisons])
    return tuple(replace(one, adjusted_p_value=p) for one, p in zip(comparisons, adjusted, strict=True))


def noise_floor(runs: Sequence[Scores]) -> NoiseFloor:
    """How much scores vary between runs that ought to be the same; ``runs[r][i]`` is question i in run r.

    Raises:
        ValueError: There are fewer than two runs, they differ in length, or scores are missing.
    """
    if len(runs) < 2:
        raise ValueError(f"A noise floor needs at least 2 runs over the same questions, got {len(runs)}.")
    if len(lengths := sorted({len(run) for run in runs})) > 1:
        raise ValueError(f"The runs must be over the same questions, but have {lengths} scores.")
    scores = np.stack([_checked(run, f"scores of run {place}") for place, run in enumerate(runs, start=1)])
    means = scores.mean(axis=1)
    return NoiseFloor(
        means=tuple(means.tolist()),
        sd_of_means=float(means.std(ddof=1)),
        flipped_share=float((scores != scores[0]).any(axis=0).mean()),
        n=scores.shape[1],
    )


def verdict_in_words(comparison: PairedComparison, *, a: str, b: str) -> str:
    """One comparison as a sentence or two; ``a`` and ``b`` are the systems' names. Points are hundredths of the score.

    A difference counts as shown only if test and interval agree (``PairedComparison.is_shown``).
    """
    difference = comparison.difference
    if comparison.is_shown:
        sign, better, worse = (1, a, b) if difference.mean > 0 else (-1, b, a)
        return (
            f"{better} is better than {worse} by {_points(sign * difference.mean)} points of {comparison.metric} "
            f"({_evidence(comparison, sign)})."
        )
    return (
        f"No difference in {comparison.metric} was shown; {a} less {b} is {_points(difference.mean, signed=True)} "
        f"points ({_evidence(comparison, 1, signed=True)}). {_detectable(comparison)}"
    )


def _paired(a: Scores, b: Scores) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if len(a) != len(b):
        raise ValueError(f"Paired scores belong to the same questions, but A has {len(a)} and B has {len(b)}.")
    return _checked(a, "scores of A"), _checked(b, "scores of B")


def _checked(values: Scores, what: str) -> NDArray[np.float64]:
    if not len(values):
        raise ValueError(f"There are no {what}: at least one is needed.")
    for place, value in enumerate(values):
        if value is None or not math.isfinite(value):
            raise ValueError(
                f"The {what} must be finite numbers, but that at index {place} is {value}. Give a failed question 0; "
                "leave questions out, for both systems, only where the score is not defined."
            )
    return np.asarray(values, dtype=np.float64)


def _batch(n: int) -> int:
    return max(1, _BATCH_VALUES // n)


def _evidence(comparison: PairedComparison, sign: int, *, signed: bool = False) -> str:
    low, high, n = comparison.difference.low, comparison.difference.high, comparison.difference.n
    interval = "no interval"
    if low is not None and high is not None:
        bounds = " to ".join(_points(bound, signed=signed) for bound in sorted((sign * low, sign * high)))
        interval = f"95 % interval {bounds}"
    adjusted = comparison.adjusted_p_value
    p_value = _p(comparison.p_value) if adjusted is None else f"{_p(adjusted)} after Holm's correction"
    return f"{interval}; {_TEST_NAMES[comparison.test]}, {p_value}; {n} question{'s' if n != 1 else ''}"


def _detectable(comparison: PairedComparison) -> str:
    if comparison.smallest_detectable is None:
        return "These questions cannot say how small a difference would be found."
    points = _points(comparison.smallest_detectable)
    return f"A true difference of {points} points would be found four times out of five with so many questions."


def _points(score: float, *, signed: bool = False) -> str:
    return f"{100 * score:{'+' if signed else ''}.1f}"


def _p(value: float) -> str:
    return "p < 0.001" if value < 0.001 else f"p = {value:.3f}"
