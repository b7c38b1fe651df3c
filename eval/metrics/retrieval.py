"""Retrieval metrics: supporting recall, all supporting documents found, discounted gain, reciprocal rank.

Keys name documents (``EvalQuestion.supporting``). Several chunks of a document count once, at the rank of the first, so
``k`` counts documents. Scores of a whole tree take no ``k``: the chunks of several queries have no common ranking.

A question without gold keys has no score; leave it out of means.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ..datasets.questions import EvalQuestion

GoldMark = Literal["fact", "document", ""]
"""fact: contains a supporting fact. document: from a gold document with unknown facts. "": neither."""

FoundKey = str | tuple[str, ...]
"""Key of a found chunk's document; a tuple where the chunk stands for several documents, which then share its rank."""

_ENOUGH = 0.5
"""Share of a fact's characters that a chunk must contain where chunking cut the fact."""


def gold_mark(question: EvalQuestion, key: str, text: str) -> GoldMark:
    """Mark a chunk of the document ``key``.

    A chunk contains a fact wholly, or at least half of its characters at the chunk's start or end. White space and case
    are ignored.
    """
    if key not in question.gold:
        return ""
    facts = [words for document, words in question.facts if document == key]
    if not facts:
        return "document"
    folded = _folded(text)
    return "fact" if any(_holds(folded, _folded(words)) for words in facts) else ""


def best_gold_mark(question: EvalQuestion, keys: Iterable[str], text: str) -> GoldMark:
    """Return the best mark of a chunk that stands for the documents ``keys``; ``""`` without any."""
    return max((gold_mark(question, key, text) for key in keys), default="")  # "fact" > "document" > ""


def _holds(text: str, words: str) -> bool:
    least = max(1, round(len(words) * _ENOUGH))
    return words in text or _overlap(text, words, least) or _overlap(words, text, least)


def _overlap(first: str, second: str, least: int) -> bool:
    """Whether the last ``least`` or more characters of ``first`` begin ``second``."""
    return any(first.endswith(second[:size]) for size in range(least, min(len(first), len(second)) + 1))


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


@dataclass(frozen=True, kw_only=True)
class RetrievalScores:
    """Retrieval scores of one question; each in [0, 1], higher is better."""

    recall_at: Mapping[int, float]
    """By k: share of the gold keys among the first k documents."""
    all_at: Mapping[int, float]
    """By k: 1 where all gold keys are among the first k documents, else 0."""
    ndcg_at: Mapping[int, float]
    """By k: discounted gain of the gold keys among the first k documents, as a share of that of the best order."""
    reciprocal_rank: float
    """1 / rank (from 1) of the first gold key at the root; 0 if the root found none."""
    tree_recall: float
    """Share of the gold keys found anywhere in the tree."""
    tree_all: float
    """1 if all gold keys were found anywhere in the tree, else 0."""


def supporting_recall(found: Iterable[FoundKey], gold: Collection[str], *, k: int | None = None) -> float:
    """Compute the share of ``gold`` among the first ``k`` distinct keys of ``found``.

    Args:
        found: Keys, best first; in any order without ``k``.
        gold: Keys that the question needs, at least one; repetitions count once.
        k: Number of documents to count, 1 or more; None counts all.

    Raises:
        ValueError: ``k`` is below 1.
    """
    if k is not None and k < 1:
        raise ValueError(f"k is {k}; it must be 1 or more, or None for everything that was found.")
    wanted = set(gold)
    return len(wanted.intersection(itertools.chain.from_iterable(_ranks(found)[:k]))) / len(wanted)


def all_supporting(found: Iterable[FoundKey], gold: Collection[str], *, k: int | None = None) -> float:
    """Return 1.0 if all of ``gold`` is among the first ``k`` distinct keys of ``found``, else 0.0.

    Raises:
        ValueError: ``k`` is below 1.
    """
    return float(supporting_recall(found, gold, k=k) == 1.0)


def normalized_gain(ranked: Iterable[FoundKey], gold: Collection[str], *, k: int) -> float:
    """Return nDCG@k with gains of 0 and 1 (Järvelin and Kekäläinen, 2002): 1.0 where gold keys come first.

    >>> round(normalized_gain(["gold", "x", "other"], ["gold", "other"], k=3), 4)
    0.9197

    Args:
        ranked: Keys, best first.
        gold: Keys that the question needs, at least one; repetitions count once.
        k: Number of documents to count, 1 or more.
    """
    wanted = set(gold)
    gains = (len(wanted.intersection(keys)) / math.log2(rank + 1) for rank, keys in enumerate(_ranks(ranked)[:k], 1))
    best = sum(1.0 / math.log2(rank + 1) for rank in range(1, min(k, len(wanted)) + 1))
    return min(1.0, sum(gains) / best)  # a chunk that stands for several gold documents has them at one rank


def reciprocal_rank(ranked: Iterable[FoundKey], gold: Collection[str]) -> float:
    """Return 1 / rank (from 1) of the first gold key; 0.0 if none was found.

    The mean over questions is the MRR (Voorhees, TREC-8 question answering track, 1999).

    >>> reciprocal_rank(["x", "x", "gold"], ["gold"])
    0.5
    """
    ranks = (rank for rank, keys in enumerate(_ranks(ranked), start=1) if any(key in gold for key in keys))
    return 1.0 / next(ranks, float("inf"))


def score_retrieval(
    root: Sequence[FoundKey], tree: Iterable[FoundKey], gold: Collection[str], *, ks: Iterable[int] = (3, 10)
) -> RetrievalScores | None:
    """Compute all retrieval scores of one question; None without gold.

    Args:
        root: Keys that the question itself retrieved, best first.
        tree: Keys that any query of the tree found, the root's included, in any order.
        gold: Keys that the question needs.
        ks: Cut-offs of recall@k, all@k and ndcg@k, each 1 or more.

    Raises:
        ValueError: Some k is below 1.
    """
    if not gold:
        return None
    everything, cuts = list(tree), tuple(ks)
    return RetrievalScores(
        recall_at={k: supporting_recall(root, gold, k=k) for k in cuts},
        all_at={k: all_supporting(root, gold, k=k) for k in cuts},
        ndcg_at={k: normalized_gain(root, gold, k=k) for k in cuts},
        reciprocal_rank=reciprocal_rank(root, gold),
        tree_recall=supporting_recall(everything, gold),
        tree_all=all_supporting(everything, gold),
    )


def _ranks(found: Iterable[FoundKey]) -> list[list[str]]:
    """Return the documents that are new at each rank; a chunk without a new one takes no rank."""
    seen: set[str] = set()
    ranks = []
    for keys in found:
        new = [key for key in ((keys,) if isinstance(keys, str) else keys) if key not in seen]
        seen.update(new)
        if new:
            ranks.append(new)
    return ranks
