"""What a difference between two systems is worth: paired tests, detectable differences, noise.

Needs scipy and statsmodels (extra ``eval``), so nothing but reports and comparisons may import it.

Everything here takes one number for each question. Nothing is left out on the quiet: a missing value (None or NaN) is a
ValueError. A failed question is wrong, and the caller passes 0 for it. Where ``clusters`` names the dialogue of each
question, dialogues are drawn and exchanged as a whole.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from scipy import stats
from statsmodels.stats.contingency_tables import mcnemar
from statsmodels.stats.multitest import multipletests
from statsmodels.stats.power import TTestPower

from .intervals import (
    ALPHA,
    RESAMPLES,
    Clusters,
    ClusterTotals,
    MeanInterval,
    Scores,
    batch_of,
    checked_scores,
    mean_interval,
)

POWER = 0.8

PairedTest = Literal["mcnemar", "permutation"]
"""mcnemar: for outcomes that are 0 or 1, such as EM. permutation: for graded scores, such as F1."""

_Z = float(stats.norm.ppf(1 - ALPHA / 2))


@dataclass(frozen=True, kw_only=True)
class PairedComparison:
    """System A against system B on the same questions, in one score in [0, 1] of which more is better."""

    metric: str
    """The score's name, as it is to stand in a sentence."""
    mean_a: float
    mean_b: float
    difference: MeanInterval
    """A less B, by question."""
    dialogues: int | None = None
    """Number of dialogues that the questions belong to; None where they stand alone."""
    a_better: int
    """Questions on which A scores more; those on which both score the same count for neither."""
    b_better: int
    test: PairedTest
    p_value: float
    """Two-sided; never 0."""
    least_p_value: float
    """The smallest that the test could have given on these questions; see ``least_p_value``."""
    resamples: int | None = None
    """Random exchanges that the p value rests on; None where it is exact."""
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


def compare_paired(
    a: Scores,
    b: Scores,
    *,
    metric: str,
    test: PairedTest,
    dialogues: Clusters | None = None,
    seed: int = 0,
    resamples: int = RESAMPLES,
) -> PairedComparison:
    """Compare two systems; ``a[i]`` and ``b[i]`` are their scores on the same question.

    The interval of McNemar's test is that of Bonett and Price (Adjusted Wald confidence interval for a difference of
    binomial proportions based on paired data, 2012), that of the permutation test the paired bootstrap's: questions
    are drawn, or dialogues, each with both of its scores.

    Args:
        a: Scores of A.
        b: Scores of B.
        metric: The score's name.
        test: Which test; "mcnemar" takes scores of 0 and 1, and questions that stand alone.
        dialogues: ``dialogues[i]`` is that of question i; None where questions stand alone.
        seed: Of bootstrap and permutations.
        resamples: Of both.

    Raises:
        ValueError: There are no scores, their numbers differ, some are missing, or the test does not suit them.
    """
    first, second = _paired(a, b)
    differences = first - second
    totals = ClusterTotals.of(differences, dialogues)
    if test == "mcnemar":
        if dialogues is not None:
            raise ValueError("McNemar's test takes questions that stand alone; use the permutation test for dialogues.")
        p_value, moved = mcnemar_p_value(a, b), int(np.count_nonzero(differences))
        interval, exact = _bonett_price(differences), True
    else:
        p_value = sign_flip_p_value(a, b, dialogues=dialogues, seed=seed, resamples=resamples)
        moved = int(np.count_nonzero(totals.sums))
        interval = mean_interval(
            differences.tolist(), scale="amount", clusters=dialogues, seed=seed, resamples=resamples
        )
        exact = 2.0**moved <= resamples
    return PairedComparison(
        metric=metric,
        mean_a=float(first.mean()),
        mean_b=float(second.mean()),
        difference=interval,
        dialogues=None if dialogues is None else len(totals.sums),
        a_better=int((differences > 0).sum()),
        b_better=int((differences < 0).sum()),
        test=test,
        p_value=p_value,
        least_p_value=least_p_value(moved, resamples=None if exact else resamples),
        resamples=None if exact else resamples,
        smallest_detectable=smallest_detectable_difference(a, b, dialogues=dialogues),
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


def sign_flip_p_value(
    a: Scores, b: Scores, *, dialogues: Clusters | None = None, seed: int = 0, resamples: int = RESAMPLES
) -> float:
    """Two-sided p value of the paired permutation test: may A and B have been exchanged on any question, or dialogue?

    Exact where all exchanges of the d questions (or dialogues) that differ are no more than ``resamples`` (d up to 13
    by default), else from that many random ones. It is never below ``least_p_value``. 1.0 where fewer than two differ.

    Raises:
        ValueError: As for ``compare_paired``.
    """
    first, second = _paired(a, b)
    sums = ClusterTotals.of(first - second, dialogues).sums
    differences = sums[sums != 0]
    if len(differences) < 2:
        return 1.0
    result = stats.permutation_test(
        (differences,),
        np.sum,
        permutation_type="samples",
        n_resamples=resamples,
        batch=batch_of(len(differences)),
        vectorized=True,
        rng=np.random.default_rng(seed),
    )
    return float(result.pvalue)


def least_p_value(differing: int, *, resamples: int | None) -> float:
    """The smallest two-sided p value that so many differing questions can give, however large their differences.

    2 of 2**differing exchanges where all are counted (``resamples`` None); with random ones 2 / (resamples + 1), since
    the observed outcome counts as one (Phipson and Smyth, Permutation p-values should never be zero, 2010).
    """
    if resamples is not None:
        return 2 / (resamples + 1)
    return min(1.0, 2.0 ** (1 - differing))


def smallest_detectable_difference(a: Scores, b: Scores, *, dialogues: Clusters | None = None) -> float | None:
    """The true difference of means that a paired t test (alpha .05, two-sided) would find with 80 % power.

    At this number of questions (or dialogues), and as much as their differences vary here. None where nothing can be
    said: one question, or the same difference on all of them.

    Raises:
        ValueError: As for ``compare_paired``.
    """
    first, second = _paired(a, b)
    differences = first - second
    totals = ClusterTotals.of(differences, dialogues)
    count = len(totals.sums)
    if np.ptp(differences) == 0 or count == 1:
        return None
    spread = differences.std(ddof=1) if dialogues is None else totals.standard_error * np.sqrt(count)
    effect_size = TTestPower().solve_power(nobs=count, alpha=ALPHA, power=POWER, alternative="two-sided")
    # At some n (73, 120, …) statsmodels falls back to another solver and returns an array of one number.
    return float(np.asarray(effect_size).item() * spread) or None


def adjust_holm(p_values: Sequence[float]) -> tuple[float, ...]:
    """P values corrected for their number (Holm, 1979), in the same order; none is smaller than it was.

    Raises:
        ValueError: Some p value is missing or not in [0, 1].
    """
    if not p_values:
        return ()
    checked = checked_scores(p_values, "p values")
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
    scores = np.stack([checked_scores(run, f"scores of run {place}") for place, run in enumerate(runs, start=1)])
    means = scores.mean(axis=1)
    return NoiseFloor(
        means=tuple(means.tolist()),
        sd_of_means=float(means.std(ddof=1)),
        flipped_share=float((scores != scores[0]).any(axis=0).mean()),
        n=scores.shape[1],
    )


def _paired(a: Scores, b: Scores) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    if len(a) != len(b):
        raise ValueError(f"Paired scores belong to the same questions, but A has {len(a)} and B has {len(b)}.")
    return checked_scores(a, "scores of A"), checked_scores(b, "scores of B")


def _bonett_price(differences: NDArray[np.float64]) -> MeanInterval:
    """The difference of two shares of the same questions, each of which differs by -1, 0 or 1."""
    n, mean = len(differences), float(differences.mean())
    if n == 1:
        return MeanInterval(mean=mean, low=None, high=None, n=n)
    a_alone, b_alone = ((int((differences == sign).sum()) + 1) / (n + 2) for sign in (1, -1))
    centre = a_alone - b_alone
    half_width = _Z * float(np.sqrt((a_alone + b_alone - centre**2) / (n + 2)))
    return MeanInterval(
        mean=mean, low=min(max(centre - half_width, -1.0), mean), high=max(min(centre + half_width, 1.0), mean), n=n
    )
