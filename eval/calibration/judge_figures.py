"""Quality of a judge's verdicts against gold documents: confusion, agreement, discrimination, reliability.

Needs scipy and statsmodels (extra ``eval``). All functions are pure. Only the chunks of the question itself (depth 0)
count. Data sets give no gold for sub-questions: a passage that answers a sub-question alone, and rightly gets a 2, is
one of several for the question above.

Gold is known by document: a chunk is gold if its document is. If documents are cut into several chunks, some chunks
that rightly got a 0 count against the judge.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Literal

import numpy as np
from numpy.typing import NDArray
from statsmodels.stats.inter_rater import cohens_kappa

from ..datasets.questions import EvalQuestion
from ..metrics.intervals import ClusterTotals, mean_interval, wilson_bounds
from ..rows.store import RunRow
from .reliability import ReliabilityBin, calibration_error, reliability_bins

VerdictName = Literal["0", "1", "2", "unknown"]
GoldShare = Literal["none", "some", "all"]
"""Share of its question's gold documents that a chunk covers: none, one of several, or the only one."""

VERDICTS: tuple[VerdictName, ...] = ("0", "1", "2", "unknown")
GOLD_SHARES: tuple[GoldShare, ...] = ("none", "some", "all")
"""In the order of the verdicts they deserve: 0, 1, 2."""

RESAMPLES = 1_000
"""Number of bootstrap samples; each needs a pass over all chunks."""

_Floats = NDArray[np.float64]
_Ints = NDArray[np.int64]


@dataclass(frozen=True, kw_only=True)
class VerdictWithGold:
    """One verdict with its chunk's gold share."""

    verdict: VerdictName
    confidence: float | None = None
    """Probability in [0, 1] that the judge gave its verdict; None without one."""
    p_needed: float | None = None
    is_calibrated: bool = False
    """Whether ``p_needed`` was fitted on judgements with known answers."""
    gold: GoldShare

    @property
    def score(self) -> float:
        """The verdict as a number; NaN if unknown."""
        return float("nan") if self.verdict == "unknown" else float(self.verdict)

    @property
    def graded(self) -> float:
        """P(needed); NaN without."""
        return self.uncalibrated if self.p_needed is None or self.verdict == "unknown" else self.p_needed

    @property
    def uncalibrated(self) -> float:
        """P(needed) by the confidence, which no curve changes: 1 less it for a 0, at least it for a 2; NaN without."""
        if self.confidence is None or self.verdict == "unknown":
            return float("nan")
        return 1.0 - self.confidence if self.verdict == "0" else self.confidence


Confusion = Mapping[VerdictName, Mapping[GoldShare, int]]
"""Numbers of chunks by verdict and gold share."""
JudgedQuestions = Mapping[str, Sequence[VerdictWithGold]]
"""Chunks by question id, those of all repeats together."""


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A figure with its 95 % interval from a bootstrap over questions, or dialogues, with all of their chunks.

    Shares of 0 and 1 have Wilson's interval for the effective number of chunks.
    """

    value: float
    low: float | None
    """None for a single question or dialogue."""
    high: float | None


@dataclass(frozen=True, kw_only=True)
class JudgeFigures:
    """Figures of one judge on one run."""

    questions: int
    """Number of questions with gold documents and a judged chunk."""
    ranked_questions: int
    """Number of those with both gold and other chunks."""
    chunks: int
    confusion: Confusion
    shares: Mapping[VerdictName, Estimate]
    """Share of each verdict among all chunks; they add up to 1."""
    kappa: Estimate | None
    """Cohen's kappa (1960) of 0, 1, 2 with none, some, all: 1 is agreement, 0 chance; unknown verdicts are left out.

    None if undefined: all verdicts and all gold shares fall into one class.
    """
    auc_within: Estimate | None
    """Mean of ``auc`` among the chunks of each ranked question; None without ranked questions.

    Chunks are rated by P(needed) if every known verdict has one, else by verdict.
    """
    auc_over: Estimate | None
    """``auc`` over the chunks of all questions."""
    zero_gap: Estimate | None
    """Share of 0 among gold chunks minus that among others, in [-1, 1], lower is better."""
    reliability: tuple[ReliabilityBin, ...]
    """Bins of P(needed), in ascending order; empty bins are left out.

    Empty if some verdict has no probability.
    """
    reliability_before: tuple[ReliabilityBin, ...] = ()
    """The same before calibration, for a judge that says its confidence; empty if nothing was calibrated."""
    calibration_error: Estimate | None
    """Expected calibration error (Naeini et al. 2015) over ten bins of equal width, in [0, 1], lower is better: the
    mean of abs(predicted - observed), weighted by chunks.
    """


def judged_questions(rows: Iterable[RunRow], questions: Iterable[EvalQuestion]) -> JudgedQuestions:
    """Collect the verdicts on the questions' own chunks, in the order of the rows.

    Questions without gold documents, chunks without a verdict and sub-runs are left out.
    """
    supporting = {question.id: question.supporting for question in questions if question.supporting}
    judged: defaultdict[str, list[VerdictWithGold]] = defaultdict(list)
    for row in rows:
        gold = frozenset(supporting.get(row.question_id, ()))
        for chunk in row.chunks if gold else ():
            verdict = next((name for name in VERDICTS if name == chunk.verdict), None)
            if chunk.depth == 0 and verdict is not None:
                held = gold.intersection(chunk.keys)
                share: GoldShare = "all" if held == gold else "some" if held else "none"
                judged[row.question_id].append(
                    VerdictWithGold(
                        verdict=verdict,
                        confidence=chunk.confidence,
                        p_needed=chunk.p_needed,
                        is_calibrated=chunk.p_calibrated,
                        gold=share,
                    )
                )
    return dict(judged)


def judges_of(
    rows: Iterable[RunRow], questions: Iterable[EvalQuestion], *, seed: int = 0
) -> Mapping[str, JudgeFigures]:
    """Compute ``judge_figures`` for each system with verdicts, in the order of the rows."""
    by_system: defaultdict[str, list[RunRow]] = defaultdict(list)
    for row in rows:
        by_system[row.system].append(row)
    known = tuple(questions)
    dialogues = {question.id: question.turn.dialogue_id for question in known if question.turn is not None}
    figures = {
        system: judge_figures(judged_questions(part, known), dialogues=dialogues, seed=seed)
        for system, part in by_system.items()
    }
    return {system: each for system, each in figures.items() if each is not None}


def judge_figures(
    judged: JudgedQuestions, *, dialogues: Mapping[str, str] | None = None, seed: int = 0, resamples: int = RESAMPLES
) -> JudgeFigures | None:
    """Compute all figures of one judge; None without verdicts. 500 questions of 3 chunks take about a second.

    Args:
        judged: The result of ``judged_questions`` for one system of one run.
        dialogues: Dialogue by question id, for questions that belong to one; a dialogue is drawn as a whole.
        seed: Seed of the bootstrap: same seed, same intervals.
        resamples: Number of bootstrap samples.
    """
    if not any(judged.values()):
        return None
    known = {question: chunks for question, chunks in judged.items() if chunks}
    groups = [(dialogues or {}).get(question, f"question {question}") for question in known]
    table = _Table(list(known.values()), groups)
    within = table.auc_within()
    estimates = _estimates(table, seed=seed, resamples=resamples)
    everything = np.arange(len(table.gold))
    counts = _confusion(table, everything)
    return JudgeFigures(
        questions=len(table.members),
        ranked_questions=len(within),
        chunks=len(table.gold),
        confusion={
            verdict: dict(zip(GOLD_SHARES, map(int, row), strict=True))
            for verdict, row in zip(VERDICTS, counts, strict=True)
        },
        shares={name: share for name in VERDICTS if (share := estimates[name])},
        kappa=estimates["kappa"],
        auc_within=_mean(within, seed=seed) if within else None,
        auc_over=estimates["auc_over"],
        zero_gap=estimates["zero_gap"],
        reliability=_bins(table, everything, table.rating) if table.is_graded else (),
        reliability_before=_bins(table, everything, table.before) if table.is_calibrated else (),
        calibration_error=estimates["calibration_error"],
    )


def auc(gold: Sequence[float | None], others: Sequence[float | None]) -> float:
    """Compute the area under the ROC curve: P(a gold chunk is rated above another), in [0, 1], 0.5 is chance.

    Ties count half (Mann-Whitney's U divided by the number of pairs), and so do pairs with an unknown rating (None,
    NaN).

    Raises:
        ValueError: One side is empty.
    """
    if not gold or not others:
        raise ValueError(f"An AUC needs ratings of both kinds, got {len(gold)} of gold and {len(others)} of others.")
    return _auc(np.array(gold, dtype=np.float64), np.array(others, dtype=np.float64))


def _auc(gold: _Floats, others: _Floats) -> float:
    known, ordered = gold[~np.isnan(gold)], np.sort(others[~np.isnan(others)])
    # Half the sum of both insertion points counts the ratings below, plus half of the equal ones.
    ranks = np.searchsorted(ordered, known, side="left") + np.searchsorted(ordered, known, side="right")
    pairs = len(gold) * len(others)
    return float((ranks.sum() + pairs - len(known) * len(ordered)) / (2 * pairs))


class _Table:
    """The chunks of all questions in columns.

    ``members[q]`` are the chunk indices of question q, ``groups[q]`` is the name of its bootstrap cluster.
    """

    def __init__(self, questions: Sequence[Sequence[VerdictWithGold]], groups: Sequence[str]) -> None:
        self.groups = groups
        chunks = [chunk for question in questions for chunk in question]
        ends = np.cumsum([len(question) for question in questions])
        self.members = np.split(np.arange(len(chunks)), ends[:-1])
        self.verdicts = np.array([VERDICTS.index(chunk.verdict) for chunk in chunks], dtype=np.int64)
        self.gold = np.array([GOLD_SHARES.index(chunk.gold) for chunk in chunks], dtype=np.int64)
        graded = np.array([chunk.graded for chunk in chunks])
        is_known = self.verdicts != VERDICTS.index("unknown")
        self.is_graded = bool(is_known.any() and not np.isnan(graded[is_known]).any())
        self.is_calibrated = self.is_graded and any(chunk.is_calibrated for chunk in chunks)
        self.before = np.array([chunk.uncalibrated for chunk in chunks])
        self.rating = graded if self.is_graded else np.array([chunk.score for chunk in chunks])

    def auc(self, at: _Ints) -> float:
        is_gold, rating = self.gold[at] > 0, self.rating[at]
        return _auc(rating[is_gold], rating[~is_gold]) if 0 < is_gold.sum() < len(at) else float("nan")

    def auc_within(self) -> list[tuple[float, str]]:
        """Return the AUC and group of each question with both gold and other chunks."""
        found = ((self.auc(at), group) for at, group in zip(self.members, self.groups, strict=True))
        return [(value, group) for value, group in found if not np.isnan(value)]

    def chunks_by_group(self) -> list[_Ints]:
        """Return the chunk indices of each group."""
        places: defaultdict[str, list[_Ints]] = defaultdict(list)
        for at, group in zip(self.members, self.groups, strict=True):
            places[group].append(at)
        return [np.concatenate(own) for own in places.values()]


def _estimates(table: _Table, *, seed: int, resamples: int) -> Mapping[str, Estimate | None]:
    statistics: dict[str, Callable[[_Ints], float]] = {
        "kappa": lambda at: _kappa(_confusion(table, at)),
        "auc_over": table.auc,
        "zero_gap": partial(_zero_gap, table),
        "calibration_error": partial(_calibration_error, table),
        **{name: partial(_share, table, code) for code, name in enumerate(VERDICTS)},
    }
    groups = table.chunks_by_group()
    count = len(groups)
    drawn = np.random.default_rng(seed).integers(0, count, (resamples if count > 1 else 0, count))
    places = [np.concatenate([groups[group] for group in row]) for row in drawn]
    everything = np.arange(len(table.gold))
    estimates = {
        name: _estimate(statistic(everything), [statistic(at) for at in places])
        for name, statistic in statistics.items()
    }
    certain = {name: each for name, each in estimates.items() if name in VERDICTS and each and each.value in (0.0, 1.0)}
    return estimates | {name: _wilson_estimate(each.value, groups) for name, each in certain.items()}


def _wilson_estimate(share: float, groups: Sequence[_Ints]) -> Estimate:
    """Estimate a share of 0 or 1, which no resample changes, by Wilson's interval."""
    sizes = np.array([len(group) for group in groups], dtype=np.float64)
    low, high = wilson_bounds(share, ClusterTotals(share * sizes, sizes).observations)
    return Estimate(value=share, low=low, high=high)


def _estimate(value: float, resampled: Sequence[float]) -> Estimate | None:
    """Estimate a figure; None if it is undefined. Resamples in which it is undefined are skipped."""
    if np.isnan(value):
        return None
    defined = [each for each in resampled if not np.isnan(each)]
    low, high = (float(bound) for bound in np.quantile(defined, (0.025, 0.975))) if defined else (None, None)
    return Estimate(value=value, low=low, high=high)


def _mean(values: Sequence[tuple[float, str]], *, seed: int) -> Estimate:
    clusters = [group for _, group in values]
    interval = mean_interval([value for value, _ in values], scale="share", clusters=clusters, seed=seed)
    return Estimate(value=interval.mean, low=interval.low, high=interval.high)


def _confusion(table: _Table, at: _Ints) -> _Ints:
    """Count chunks; one row per verdict, one column per gold share, in the order of the constants."""
    places = table.verdicts[at] * len(GOLD_SHARES) + table.gold[at]
    return np.bincount(places, minlength=len(VERDICTS) * len(GOLD_SHARES)).reshape(len(VERDICTS), len(GOLD_SHARES))


def _share(table: _Table, code: int, at: _Ints) -> float:
    return float((table.verdicts[at] == code).mean())


def _kappa(confusion: _Ints) -> float:
    known = confusion[: len(GOLD_SHARES)]
    if np.count_nonzero(known) == 0 or np.count_nonzero(known.sum(axis=0) + known.sum(axis=1)) == 1:
        return float("nan")
    return float(cohens_kappa(known, return_results=False))


def _zero_gap(table: _Table, at: _Ints) -> float:
    is_gold, is_zero = table.gold[at] > 0, table.verdicts[at] == VERDICTS.index("0")
    if not 0 < is_gold.sum() < len(at):
        return float("nan")
    return float(is_zero[is_gold].mean() - is_zero[~is_gold].mean())


def _calibration_error(table: _Table, at: _Ints) -> float:
    return calibration_error(_bins(table, at, table.rating) if table.is_graded else ())


def _bins(table: _Table, at: _Ints, rating: _Floats) -> tuple[ReliabilityBin, ...]:
    at = at[~np.isnan(rating[at])]
    return reliability_bins(rating[at], (table.gold[at] > 0).astype(np.float64))
