"""Vectors by the position of their texts, and the check of what an embedder returns."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

import numpy as np

from ..errors import UserError
from .cache import Vector


class SavedBatch(dict[int, list[float]]):
    """Vectors by position that a cache had; any other batch was computed."""


_MOST = float(np.finfo(np.float32).max)
"""Collections and caches hold numbers of 32 bits."""


def checked_vectors(name: str, texts: Sequence[str], vectors: object) -> list[list[float]]:
    """Return the vectors of an embedder of any origin, if there is one of finite float32 numbers for each text.

    A missing vector would lose its chunk, and NaN would make it one that no search finds.

    Raises:
        UserError: There is another number of vectors, one is no list of finite numbers, or their lengths differ.
    """
    wrong = ""
    if not isinstance(vectors, Sequence | np.ndarray):
        wrong = f"{type(vectors).__name__} and no list of vectors"
    elif len(vectors) != len(texts):
        wrong = f"{len(vectors)} vectors"
    else:
        for place, vector in enumerate(vectors):
            if not _is_finite(vector):
                wrong = f"a vector that is no list of finite numbers for {' '.join(texts[place][:60].split())!r}"
                break
        else:
            if len(lengths := {len(vector) for vector in vectors}) > 1:
                wrong = f"vectors of lengths {', '.join(map(str, sorted(lengths)))}"
    if wrong:
        raise UserError(
            f"The embedding model {name} returned {wrong} for {len(texts)} texts. embed_documents returns one list of "
            "finite numbers for each text, in their order, all of one length."
        )
    return list(vectors)  # type: ignore[call-overload, no-any-return]


def _is_finite(vector: object) -> bool:
    try:
        numbers = np.asarray(vector, dtype=np.float64)
    except (TypeError, ValueError):
        return False
    return numbers.ndim == 1 and numbers.size > 0 and bool((np.abs(numbers) <= _MOST).all())  # false for NaN


def places_of(texts: Iterable[str]) -> dict[str, list[int]]:
    """Return the positions of each distinct text, in the order of their first."""
    places: dict[str, list[int]] = {}
    for place, text in enumerate(texts):
        places.setdefault(text, []).append(place)
    return places


def placed(places: Mapping[str, Sequence[int]], vectors: Mapping[str, Vector]) -> dict[int, list[float]]:
    """Return vectors by position from those by text."""
    lists: dict[str, list[float]] = {text: vector.tolist() for text, vector in vectors.items()}
    return {place: vector for text, vector in lists.items() for place in places[text]}


def in_order(texts: Sequence[str], batches: Iterable[Mapping[int, list[float]]]) -> list[list[float]]:
    """Return one vector a text, in their order, from batches by position in any order."""
    vectors = {place: vector for batch in batches for place, vector in batch.items()}
    return [vectors[place] for place in range(len(texts))]
