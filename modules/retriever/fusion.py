"""Rank fusion as Milvus Lite computes it: the same sums in the same order, and equal scores in its order."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any, cast

Ranked = Sequence[tuple[int, float]]
"""Rows and scores of one field, best first."""
Fusion = Callable[[Sequence[Ranked], Sequence[str]], dict[int, float]]
"""A function of the hits of each field and the metric of each: scores by row."""


def rrf(params: Mapping[str, object], ranked: Sequence[Ranked], metrics: Sequence[str]) -> dict[int, float]:
    """Sum 1 / (k + rank) over the fields, ranks from 1."""
    k = float(str(params["k"]))
    fused: dict[int, float] = {}
    for hits in ranked:
        for rank, (row, _) in enumerate(hits, start=1):
            fused[row] = fused.get(row, 0.0) + 1.0 / (k + rank)
    return fused


def weighted(params: Mapping[str, object], ranked: Sequence[Ranked], metrics: Sequence[str]) -> dict[int, float]:
    """Sum weight times scaled score over the fields."""
    weights = cast(Sequence[float], params["weights"])
    fused: dict[int, float] = {}
    for hits, weight, metric in zip(ranked, weights, metrics, strict=True):
        scaled = _SCALES[metric]
        for row, score in hits:
            fused[row] = fused.get(row, 0.0) + weight * scaled(score)
    return fused


PAGERANK = "PAGERANK"
"""The "metric" of passages ranked by a graph: PageRank as a share of the best."""

_SCALES: Mapping[str, Callable[[float], float]] = {
    "COSINE": lambda score: (1.0 + score) * 0.5,
    "IP": lambda score: 0.5 + math.atan(score) / math.pi,
    "BM25": lambda score: 2.0 * math.atan(score) / math.pi,
    "L2": lambda distance: 1.0 - 2.0 * math.atan(distance) / math.pi,
    PAGERANK: lambda score: score,
}


def fusion_for(ranker: Mapping[str, Any]) -> Fusion | None:
    """Return the fusion of a ranker in Milvus's terms; None for one that needs the store."""
    strategy, params = ranker.get("strategy"), ranker.get("params", {})
    if strategy == "weighted":  # without scaling, Lite sorts some metrics the other way round
        return partial(weighted, params) if params.get("norm_score") is True else None
    return partial(rrf, params) if strategy == "rrf" else None


def fuse(fusion: Fusion, fields: Sequence[tuple[str, Ranked]], limit: int, id_of: Callable[[int], str]) -> Ranked:
    """Return at most ``limit`` rows and fused scores, best first, equal ones by id; ``fields`` are (metric, hits)."""
    fused = fusion([hits for _, hits in fields], [metric for metric, _ in fields])
    return sorted(fused.items(), key=lambda hit: (-hit[1], id_of(hit[0])))[:limit]
