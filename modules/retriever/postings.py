"""BM25 over the words that Milvus Lite has counted: its formula, its precision and its order, with numpy.

Lite adds up one chunk after the other in Python, in time that grows with the chunks that share a word with the query.
Its numbers have single precision. The same operations in the same order give the same scores to the last bit, and equal
scores come in its order: by the query's first word that a chunk has, then by row.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    import pyarrow as pa

Rows = npt.NDArray[np.int32]
Scores = npt.NDArray[np.float32]

_PAIR = np.dtype([("term", "<u4"), ("count", "<f4")])
"""One word of a chunk in Lite's column: the hash of the word, and how often the chunk has it."""
_NO_TERM = 1 << 32
"""Larger than every hash."""


@dataclass(frozen=True, kw_only=True)
class Postings:
    """The chunks of each word with their weights; 8 bytes for each word of each chunk."""

    chunks: int
    """Number of chunks."""
    terms: npt.NDArray[np.uint32]
    """Hashes of the words, sorted."""
    starts: npt.NDArray[np.int64]
    """Chunks of ``terms[i]`` are ``rows[starts[i]:starts[i + 1]]``, in order, with ``weights`` of the same places."""
    rows: Rows
    weights: Scores
    """Saturated and normalised counts: a score is their sum over the query's words, each times its IDF."""

    @classmethod
    def of(cls, column: pa.ChunkedArray, *, k1: float, b: float) -> Postings:
        """Invert Lite's column of counted words.

        Raises:
            ValueError: The column has another format.
        """
        pairs, lengths = _pairs(column)
        chunk_of = np.repeat(np.arange(lengths.size, dtype=np.int32), lengths)
        total = np.bincount(chunk_of, weights=pairs["count"], minlength=lengths.size).astype(np.float64)
        # Sorting hash and place as one number is several times as fast as a stable sort by hash.
        keys = pairs["term"].astype(np.uint64)
        keys <<= np.uint64(32)
        keys |= np.arange(pairs.size, dtype=np.uint32)
        keys.sort()
        places = keys.astype(np.uint32)  # the lower half
        keys >>= np.uint64(32)
        starts = np.flatnonzero(np.diff(keys, prepend=np.uint64(_NO_TERM)))
        terms = keys[starts].astype(np.uint32)
        del keys
        rows = chunk_of[places]
        return cls(
            chunks=lengths.size,
            terms=terms,
            starts=np.append(starts, pairs.size),
            rows=rows,
            weights=_weights(pairs["count"][places], total.astype(np.float32)[rows], _mean(total), k1=k1, b=b),
        )

    def search(self, query: Mapping[int, float], limit: int) -> tuple[Rows, Scores]:
        """Return at most ``limit`` rows that share a word with the query, and their scores, best first.

        ``query`` counts its words by their hashes, in the order of their first occurrence.
        """
        scores = np.zeros(self.chunks, dtype=np.float32)
        found: list[Rows] = []
        for term, count in query.items():
            rows, weights = self._of(term)
            if rows.size:
                idf = math.log((self.chunks - rows.size + 0.5) / (rows.size + 0.5) + 1.0)
                scores[rows] += np.float32(idf) * weights * np.float32(count)
                found.append(rows)
        best = _best(scores, limit)
        order = np.lexsort((best, _first_words(best, found), -scores[best]))[:limit]
        return best[order], scores[best[order]]

    def _of(self, term: int) -> tuple[Rows, Scores]:
        place = int(np.searchsorted(self.terms, np.uint32(term)))
        if place == self.terms.size or self.terms[place] != term:
            return self.rows[:0], self.weights[:0]
        part = slice(self.starts[place], self.starts[place + 1])
        return self.rows[part], self.weights[part]


def _pairs(column: pa.ChunkedArray) -> tuple[npt.NDArray[np.void], npt.NDArray[np.int64]]:
    """Return the counted words of all chunks, one chunk after the other, and the number of words of each."""
    import pyarrow as pa  # noqa: PLC0415 - only there with Lite

    counted = column.cast(pa.large_binary()).combine_chunks()
    if counted.null_count:
        raise ValueError("Some chunks have no counted words.")
    buffers = counted.buffers()
    ends = np.frombuffer(buffers[1], dtype=np.int64)[counted.offset : counted.offset + len(counted) + 1]
    data = np.frombuffer(buffers[2] or b"", dtype=np.uint8)[ends[0] : ends[-1]]
    sizes = np.diff(ends)
    if np.any(sizes % _PAIR.itemsize) or data.size // _PAIR.itemsize >= 1 << 32:
        raise ValueError("The counted words have an unknown format.")
    return data.view(_PAIR), sizes // _PAIR.itemsize


def _mean(total: npt.NDArray[np.float64]) -> float:
    return (float(total.sum()) / total.size if total.size else 0.0) or 1.0


def _weights(counts: Scores, lengths: Scores, mean: float, *, k1: float, b: float) -> Scores:
    damping = counts + k1 * ((1.0 - b) + b * lengths / mean)
    return ((counts.astype(np.float64) * (k1 + 1.0)).astype(np.float32) / damping).astype(np.float32, copy=False)


def _best(scores: Scores, limit: int) -> Rows:
    """Return the rows of the ``limit`` best scores above 0, and of all that equal the last of them."""
    found = np.flatnonzero(scores)
    if found.size > limit:
        least = np.partition(scores[found], found.size - limit)[found.size - limit]
        found = found[scores[found] >= least]
    return found.astype(np.int32)


def _first_words(rows: Rows, found: list[Rows]) -> npt.NDArray[np.int64]:
    """Return for each row the place of the first of the query's words that it has."""
    first = np.full(rows.size, len(found))
    for place in reversed(range(len(found))):
        holding = found[place]
        at = np.minimum(np.searchsorted(holding, rows), holding.size - 1)
        first[holding[at] == rows] = place
    return first
