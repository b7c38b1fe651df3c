"""Figures of a judge by labels, weighed so that they hold for all passages of the run.

Passages are labelled as often for each verdict. Counts are those of the labelled passages; shares and kappa weigh each
verdict by its share among all passages that the system judged.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from ...modules.judge.contract import Score
from ..labels.agreement import kappa_of
from ..labels.judgements import Judgement
from ..labels.passages import found_passages
from ..labels.store import FoundPassage
from ..rows.store import RunRow
from ..rows.trees import TreeStore
from .judge_figures import RESAMPLES, VERDICTS, Estimate, VerdictName

_Rows = NDArray[np.float64]
"""One labelled passage a row: place of the verdict in ``VERDICTS``, score, weight, P(needed) or NaN."""
SCORES: tuple[Score, ...] = (0, 1, 2)


@dataclass(frozen=True, kw_only=True)
class LabelledFigures:
    """Figures of one judge by labels."""

    passages: int
    """Number of labelled passages."""
    questions: int
    """Number of the data set's questions that they belong to."""
    counts: Mapping[VerdictName, Mapping[Score, int]]
    """Numbers of labelled passages by verdict and label."""
    same: Estimate
    """Share of passages whose verdict is the label."""
    kept: Estimate | None
    """Share of needed passages (label 1 or 2) with verdict 1 or 2; None without labels of needed passages."""
    kappa: Estimate | None
    """Cohen's kappa of verdicts and labels, unknown verdicts left out; None if undefined."""
    auc: Estimate | None
    """P(a needed passage has a higher P(needed) than another one); None where some passage has no P(needed)."""


def labelled_figures(
    rows: Sequence[RunRow], trees: TreeStore, judgements: Sequence[Judgement], *, seed: int = 0
) -> Mapping[str, LabelledFigures]:
    """Compute the figures of each system with verdicts on labelled passages, in the order of the rows; reads the trees.

    Intervals come from a bootstrap over questions.

    Args:
        rows: Rows of one run.
        trees: The trees of that run.
        judgements: Settled labels.
        seed: Seed of the bootstrap.

    Raises:
        LoadingError: A tree is damaged.
    """
    scores = {each.passage.id: each.score for each in judgements}
    by_system: dict[str, list[FoundPassage]] = {}
    for passage in found_passages(rows, trees) if scores else ():
        if passage.verdict in VERDICTS:
            by_system.setdefault(passage.system, []).append(passage)
    figures = {system: _figures(found, scores, seed=seed) for system, found in by_system.items()}
    return {system: each for system, each in figures.items() if each is not None}


def _figures(found: Sequence[FoundPassage], scores: Mapping[str, Score], *, seed: int) -> LabelledFigures | None:
    labelled = [(passage, scores[passage.id]) for passage in found if passage.id in scores]
    if not labelled:
        return None
    there, with_label = Counter(each.verdict for each in found), Counter(each.verdict for each, _ in labelled)
    by_question: dict[str, list[tuple[float, float, float, float]]] = {}
    counts = {verdict: dict.fromkeys(SCORES, 0) for verdict in VERDICTS}
    for passage, score in labelled:
        verdict = next(name for name in VERDICTS if name == passage.verdict)
        counts[verdict][score] += 1
        weight = there[passage.verdict] / with_label[passage.verdict]
        p_needed = math.nan if passage.p_needed is None else passage.p_needed
        by_question.setdefault(passage.question_id, []).append((VERDICTS.index(verdict), score, weight, p_needed))
    questions = [np.array(each) for each in by_question.values()]
    same = _estimate(_same, questions, seed=seed)
    assert same is not None  # there is a labelled passage
    return LabelledFigures(
        passages=len(labelled),
        questions=len(questions),
        counts=counts,
        same=same,
        kept=_estimate(_kept, questions, seed=seed),
        kappa=_estimate(_kappa, questions, seed=seed),
        auc=_estimate(_auc, questions, seed=seed),
    )


def _estimate(statistic: Callable[[_Rows], float | None], questions: Sequence[_Rows], *, seed: int) -> Estimate | None:
    value, count = statistic(np.concatenate(questions)), len(questions)
    if value is None:
        return None
    drawn = np.random.default_rng(seed).integers(0, count, (RESAMPLES if count > 1 else 0, count))
    again = (statistic(np.concatenate([questions[at] for at in row])) for row in drawn)
    resampled = [each for each in again if each is not None]
    low, high = (float(bound) for bound in np.quantile(resampled, (0.025, 0.975))) if resampled else (None, None)
    return Estimate(value=value, low=low, high=high)


def _same(rows: _Rows) -> float:
    return float(rows[rows[:, 0] == rows[:, 1], 2].sum() / rows[:, 2].sum())


def _kept(rows: _Rows) -> float | None:
    needed = rows[rows[:, 1] > 0]
    is_kept = (needed[:, 0] == VERDICTS.index("1")) | (needed[:, 0] == VERDICTS.index("2"))
    return float(needed[is_kept, 2].sum() / needed[:, 2].sum()) if len(needed) else None


def _kappa(rows: _Rows) -> float | None:
    table = np.zeros((len(SCORES), len(SCORES)))
    known = rows[rows[:, 0] < len(SCORES)]
    np.add.at(table, (known[:, 0].astype(int), known[:, 1].astype(int)), known[:, 2])
    return kappa_of(table)


def _auc(rows: _Rows) -> float | None:
    is_needed = rows[:, 1] > 0
    needed, others = rows[is_needed], rows[~is_needed]
    if not len(needed) or not len(others) or np.isnan(rows[:, 3]).any():
        return None
    others = others[np.argsort(others[:, 3])]
    below = np.concatenate(([0.0], np.cumsum(others[:, 2])))
    # Half the sum of both insertion points weighs the others below, plus half of the equal ones.
    places = (np.searchsorted(others[:, 3], needed[:, 3], side=side) for side in ("left", "right"))
    beaten = sum(below[place] for place in places) / 2
    return float((beaten * needed[:, 2]).sum() / (needed[:, 2].sum() * below[-1]))
