"""A greedy order that sees gold: what ordering can gain at least; only replays have it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import ClassVar

from ...graphs.search.candidate import Candidate, Expansion, SearchLimits, SearchProgress
from ...modules.reader.evidence_choice import USEFUL, EvidenceChoice
from .world import NotRecorded, ReplayEnvironment


@dataclass
class OracleOrder:
    """Chooses first the candidates whose sub-run itself finds most gold documents that no granted one found yet.

    It is greedy: it does not look below a sub-run nor compare whole orders, so the best order may gain more.
    """

    name: ClassVar[str] = "oracle_order"

    world: ReplayEnvironment
    evidence: EvidenceChoice = USEFUL
    """What the readers see."""
    _gold: dict[str, frozenset[str]] = field(default_factory=dict)

    def fingerprint(self) -> dict[str, str]:
        """Return the name."""
        return {"name": self.name}

    def choose(
        self, candidates: Sequence[Candidate], spent: SearchProgress, limits: SearchLimits
    ) -> Sequence[Candidate]:
        """Return all candidates, those that find new gold first."""
        found = self._found_by(self.world.question)
        found = found.union(*(self._found_by(each.candidate.next_query) for each in spent.expansions))
        return sorted(candidates, key=lambda each: (-len(self._found_by(each.next_query) - found), each.order))

    def allows_retry(self, tries: Sequence[Expansion]) -> bool:
        """Return False: a chunk is asked on once."""
        return False

    def _found_by(self, query: str) -> frozenset[str]:
        if query not in self._gold:
            try:
                self._gold[query] = self.world.judged(query).shown_keys(self.evidence) & self.world.gold
            except NotRecorded:
                self._gold[query] = frozenset()
        return self._gold[query]
