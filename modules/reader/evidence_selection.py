"""The choice of passages that are useful and unlike each other, within a limit of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from ..config.reading import EvidenceRanker
from ..retriever.selection import OBJECTIVES, SELECTIONS, Candidates, greedy_within
from .word_similarity import similarity_by_words

RANK_DECAY = 0.85
"""Relevance of a passage, as a share of what it would be one rank higher; chosen on 100 HotpotQA questions."""


def select_evidence(
    ranker: EvidenceRanker, texts: Sequence[str], worths: Sequence[float], tokens: Sequence[int], most: int
) -> list[int]:
    """Choose passages that together have up to ``most`` tokens; returns their places, the best one first.

    The relevance of a passage is (1 + worth) times ``RANK_DECAY`` to the power of its place, scaled to 1 for the first;
    the similarity of two is the cosine of their words. Empty if none fits. No model is called.

    Args:
        ranker: The objective. The value of what ``facility_location`` and ``log_det`` choose is at least (1 - 1/e) / 2
            of the best choice's (see ``greedy_within``).
        texts: Texts of the passages, best first.
        worths: Of each passage, what its verdict is worth, from 0 to 2; falling.
        tokens: Of each passage; 0 counts as 1.
        most: The limit.
    """
    relevance = (1 + np.asarray(worths, dtype=np.float64)) * RANK_DECAY ** np.arange(len(texts))
    relevance /= relevance.max(initial=1.0)
    candidates = Candidates(relevance=relevance, similarity=similarity_by_words(texts))
    make = partial(OBJECTIVES[ranker], candidates, SELECTIONS[ranker])
    return sorted(greedy_within(make, [float(max(size, 1)) for size in tokens], float(most)))
