"""Rank fusion as Milvus Lite computes it: the same sums in the same order, and equal scores in its order."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence

Ranked = Sequence[tuple[int, float]]
"""Rows and scores of one field, best first."""
Fusion = Callable[[Mapping[str, object], Sequence[Ranked], Sequence[str]], dict[int, float]]
"""A function of a ranker's parameters, the hits of each field and the metric of each: scores by row."""


def rrf(params: Mapping[str, object], ranked: Sequence[Ranked], metrics: Sequence[str]) -> dict[int, float]:
    """Sum 1 / (k + rank) over the fields, ranks from 1."""
    k = float(str(params["k"]))
    fused: dict[int, float] = {}
    for hits in ranked:
        for rank, (row, _) in enumerate(hits, start=1):
            fused[row] = fused.get(row, 0.0) + 1.0 / (k + rank)
    return fused


def weighted(params: Mapping[str, object], ranked: Sequence[Ranked], metrics: Sequence[str]) -> dict[int, float]:
    """Sum weight times scaled score over the fields.

    Raises:
        KeyError: Lite scales scores of a metric otherwise, or is not to scale them.
    """
    weights = params["weights"]
    if params["norm_score"] is not True or not isinstance(weights, Sequence):
        raise KeyError("norm_score")
    fused: dict[int, float] = {}
    for hits, weight, metric in zip(ranked, weights, metrics, strict=True):
        scaled = _SCALES[metric]
        for row, score in hits:
            fused[row] = fused.get(row, 0.0) + weight * scaled(score)
    return fused


_SCALES: Mapping[str, Callable[[float], float]] = {
    "COSINE": lambda score: (1.0 + score) * 0.5,
    "IP": lambda score: 0.5 + math.atan(score) / math.pi,
    "BM25": lambda score: 2.0 * math.atan(score) / math.pi,
    "L2": lambda distance: 1.0 - 2.0 * math.atan(distance) / math.pi,
}

FUSIONS: Mapping[str, Fusion] = {"rrf": rrf, "weighted": weighted}
"""Fusions by the name of a ranker's strategy in Milvus; rankers with other strategies need the store."""


def fuse(fusion: Fusion, params: Mapping[str, object], fields: Sequence[tuple[str, Ranked]], limit: int) -> Ranked:
    """Return at most ``limit`` rows with their fused scores, best first; ``fields`` are (metric, hits)."""
    fused = fusion(params, [hits for _, hits in fields], [metric for metric, _ in fields])
    return sorted(fused.items(), key=lambda hit: -hit[1])[:limit]
