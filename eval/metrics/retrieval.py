"""How much of what a question needs was found: supporting recall, all supporting found, reciprocal rank.

Keys name documents (``EvalQuestion.supporting``). Several chunks of a document are one hit, at the place of the first
of them, so that k counts documents. The same functions serve the chunks of the root, and those of the whole tree: there
``k`` is left out, since what several queries found is a set with no one ranking.

A question without gold keys has no score: None, which is to be left out of a mean and never counted as 0.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal

from ..datasets.questions import EvalQuestion

GoldMark = Literal["fact", "document", ""]
"""fact: holds the words of a supporting fact. document: its document is gold, and no more is known. "": neither."""

_ENOUGH = 0.5
"""Share of a fact's words that a chunk must hold where a cut goes through them."""


def gold_mark(question: EvalQuestion, key: str, text: str) -> GoldMark:
    """How a chunk of the document ``key`` is marked.

    A chunk holds a fact that stands in it, or of which at least half the characters stand at its beginning or end.
    White space and capitals do not count.
    """
    if key not in question.supporting:
        return ""
    facts = [words for document, words in question.facts if document == key]
    if not facts:
        return "document"
    folded = _folded(text)
    return "fact" if any(_holds(folded, _folded(words)) for words in facts) else ""


def _holds(text: str, words: str) -> bool:
    least = max(1, round(len(words) * _ENOUGH))
    return words in text or _overlap(text, words, least) or _overlap(words, text, least)


def _overlap(first: str, second: str, least: int) -> bool:
    """Whether at least so many last characters of the one are the first ones of the other."""
    return any(first.endswith(second[:size]) for size in range(least, min(len(first), len(second)) + 1))


def _folded(text: str) -> str:
    return " ".join(text.split()).casefold()


@dataclass(frozen=True, kw_only=True)
class RetrievalScores:
    """What was found of a question's gold keys; every figure in [0, 1], higher is better."""

    recall_at: Mapping[int, float]
    """By k: share of the gold keys among the first k documents."""
    all_at: Mapping[int, float]
    """By k: 1 where all gold keys are among the first k documents, else 0."""
    reciprocal_rank: float
    """1 by the rank (from 1 on) of the first gold key of the root; 0 where it is not there."""
    tree_recall: float
    """Share of the gold keys among everything found in the tree."""
    tree_all: float
    """1 where all gold keys were found somewhere in the tree, else 0."""


def first_appearances(keys: Iterable[str]) -> tuple[str, ...]:
    """Every key once, in order of first appearance.

    >>> first_appearances(["b", "a", "b"])
    ('b', 'a')
    """
    return tuple(dict.fromkeys(keys))


def supporting_recall(found: Iterable[str], gold: Collection[str], *, k: int | None = None) -> float | None:
    """Share of ``gold`` among the first ``k`` different keys of ``found``; None where there is no gold.

    Args:
        found: Keys, best first; in any order, or a set, without ``k``.
        gold: Keys that the question needs; repetitions count once.
        k: How many documents count, 1 or more; None counts all. A shorter ``found`` is looked at as it is.

    Raises:
        ValueError: ``k`` is below 1.
    """
    return _recall(found, set(gold), k) if gold else None


def all_supporting(found: Iterable[str], gold: Collection[str], *, k: int | None = None) -> float | None:
    """1.0 where all of ``gold`` is among the first ``k`` different keys of ``found``, else 0.0; None without gold.

    Arguments and errors as for ``supporting_recall``.
    """
    return _complete(found, set(gold), k) if gold else None


def reciprocal_rank(ranked: Sequence[str], gold: Collection[str]) -> float | None:
    """1 by the rank, from 1 on, of the first key that is gold; 0.0 where none is, None without gold.

    The mean over questions is the MRR (Voorhees, TREC-8 question answering track, 1999).

    >>> reciprocal_rank(["x", "x", "gold"], ["gold"])
    0.5
    """
    return _reciprocal_rank(ranked, set(gold)) if gold else None


def score_retrieval(
    root: Sequence[str], tree: Iterable[str], gold: Collection[str], *, ks: Iterable[int] = (3, 10)
) -> RetrievalScores | None:
    """All of the above for one question; None where it has no gold.

    Args:
        root: Keys that the question itself retrieved, best first.
        tree: Keys found by any query of the tree, those of the root among them, in any order.
        gold: Keys that the question needs.
        ks: The k of recall@k and all@k.

    Raises:
        ValueError: Some k is below 1.
    """
    if not gold:
        return None
    wanted, everything, cuts = set(gold), set(tree), tuple(ks)
    return RetrievalScores(
        recall_at={k: _recall(root, wanted, k) for k in cuts},
        all_at={k: _complete(root, wanted, k) for k in cuts},
        reciprocal_rank=_reciprocal_rank(root, wanted),
        tree_recall=_recall(everything, wanted, None),
        tree_all=_complete(everything, wanted, None),
    )


def _recall(found: Iterable[str], wanted: set[str], k: int | None) -> float:
    if k is not None and k < 1:
        raise ValueError(f"k is {k}; it must be 1 or more, or None for everything that was found.")
    return len(wanted.intersection(first_appearances(found)[:k])) / len(wanted)


def _complete(found: Iterable[str], wanted: set[str], k: int | None) -> float:
    return float(_recall(found, wanted, k) == 1.0)


def _reciprocal_rank(ranked: Iterable[str], wanted: set[str]) -> float:
    ranks = (rank for rank, key in enumerate(first_appearances(ranked), start=1) if key in wanted)
    return 1.0 / next(ranks, float("inf"))
