"""What the readers of a played search tree are shown, each thing once however many policies and budgets show it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass, field

from ...graphs.search.candidate import Expansion
from ...modules.reader.evidence_choice import USEFUL, EvidenceChoice
from .play import ROOT, Episode, thread_of
from .world import ReplayEnvironment

Tries = tuple[tuple[str, int | None], ...]
"""Sub-questions of a chunk in the order of its tries, each with the place of what its reader is shown; None where the
recording holds nothing of it.
"""


@dataclass(frozen=True)
class Shown:
    """What the reader of one query is shown."""

    query: str
    chunks: tuple[tuple[str, Tries], ...]
    """Ids of the chunks by rank, with what they asked."""


@dataclass
class ShownTrees:
    """What the readers of one question are shown in any of its trees; sub-questions stand before who asks them."""

    world: ReplayEnvironment
    evidence: EvidenceChoice = USEFUL
    all: list[Shown] = field(default_factory=list)
    roots: dict[tuple[str, int], int | None] = field(default_factory=dict)
    """Places of what the readers of the question itself are shown, by policy and budget; None: it is not recorded."""
    _places: dict[Shown, int] = field(default_factory=dict)

    def add(self, policy: str, budget: int, played: Episode) -> None:
        """Add the tree of a policy within a budget."""
        asked: dict[tuple[str, str], list[Expansion]] = defaultdict(list)
        for each in played.expansions:
            asked[each.candidate.thread_id, each.candidate.chunk_id].append(each)
        self.roots[policy, budget] = self._place(ROOT, self.world.question, played, asked)

    def _place(
        self, thread: str, query: str, played: Episode, asked: dict[tuple[str, str], list[Expansion]]
    ) -> int | None:
        judged = played.judged.get(thread)
        if judged is None:
            return None
        shown = Shown(
            query=query,
            chunks=tuple(
                (
                    chunk.chunk_id,
                    tuple(
                        (question, self._place(thread_of(each.candidate), question, played, asked))
                        for each in asked.get((thread, chunk.chunk_id), ())
                        if (question := each.candidate.next_query)
                    ),
                )
                for chunk in judged.shown(self.evidence)
            ),
        )
        if shown not in self._places:
            self._places[shown] = len(self.all)
            self.all.append(shown)
        return self._places[shown]
