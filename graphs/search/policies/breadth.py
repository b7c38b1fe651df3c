"""Breadth first: every candidate, level by level."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ..candidate import Candidate, SearchLimits, SearchProgress
from ..policy import NamedPolicy


@dataclass(frozen=True, kw_only=True)
class Breadth(NamedPolicy):
    """Chooses all candidates, the shallowest first, then by rank; the default."""

    name = "breadth"

    def choose(
        self, candidates: Sequence[Candidate], spent: SearchProgress, limits: SearchLimits
    ) -> Sequence[Candidate]:
        """Return all candidates."""
        return sorted(candidates, key=lambda each: each.order)
