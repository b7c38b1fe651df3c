"""BM25 in memory, for as many passages as a prompt or a training set has."""

from __future__ import annotations

import math
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence

from ..language.search_form import words_of_text


class Bm25:
    """BM25 over up to some thousands of passages, in memory.

    After Robertson and Zaragoza, The Probabilistic Relevance Framework (2009), with Lucene's IDF, which is at least 0.
    """

    def __init__(self, passages: Sequence[str]) -> None:
        k1, b = 1.5, 0.75
        texts = [_words(passage) for passage in passages]
        mean_length = sum(map(len, texts)) / max(len(texts), 1)
        self._count = len(texts)
        self._weights: defaultdict[str, list[tuple[int, float]]] = defaultdict(list)
        for at, text in enumerate(texts):
            damping = k1 * (1 - b + b * len(text) / mean_length) if mean_length else k1
            for word, times in Counter(text).items():
                self._weights[word].append((at, times * (k1 + 1) / (times + damping)))

    def scores(self, query: str) -> list[float]:
        """Score all passages, in their order; higher is more similar. Repeated words of the query count each time."""
        scores = [0.0] * self._count
        for word in _words(query):
            holding = self._weights.get(word, ())
            idf = math.log(1 + (self._count - len(holding) + 0.5) / (len(holding) + 0.5))
            for at, weight in holding:
                scores[at] += idf * weight
        return scores

    def likeliest(self, query: str, n: int, *, without: Iterable[int] = ()) -> list[int]:
        """Return the indices of the ``n`` best passages outside ``without``, best first; ties go to the earlier one."""
        scores, out = self.scores(query), set(without)
        ranked = sorted((at for at in range(self._count) if at not in out), key=lambda at: (-scores[at], at))
        return ranked[:n]


def _words(text: str) -> list[str]:
    return re.findall(r"\w+", words_of_text(text).casefold())
