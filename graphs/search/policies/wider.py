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
    """Chooses as ``BestFirst``, and asks a chunk again as long as no try of it found a needed chunk."""

    name = "wider"

    tries: Annotated[int, Field(ge=1)] = 3
    """Most tries of a chunk."""
    discount: Annotated[float, Field(gt=0, le=1)] = 0.5
    """Factor of the score for each earlier try of the chunk."""

    def score(self, candidate: Candidate) -> float:
        """Return the score of ``BestFirst``, discounted for a further try."""
        return super().score(candidate) * self.discount ** (candidate.attempt - 1)

    def asks_again(self, tries: Sequence[Expansion]) -> bool:
        """Return True while tries are left and none of them found a needed chunk."""
        return len(tries) < self.tries and all(each.brought_nothing for each in tries)
