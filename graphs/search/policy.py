"""The contract of policies, which choose the candidates that are asked next."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import ClassVar, Protocol

from .candidate import Candidate, Expansion, SearchLimits, SearchProgress


class Policy(Protocol):
    """Chooses the candidates that are asked next.

    A policy is asked in rounds: once all expansions that run have been judged. It must be pure and deterministic, so
    that it decides the same live, after a kill and in a replay. One that chooses nothing ends the search, and must
    choose nothing of any part of these candidates either. All searches wait while it chooses.

    ::

        class SurestFirst:
            def fingerprint(self):
                return {"name": "surest_first"}

            def choose(self, candidates, spent, limits):
                return sorted(candidates, key=lambda each: (-each.p, each.order))

            def allows_retry(self, tries):
                return False
    """

    def fingerprint(self) -> dict[str, str]:
        """Return all that changes a choice: the name and the parameters."""
        ...

    def choose(
        self, candidates: Sequence[Candidate], spent: SearchProgress, limits: SearchLimits
    ) -> Sequence[Candidate]:
        """Return the candidates to ask next, best first; an empty sequence ends the search.

        The first ``limits.width`` of them that the budget pays for are granted. There is at least one candidate.
        """
        ...

    def allows_retry(self, tries: Sequence[Expansion]) -> bool:
        """Return whether a chunk becomes a candidate again after its ``tries`` so far.

        Without any, return whether the policy ever asks a chunk again.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class NamedPolicy(ABC):
    """The base of the policies of judgetree, dataclasses whose fields are their parameters."""

    name: ClassVar[str]

    def fingerprint(self) -> dict[str, str]:
        """Return the name and the parameters."""
        return {"name": self.name, **{key: str(value) for key, value in asdict(self).items()}}

    @abstractmethod
    def choose(
        self, candidates: Sequence[Candidate], spent: SearchProgress, limits: SearchLimits
    ) -> Sequence[Candidate]:
        """Return the candidates to ask next, best first."""

    def allows_retry(self, tries: Sequence[Expansion]) -> bool:
        """Return False: a chunk is asked on once."""
        return False
