"""Which chunks hold the facts that a question needs, where its data set knows the words of these facts."""

from __future__ import annotations

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
