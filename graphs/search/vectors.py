"""The vectors of questions, and which of them are near each other."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ...modules.errors import SettingsError


class Vectors:
    """The vectors of questions, each compared with all others when it is added."""

    def __init__(self, at: float) -> None:
        """Hold those with a cosine similarity of ``at`` or more for near each other."""
        self._at = at
        self._near: dict[str, list[str]] = {}
        self._matrix: NDArray[np.float64] = np.empty((0, 0))
        """A row of length 1 for each question, in the order of ``_near``; room for more is at the end."""

    def __contains__(self, question: object) -> bool:
        return question in self._near

    def add(self, question: str, given: Sequence[float]) -> None:
        """Add the vector of a new question; one of zeros is near nothing.

        Raises:
            SettingsError: It is no vector of finite numbers, or has another length than those before.
        """
        count, vector = len(self._near), _vector_of(given)
        width = self._matrix.shape[1] if count else vector.size
        if vector.ndim != 1 or not vector.size or vector.size != width or not np.isfinite(vector).all():
            raise SettingsError(
                f"The retriever's aembed gave {given!r:.80} for the question {question!r:.80}. "
                "Give finite numbers, as many for every question."
            )
        if count == len(self._matrix):
            grown = np.zeros((max(64, 2 * count), width))
            if count:
                grown[:count] = self._matrix
            self._matrix = grown
        scaled = vector / (float(np.abs(vector).max()) or 1.0)  # so that squares neither overflow nor vanish
        unit = self._matrix[count] = scaled / (np.linalg.norm(scaled) or 1.0)
        # Each row by itself: in the product of a matrix the last digits would depend on the order of the questions.
        similarities = np.einsum("ij,j->i", self._matrix[:count], unit)
        questions = list(self._near)
        self._near[question] = [questions[place] for place in np.flatnonzero(similarities >= self._at)]
        for other in self._near[question]:
            self._near[other].append(question)

    def near(self, question: str) -> Sequence[str]:
        """Return the other questions that are near one; none for an unknown one."""
        return self._near.get(question, ())


def _vector_of(given: Sequence[float]) -> NDArray[np.float64]:
    try:
        return np.asarray(given, dtype=np.float64)
    except (TypeError, ValueError):
        return np.empty((0, 0))
