"""How often a comparison shows a difference where there is none, with and without clusters of questions."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from judgetree.evaluation.metrics.intervals import wilson_bounds
from judgetree.evaluation.metrics.statistics import PairedTest, compare_paired

from .measurement import Row

COMPARISONS = 2_000
QUESTIONS = 200
CLUSTER = 5
"""Questions of a cluster."""
NOMINAL = 0.05


def measure() -> list[Row]:
    """Compare two systems of the same quality many times: each of them is right with probability .5."""
    return list(_rows())


def _rows() -> Iterator[Row]:
    alone = (
        f"{COMPARISONS:,} comparisons of two equal systems, {QUESTIONS} questions: share in which a difference is shown"
    )
    strong = f"{alone}, in clusters of {CLUSTER} whose questions are right or wrong together"
    yield _row(f"{alone}, exact McNemar test", _share(1, "mcnemar", is_told=False), holds=True)
    yield _row(f"{strong}, permutation test of clusters", _share(CLUSTER, "permutation", is_told=True), holds=True)
    yield _row(f"{strong}, as if they stood alone", _share(CLUSTER, "mcnemar", is_told=False), holds=False)


def _row(what: str, share: float, *, holds: bool) -> Row:
    low, high = wilson_bounds(share, COMPARISONS)
    return Row(
        what,
        f"{share:.3f}",
        f"≤ {NOMINAL} within the interval" if holds else "",
        holds=bool(low <= NOMINAL) if holds else None,
        values=(share,),
        interval=(low, high),
    )


def _share(cluster: int, test: PairedTest, *, is_told: bool) -> float:
    rng = np.random.default_rng(5)
    groups = [place // cluster for place in range(QUESTIONS)] if is_told else None
    shown = 0
    for _ in range(COMPARISONS):
        a, b = (np.repeat(rng.integers(0, 2, QUESTIONS // cluster), cluster).astype(float) for _ in "ab")
        shown += compare_paired(a.tolist(), b.tolist(), metric="EM", test=test, groups=groups).is_shown
    return shown / COMPARISONS
