"""Again: best first, and each needed chunk asks several questions in other words, whatever the first ones found."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

from pydantic import Field

from ..candidate import Candidate, Expansion
from .best_first import BestFirst


@dataclass(frozen=True, kw_only=True)
class Again(BestFirst):
    """Chooses as ``BestFirst``, and asks further questions about a chunk until its tries or the budget are spent.

    The writer of a further question sees the earlier ones. A wrong question usually finds the document that it asks
    for, so that its sub-run looks like a success: a policy that asks again only after a failure stops there.
    """

    name = "again"

    tries: Annotated[int, Field(ge=1)] = 3
    """Most tries of a chunk."""
    discount: Annotated[float, Field(gt=0, le=1)] = 0.5
    """Factor of the score for each earlier try of the chunk."""

    def score(self, candidate: Candidate) -> float:
        """Return the score of ``BestFirst``, discounted for a further try."""
        return super().score(candidate) * self.discount ** (candidate.attempt - 1)

    def allows_retry(self, tries: Sequence[Expansion]) -> bool:
        """Return True while tries are left."""
        return len(tries) < self.tries
