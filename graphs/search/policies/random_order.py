"""A random order, the control of experiments."""

from __future__ import annotations

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass

from ..candidate import Candidate, SearchLimits, Spent
from ..policy import NamedPolicy


@dataclass(frozen=True, kw_only=True)
class RandomOrder(NamedPolicy):
    """Chooses all candidates in an order that the seed and their paths decide."""

    name = "random"

    seed: int = 0

    def choose(self, candidates: Sequence[Candidate], spent: Spent, limits: SearchLimits) -> Sequence[Candidate]:
        """Return all candidates."""
        return sorted(candidates, key=lambda each: (self._draw(each), each.order))

    def _draw(self, candidate: Candidate) -> bytes:
        place = "\0".join((str(self.seed), *candidate.path, str(candidate.attempt)))
        return hashlib.sha256(place.encode("utf-8", "surrogatepass")).digest()
