"""The check that the numbers of an index are finite, made once for each content: NaN is found by no search."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

_BLOCK = 1 << 22
"""Numbers that are looked at together."""


def are_finite(numbers: npt.NDArray[Any]) -> bool:
    """Return whether an array has finite numbers alone; it is read once, in little memory."""
    return all(np.isfinite(numbers[start : start + _BLOCK]).all() for start in range(0, len(numbers), _BLOCK))


def are_within(numbers: npt.NDArray[Any], end: int) -> bool:
    """Return whether an array has numbers from 0 to below ``end`` alone; it is read once, in little memory."""
    blocks = (numbers[start : start + _BLOCK] for start in range(0, len(numbers), _BLOCK))
    return all(((block >= 0) & (block < end)).all() for block in blocks)


def has_finite_vectors(faiss: Any, index: Any) -> bool:
    """Return whether the vectors of a faiss index are finite, as far as it keeps them whole, and all in its lists.

    Flat indexes keep them, and IVF and HNSW over them; what quantizers keep is not looked at. faiss puts a vector with
    NaN in no list of IVF.
    """
    index = faiss.downcast_index(index)
    if isinstance(index, faiss.IndexPreTransform | faiss.IndexIDMap):
        return has_finite_vectors(faiss, index.index)
    if isinstance(index, faiss.IndexHNSW):
        return has_finite_vectors(faiss, index.storage)
    if isinstance(index, faiss.IndexIVF):
        return has_finite_vectors(faiss, index.quantizer) and _has_finite_lists(faiss, index)
    if isinstance(index, faiss.IndexFlat):
        return not index.ntotal or are_finite(faiss.rev_swig_ptr(index.get_xb(), index.ntotal * index.d))
    return True


def _has_finite_lists(faiss: Any, index: Any) -> bool:
    lists, rows = index.invlists, 0
    for number in range(index.nlist):
        count = lists.list_size(number)
        rows += count
        if count and isinstance(index, faiss.IndexIVFFlat):
            codes = faiss.rev_swig_ptr(lists.get_codes(number), count * index.code_size)
            if not are_finite(codes.view(np.float32)):
                return False
    return bool(rows == index.ntotal)
