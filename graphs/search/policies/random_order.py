"""A random order, the control of experiments."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ....modules.digests import text_digest
from ..candidate import Candidate, SearchLimits, SearchProgress
from ..policy import NamedPolicy


@dataclass(frozen=True, kw_only=True)
class RandomOrder(NamedPolicy):
    """Chooses all candidates in an order that the seed and their paths decide."""

    name = "random"

    seed: int = 0

    def choose(
        self, candidates: Sequence[Candidate], spent: SearchProgress, limits: SearchLimits
    ) -> Sequence[Candidate]:
        """Return all candidates."""
        return sorted(candidates, key=lambda each: (self._draw(each), each.order))

    def _draw(self, candidate: Candidate) -> bytes:
        return text_digest(str(self.seed), *candidate.path, str(candidate.attempt))
