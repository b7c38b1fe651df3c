"""What the differences between replayed policies are worth: means, intervals and paired tests."""

from __future__ import annotations

import itertools
from collections.abc import Sequence

import numpy as np
import pandas as pd

from ..metrics.intervals import mean_interval
from ..metrics.many_means import means_of, sign_flip_p_values
from ..metrics.statistics import compare_paired, holm

BINARY, GRADED = ("complete", "em"), ("recall", "area", "f1")
"""Scores of a question: 0 or 1, and in [0, 1]. ``em`` and ``f1`` are there where readers answered."""
_PLAIN = ("calls", "sub_runs")
_BY = ["budget", "policy"]


def summarize(rows: pd.DataFrame, *, baseline: str = "breadth") -> pd.DataFrame:
    """Compute means over questions by budget and policy, and compare each policy with the baseline on the same ones.

    Returns:
        A row for each budget and policy: ``complete``, ``recall``, ``area``, ``calls``, ``sub_runs``, ``coverage``
        (share of the questions that asked nothing that is not recorded), and where ``rows`` has them ``em`` and ``f1``
        over those questions, ``answered``, that have an answer of every policy within every budget. Of each score
        there are ``_low`` and ``_high`` (95 %: Wilson for shares, else bootstrap); and against the baseline ``_gain``
        with ``_gain_low``, ``_gain_high`` (Bonett and Price; bootstrap) and ``_p`` (McNemar; permutation), adjusted by
        Holm over all policies and budgets, those of complete and em, on which conclusions rest, together; empty for the
        baseline itself. Those of complete have no prefix: ``low``,
        ``high``, ``gain``, ``gain_low``, ``gain_high``, ``p``.

    Raises:
        KeyError: The baseline was not played.
    """
    budgets, policies = sorted(set(rows["budget"])), list(dict.fromkeys(rows["policy"]))
    if baseline not in policies:
        raise KeyError(baseline)
    cells = pd.MultiIndex.from_product([budgets, policies], names=_BY)
    means = rows.groupby(_BY, sort=False)[["misses", *_PLAIN]]
    summary = means.mean()[[*_PLAIN]].reindex(cells)
    summary["coverage"] = means.agg(lambda each: float((each == 0).mean()))["misses"]
    for score in (*BINARY, *GRADED):
        if score not in rows:
            continue
        scores = rows.pivot_table(
            index="question", columns=_BY, values=score, sort=False, dropna=False, aggfunc="first"
        )
        scores = scores[cells].dropna().astype(float)
        if score == "em":
            summary["answered"] = len(scores)
        if len(scores):
            _add(summary, score, scores, baseline)
    _correct(summary, ["p", "em_p"])
    for score in GRADED:
        _correct(summary, [f"{score}_p"])
    return _ordered(summary.reset_index(), rows)


def _add(summary: pd.DataFrame, score: str, scores: pd.DataFrame, baseline: str) -> None:
    """Add the columns of one score, of which ``scores`` has a row for each question and a column for each cell."""
    prefix = "" if score == "complete" else f"{score}_"
    means = pd.DataFrame(_intervals(scores, score), index=scores.columns)
    summary[score] = means["mean"]
    summary[[f"{prefix}low", f"{prefix}high"]] = means[["low", "high"]]
    others = [cell for cell in scores if cell[1] != baseline]
    if not others:
        return
    against = scores[[(budget, baseline) for budget, _ in others]]
    gains = pd.DataFrame(_gains(scores[others], against, score), index=scores[others].columns)
    summary[[f"{prefix}gain", f"{prefix}gain_low", f"{prefix}gain_high"]] = gains[["mean", "low", "high"]]
    summary[f"{prefix}p"] = gains["p"]


def _correct(summary: pd.DataFrame, columns: Sequence[str]) -> None:
    """Correct the p values of some columns for their number, all of them together."""
    columns = [each for each in columns if each in summary]
    values = summary[columns].to_numpy(dtype=float, copy=True)
    is_there = ~np.isnan(values)
    values[is_there] = holm(values[is_there])
    summary[columns] = values


_Columns = dict[str, Sequence[float | None]]


def _intervals(scores: pd.DataFrame, score: str) -> _Columns:
    if score in GRADED:
        means = means_of(scores.to_numpy())
        return {"mean": list(means.mean), "low": list(means.low), "high": list(means.high)}
    shares = [mean_interval(scores[each].tolist(), scale="share") for each in scores]
    return {
        "mean": [each.mean for each in shares],
        "low": [each.low for each in shares],
        "high": [each.high for each in shares],
    }


def _gains(scores: pd.DataFrame, against: pd.DataFrame, score: str) -> _Columns:
    """Compare columns with those of the baseline at the same places; p values are those of each test alone."""
    ours, theirs = scores.to_numpy(), against.to_numpy()
    if score in GRADED:
        means = means_of(ours - theirs)
        p_values = sign_flip_p_values(ours - theirs)
        return {"mean": list(means.mean), "low": list(means.low), "high": list(means.high), "p": list(p_values)}
    compared = [compare_paired(ours[:, at], theirs[:, at], metric=score, test="mcnemar") for at in range(ours.shape[1])]
    return {
        "mean": [each.difference.mean for each in compared],
        "low": [each.difference.low for each in compared],
        "high": [each.difference.high for each in compared],
        "p": [each.p_value for each in compared],
    }


def _ordered(summary: pd.DataFrame, rows: pd.DataFrame) -> pd.DataFrame:
    scores = [score for score in ("complete", "recall", "area", "em", "f1") if score in rows]
    prefixes = ["" if score == "complete" else f"{score}_" for score in scores]
    ends = ("low", "high", "gain", "gain_low", "gain_high", "p")
    own = [[score, *(f"{prefix}{end}" for end in ends)] for score, prefix in zip(scores, prefixes, strict=True)]
    names = [*_BY, *own[0], *_PLAIN, "coverage", *itertools.chain(*own[1:]), "answered"]
    return summary[[name for name in names if name in summary]].astype({"budget": int})


def is_shown(row: pd.Series[float], score: str = "complete") -> bool:
    """Return whether a row of a summary shows a difference: p below .05 and an interval that excludes 0."""
    prefix = "" if score == "complete" else f"{score}_"
    low, high, p = (row.get(f"{prefix}{end}", np.nan) for end in ("gain_low", "gain_high", "p"))
    return bool(p < 0.05 and (low > 0 or high < 0))
