"""Value against cost: the reservation value of each candidate, as if candidates were independent boxes."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from ..candidate import Candidate, SearchLimits, SearchProgress
from ..policy import NamedPolicy


@dataclass(frozen=True, kw_only=True)
class ValueCost(NamedPolicy):
    """Chooses the highest reservation values V - c / p, and ends the search where none is above 0.

    V is the worth of one more fact and c the cost of the expansion, both in model calls; p is the probability that it
    is needed, its ancestors' included. The rule is exact for independent boxes (Weitzman 1979); candidates of a search
    tree depend on each other, so here it is a heuristic.
    """

    name = "value_cost"

    worth: Annotated[float, Field(gt=0)] = 20.0
    """Worth of one more fact, in model calls."""

    def choose(
        self, candidates: Sequence[Candidate], spent: SearchProgress, limits: SearchLimits
    ) -> Sequence[Candidate]:
        """Return the candidates whose value is above 0, highest first."""
        values = {id(each): self.value(each) for each in candidates}
        paying = (each for each in candidates if values[id(each)] > 0)
        return sorted(paying, key=lambda each: (-values[id(each)], each.order))

    def value(self, candidate: Candidate) -> float:
        """Return the reservation value, in model calls; minus infinity where p is 0."""
        p = math.prod((*(each.p for each in candidate.ancestors), candidate.p))
        return self.worth - candidate.calls / p if p > 0 else -math.inf
