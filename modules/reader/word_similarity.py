"""How alike passages are by their words: no model, no request, and the same at each call."""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

_HAN_AND_KANA = r"\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003134f"
_RUN = re.compile(rf"[{_HAN_AND_KANA}]+|[^\W{_HAN_AND_KANA}]+")
_BLOCK = 4096
"""Words that are compared at once, which bounds memory."""
_HAN_RUN = re.compile(rf"[{_HAN_AND_KANA}]")


def similarity_by_words(texts: Sequence[str]) -> npt.NDArray[np.float64]:
    """Compute the cosines of passages, shape (n, n), each in [0, 1] and 1 on the diagonal.

    Words weigh 1 + log(count), times log(1 + n / passages with it); a run of Chinese or Japanese counts as its pairs of
    characters. A passage without words is similar to itself alone.
    """
    counts = [Counter(_terms(text)) for text in texts]
    holding = Counter(term for count in counts for term in count)
    column = {term: place for place, term in enumerate(term for term, texts_with in holding.items() if texts_with > 1)}
    lengths, shared = np.zeros(len(texts)), []
    for row, count in enumerate(counts):
        weights = {term: (1 + math.log(n)) * math.log1p(len(texts) / holding[term]) for term, n in count.items()}
        lengths[row] = math.sqrt(math.fsum(weight * weight for weight in weights.values())) or 1.0
        places = [column[term] for term in weights if term in column]
        shared.append(
            (np.array(places, dtype=np.intp), np.array([weights[term] for term in weights if term in column]))
        )
    cosines = _products(shared, len(column)) / np.outer(lengths, lengths)
    np.clip(cosines, 0.0, 1.0, out=cosines)
    np.fill_diagonal(cosines, 1.0)
    return cosines


def _products(
    rows: Sequence[tuple[npt.NDArray[np.intp], npt.NDArray[np.float64]]], columns: int
) -> npt.NDArray[np.float64]:
    """Multiply a sparse matrix, the (columns, values) of each row, by its transpose, a block of columns at a time."""
    products = np.zeros((len(rows), len(rows)))
    for start in range(0, columns, _BLOCK):
        block = np.zeros((len(rows), min(_BLOCK, columns - start)))
        for row, (places, values) in enumerate(rows):
            inside = (places >= start) & (places < start + _BLOCK)
            block[row, places[inside] - start] = values[inside]
        products += block @ block.T
    return products


def _terms(text: str) -> list[str]:
    terms: list[str] = []
    for run in _RUN.findall(text.casefold()):
        if _HAN_RUN.match(run) and len(run) > 1:
            terms += (run[at : at + 2] for at in range(len(run) - 1))
        else:
            terms.append(run)
    return terms
