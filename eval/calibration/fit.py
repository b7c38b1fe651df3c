"""Fit of the ``logprob`` judge's thresholds on training questions with gold documents.

The judge answers its yes-or-no questions about the gold passages of each question and the likeliest distractors. t1
keeps a given share of the gold passages: a lost gold passage costs the answer, a kept distractor only costs calls. t2
needs passages that answer alone, such as those of single-hop questions; a verdict of 2 ends the search, so few passages
that do not answer alone may reach t2. Needs scipy and statsmodels (extra ``eval``).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from ...modules.errors import SettingsError
from ...modules.judge.thresholds import LogprobThresholds
from ..metrics.intervals import MeanInterval, mean_interval
from .judge_figures import VERDICTS, VerdictName, auc

TARGET_RECALL = 0.93
"""Share of the gold passages that t1 keeps; see docs/decisions/0001-judges.md."""
FALSE_TWOS = 0.05
"""Largest share of the passages not answering alone that may reach t2."""
FEWEST_TWOS = 0.2
"""Smallest share of the passages answering alone that must reach t2."""
MIN_ALONE = 20
FOLDS = 5
_DIGITS = 3


@dataclass(frozen=True, kw_only=True)
class RatedPassage:
    """The judge's probabilities for one passage, in [0, 1]; None without a yes or no, or if it was not asked."""

    needed: float | None
    alone: float | None = None
    answers_alone: bool = False
    """Whether it does answer alone."""
    weight: float = 1.0
    """Number of passages that it stands for, where passages were drawn unevenly."""


@dataclass(frozen=True, kw_only=True)
class RatedCase:
    """A question's passages with their probabilities."""

    gold: tuple[RatedPassage, ...]
    others: tuple[RatedPassage, ...]


@dataclass(frozen=True, kw_only=True)
class Fit:
    """Thresholds and their expected performance, measured by cross-validation.

    The questions are split at random into five folds; thresholds fitted on four folds judge the fifth.
    """

    thresholds: LogprobThresholds
    """Thresholds fitted on all questions."""
    without_alone: str
    """Why there is no t2, in words; ``""`` if there is one."""
    questions: int
    passages: int
    target_recall: float
    auc_within: MeanInterval | None
    """P(a gold passage is rated above another of its question); mean and interval over questions with both.

    None without such questions.
    """
    auc_over: float
    """The same probability over the passages of all questions."""
    gold_kept: MeanInterval | None
    """Share of a question's gold passages with verdict 1 or 2; None if all verdicts are unknown."""
    others_kept: MeanInterval | None
    """Share of a question's distractors with verdict 1 or 2; lower is better; None if all verdicts are unknown."""
    shares: Mapping[VerdictName, float]
    """Shares of the verdicts on all these passages; a searched corpus has fewer gold passages."""

    @property
    def discriminates(self) -> bool:
        """Whether gold passages are rated above others on average; without that no threshold helps."""
        return (self.auc_over if self.auc_within is None else self.auc_within.mean) > 0.5

    @property
    def findings(self) -> tuple[str, ...]:
        """Warnings about the thresholds, a sentence each."""
        unknown = self.shares["unknown"]
        found = []
        if not self.discriminates:
            found.append("Its scale is no use: it rates gold passages no higher than others.")
        elif self.auc_within is None:
            found.append("No query has both gold and other passages, so its AUC within the query is unknown.")
        elif self.auc_within.low is None or self.auc_within.low <= 0.5:
            found.append("It was not shown to tell gold passages from others: the interval of its AUC holds .5.")
        if unknown > 0.1:
            found.append(f"It said neither yes nor no of {unknown:.0%} of the passages.")
        return tuple(found)


def fit_thresholds(cases: Sequence[RatedCase], *, target_recall: float = TARGET_RECALL) -> Fit:
    """Fit the thresholds of one judge and estimate their performance. Makes no calls.

    Args:
        cases: Two or more; there are gold and other passages among them.
        target_recall: Share of the gold passages to keep, in (0, 1].

    Raises:
        SettingsError: The judge answered yes or no about no gold passage.
    """
    alone, without_alone = _fitted_alone(cases)
    thresholds = LogprobThresholds(needed=_fitted_needed(cases, target_recall), alone=alone)
    verdicts = _held_out(cases, target_recall, with_alone=alone is not None)
    every = [verdict for gold, others in verdicts for verdict in (*gold, *others)]
    within = [auc(_needed(case.gold), _needed(case.others)) for case in cases if case.gold and case.others]
    return Fit(
        thresholds=thresholds,
        without_alone=without_alone,
        questions=len(cases),
        passages=len(every),
        target_recall=target_recall,
        auc_within=mean_interval(within, scale="share") if within else None,
        auc_over=auc(
            [rating for case in cases for rating in _needed(case.gold)],
            [rating for case in cases for rating in _needed(case.others)],
        ),
        gold_kept=_kept(gold for gold, _ in verdicts),
        others_kept=_kept(others for _, others in verdicts),
        shares={name: every.count(name) / len(every) for name in VERDICTS},
    )


def needed_threshold(
    gold: Sequence[float], others: Sequence[float], *, recall: float, weights: Sequence[float] | None = None
) -> float:
    """Compute t1, which keeps the share ``recall`` of ``gold``, in (0, 1]; each counts by its weight, or once.

    Of all thresholds that keep the same passages, return the middle one, rounded if that changes nothing.

    >>> needed_threshold([0.9, 0.8, 0.7, 0.1], [0.5, 0.2], recall=0.75)
    0.6
    """
    ranked = sorted(zip(gold, weights or [1.0] * len(gold), strict=True), reverse=True)
    wanted = recall * sum(weight for _, weight in ranked) - 1e-9
    reached = itertools.accumulate(weight for _, weight in ranked)
    kept = next(rating for (rating, _), so_far in zip(ranked, reached, strict=True) if so_far >= wanted)
    return _between(max((rating for rating in (*gold, *others) if rating < kept), default=kept), kept)


def alone_threshold(sufficient: Sequence[float], others: Sequence[float]) -> float | None:
    """Compute t2, the lowest threshold that at most ``FALSE_TWOS`` of ``others`` reach.

    None if less than ``FEWEST_TWOS`` of ``sufficient`` would reach it.

    >>> alone_threshold([0.9, 0.8, 0.3], [0.4, 0.1])
    0.6
    >>> alone_threshold([0.1], [0.4, 0.3]) is None
    True
    """
    barred = sorted(others, reverse=True)[math.floor(FALSE_TWOS * len(others))]
    above = [rating for rating in (*sufficient, *others) if rating > barred]
    reaching = sum(rating > barred for rating in sufficient)
    return _between(barred, min(above)) if above and reaching >= FEWEST_TWOS * len(sufficient) else None


def _between(low: float, high: float) -> float:
    """Return a number in (low, high], rounded if possible; ``high`` if both are equal."""
    middle = (low + high) / 2
    rounded = round(middle, _DIGITS)
    return next(each for each in (rounded, middle, high) if low < each <= high or each == high)


def verdict_of(rated: RatedPassage, thresholds: LogprobThresholds) -> VerdictName:
    """Return the verdict that ``LogprobJudge`` would give."""
    if rated.needed is None:
        return "unknown"
    if rated.needed < thresholds.needed:
        return "0"
    if thresholds.alone is None:
        return "1"
    if rated.alone is None:
        return "unknown"
    return "2" if rated.alone >= thresholds.alone else "1"


def _fitted_needed(cases: Sequence[RatedCase], target_recall: float) -> float:
    gold = [(rated.needed, rated.weight) for case in cases for rated in case.gold if rated.needed is not None]
    others = [rated.needed for case in cases for rated in case.others if rated.needed is not None]
    if not gold:
        raise SettingsError("The judge answered neither yes nor no about any gold passage, so it cannot be calibrated.")
    ratings, weights = zip(*gold, strict=True)
    return needed_threshold(ratings, others, recall=target_recall, weights=weights)


def _fitted_alone(cases: Sequence[RatedCase], *, at_least: int = MIN_ALONE) -> tuple[float | None, str]:
    """Compute t2, or return None and the reason."""
    asked = [(rated.alone, rated.answers_alone) for case in cases for rated in (*case.gold, *case.others)]
    sufficient = [alone for alone, is_sufficient in asked if is_sufficient and alone is not None]
    if len(sufficient) < at_least:
        return None, f"{at_least} passages that answer alone are needed for it; there are {len(sufficient)}"
    not_sufficient = [alone for alone, is_sufficient in asked if not is_sufficient and alone is not None]
    alone = alone_threshold(sufficient, not_sufficient) if not_sufficient else None
    if alone is None:
        return None, (
            f"none lets through {FEWEST_TWOS:.0%} of the passages that answer alone, "
            f"and at most {FALSE_TWOS:.0%} of those that do not"
        )
    return alone, ""


_Verdicts = tuple[list[VerdictName], list[VerdictName]]
"""The verdicts on a question's gold passages, and on the others."""


def _held_out(cases: Sequence[RatedCase], target_recall: float, *, with_alone: bool) -> list[_Verdicts]:
    """Judge each case by thresholds that were fitted without it."""
    verdicts: list[_Verdicts] = []
    order = np.random.default_rng(0).permutation(len(cases)).tolist()
    for fold in range(min(FOLDS, len(cases))):
        held = set(order[fold::FOLDS])
        rest = [case for at, case in enumerate(cases) if at not in held]
        alone, _ = _fitted_alone(rest, at_least=1) if with_alone else (None, "")
        thresholds = LogprobThresholds(needed=_fitted_needed(rest, target_recall), alone=alone)
        for case in (cases[at] for at in sorted(held)):
            gold, others = ([verdict_of(rated, thresholds) for rated in side] for side in (case.gold, case.others))
            verdicts.append((gold, others))
    return verdicts


def _kept(questions: Iterable[Sequence[VerdictName]]) -> MeanInterval | None:
    """Average the share of 1 and 2 among a question's known verdicts; None if all are unknown."""
    known = [[verdict for verdict in question if verdict != "unknown"] for question in questions]
    shares = [sum(verdict != "0" for verdict in question) / len(question) for question in known if question]
    return mean_interval(shares, scale="share") if shares else None


def _needed(passages: Iterable[RatedPassage]) -> list[float | None]:
    return [rated.needed for rated in passages]
