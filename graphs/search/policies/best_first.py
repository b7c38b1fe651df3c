"""Best first: by the probability that a chunk is needed, and its retrieval rank."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from ..candidate import Candidate, SearchLimits, SearchProgress
from ..policy import NamedPolicy


@dataclass(frozen=True, kw_only=True)
class BestFirst(NamedPolicy):
    """Chooses candidates by ``score``, highest first."""

    name = "best_first"

    rank_weight: Annotated[float, Field(ge=0, le=1)] = 0.5
    """Share of the rank in the score; 0 orders by probability alone, 1 by rank alone."""

    def choose(
        self, candidates: Sequence[Candidate], spent: SearchProgress, limits: SearchLimits
    ) -> Sequence[Candidate]:
        """Return all candidates, best first."""
        return sorted(candidates, key=lambda each: (-self.score(each), each.order))

    def score(self, candidate: Candidate) -> float:
        """Return the product over the chunk and its ancestors of a mean of P(needed) and 1 / (rank + 1), in [0, 1]."""
        steps = [*((each.p, each.rank) for each in candidate.ancestors), (candidate.p, candidate.rank)]
        return math.prod((1 - self.rank_weight) * p + self.rank_weight / (rank + 1) for p, rank in steps)
