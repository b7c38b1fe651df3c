"""Agreement of annotators: Cohen's kappa of each pair, with intervals over questions."""

from __future__ import annotations

import itertools
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from statsmodels.stats.inter_rater import cohens_kappa

from ...modules.judge.contract import Score
from .store import FoundPassage, Label, newest_labels

RESAMPLES = 1_000
_SCORES = 3

Pair = tuple[str, Score, Score]
"""Question id, and the two scores of one passage."""


@dataclass(frozen=True, kw_only=True)
class Agreement:
    """Agreement of two raters on the passages that both scored."""

    one: str
    two: str
    passages: int
    questions: int
    same: float
    """Share of passages with the same score, in [0, 1]."""
    kappa: float | None
    """Cohen's kappa (1960): 1 is agreement, 0 is chance; None if all scores are the same one."""
    low: float | None
    """Lower end of its 95 % interval from a bootstrap over questions; None for a single question."""
    high: float | None


def agreements(labels: Iterable[Label], *, seed: int = 0) -> list[Agreement]:
    """Compare the newest labels of every two annotators who scored a passage in common, by name."""
    scores: defaultdict[str, dict[str, tuple[FoundPassage, Score]]] = defaultdict(dict)
    for (key, annotator), label in newest_labels(labels).items():
        if label.score is not None:
            scores[annotator][key] = (label.passage, label.score)
    found = []
    for one, two in itertools.combinations(sorted(scores), 2):
        shared = [key for key in scores[one] if key in scores[two]]
        pairs = [(scores[one][key][0].question_id, scores[one][key][1], scores[two][key][1]) for key in shared]
        if pairs:
            found.append(agreement_of(one, two, pairs, seed=seed))
    return found


def agreement_of(one: str, two: str, pairs: Sequence[Pair], *, seed: int = 0) -> Agreement:
    """Compare two raters; ``pairs`` has one or more passages with both their scores."""
    by_question: dict[str, NDArray[np.int64]] = {}
    for question, first, second in pairs:
        by_question.setdefault(question, np.zeros((_SCORES, _SCORES), dtype=np.int64))[first, second] += 1
    tables = np.array(list(by_question.values()))
    whole = tables.sum(axis=0)
    count = len(tables)
    drawn = np.random.default_rng(seed).integers(0, count, (RESAMPLES if count > 1 else 0, count))
    resampled = [value for row in drawn if (value := kappa_of(tables[row].sum(axis=0))) is not None]
    low, high = (float(bound) for bound in np.quantile(resampled, (0.025, 0.975))) if resampled else (None, None)
    return Agreement(
        one=one,
        two=two,
        passages=len(pairs),
        questions=count,
        same=float(np.trace(whole) / whole.sum()),
        kappa=kappa_of(whole),
        low=low,
        high=high,
    )


def kappa_of(table: NDArray[np.int64] | NDArray[np.float64]) -> float | None:
    """Return Cohen's kappa of a square table of counts; None if all counts are in one class, or there are none."""
    if np.count_nonzero(table.sum(axis=0) + table.sum(axis=1)) < 2:
        return None
    return float(cohens_kappa(table, return_results=False))


def counts_by_annotator(labels: Iterable[Label]) -> Mapping[str, Mapping[str, int]]:
    """Count each annotator's newest labels by score ("2", "1", "0", "cannot tell")."""
    counts: dict[str, dict[str, int]] = {}
    for (_, annotator), label in newest_labels(labels).items():
        row = counts.setdefault(annotator, dict.fromkeys(("2", "1", "0", "cannot tell"), 0))
        row["cannot tell" if label.score is None else str(label.score)] += 1
    return counts
