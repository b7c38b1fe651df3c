"""Wider: best first, and a needed chunk whose sub-run brought nothing is asked on again in other words."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from ..candidate import Candidate, Expansion
from .best_first import BestFirst


@dataclass(frozen=True, kw_only=True)
class Wider(BestFirst):
    """Chooses as ``BestFirst``, and asks a further question about a chunk until one has found a needed chunk."""

    name = "wider"

    tries: Annotated[int, Field(ge=1)] = 3
    """Most tries of a chunk."""
    discount: Annotated[float, Field(gt=0, le=1)] = 0.5
    """Factor of the score for each earlier try of the chunk."""
    least: Annotated[float, Field(ge=0, le=1)] = 0.5
    """P(needed) of a chunk, 1/2 where the judge gives none, from which on the try that found it brought something."""

    def score(self, candidate: Candidate) -> float:
        """Return the score of ``BestFirst``, discounted for a further try."""
        return super().score(candidate) * self.discount ** (candidate.attempt - 1)

    def allows_retry(self, tries: Sequence[Expansion]) -> bool:
        """Return True while tries are left and none of them brought something."""
        return len(tries) < self.tries and not any(map(self._brought_something, tries))

    def _brought_something(self, tried: Expansion) -> bool:
        return tried.suffices or any(p >= self.least for _, p in tried.found)
