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
_HAN_RUN = re.compile(rf"[{_HAN_AND_KANA}]")


def similarity_by_words(texts: Sequence[str]) -> npt.NDArray[np.float64]:
    """Compute the cosines of passages, shape (n, n), each in [0, 1] and 1 on the diagonal.

    Words weigh 1 + log(count), times log(1 + n / passages with it); a run of Chinese or Japanese counts as its pairs of
    characters. A passage without words is similar to itself alone.
    """
    counts = [Counter(_terms(text)) for text in texts]
    holding = Counter(term for count in counts for term in count)
    column = {term: place for place, term in enumerate(holding)}
    rows = np.zeros((len(texts), len(column)))
    for row, count in zip(rows, counts, strict=True):
        for term, times in count.items():
            row[column[term]] = (1 + math.log(times)) * math.log1p(len(texts) / holding[term])
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    rows /= np.where(lengths > 0, lengths, 1.0)
    cosines: npt.NDArray[np.float64] = np.clip(rows @ rows.T, 0.0, 1.0)
    np.fill_diagonal(cosines, 1.0)
    return cosines


def _terms(text: str) -> list[str]:
    terms: list[str] = []
    for run in _RUN.findall(text.casefold()):
        if _HAN_RUN.match(run) and len(run) > 1:
            terms += (run[at : at + 2] for at in range(len(run) - 1))
        else:
            terms.append(run)
    return terms
