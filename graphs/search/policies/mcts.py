"""Monte Carlo tree search whose choice is to go deeper into a sub-run, or to ask its chunk again in other words."""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Annotated, Literal

from pydantic import Field

from ..candidate import Candidate, Expansion, Path, SearchLimits, SearchProgress
from ..policy import NamedPolicy


@dataclass(frozen=True, kw_only=True)
class Mcts(NamedPolicy):
    """Chooses by upper confidence bounds (UCT) from the root down: a chunk not asked yet, a chunk asked once more, or
    a sub-run to descend into.

    A sub-run is worth 1 if it suffices, 0 if it found no needed chunk, and else what its needed chunks are worth: the
    least of them (``min``), since an answer needs every fact, or their mean. A chunk is worth the best of its tries,
    and its P(needed) before the first.
    """

    name = "mcts"

    c: Annotated[float, Field(ge=0, allow_inf_nan=False)] = 1.0
    """Weight of the exploration."""
    backup: Literal["min", "mean"] = "min"
    tries: Annotated[int, Field(ge=1)] = 3
    """Most tries of a chunk."""
    widening: Annotated[float, Field(gt=0, le=1)] = 0.5
    """A chunk with so many expansions below it, to this power, may have one try more."""
    discount: Annotated[float, Field(gt=0, le=1)] = 0.5
    """Factor of a chunk's P(needed) for each earlier try, as the expected worth of the next one."""

    def choose(
        self, candidates: Sequence[Candidate], spent: SearchProgress, limits: SearchLimits
    ) -> Sequence[Candidate]:
        """Return as many candidates as a round grants, each as if those before it had brought nothing new."""
        tree = _Tree(self, spent.expansions)
        left = {each.chunk_path: each for each in sorted(candidates, key=lambda each: each.order)}
        chosen: list[Candidate] = []
        for _ in range(len(candidates) if limits.width is None else min(limits.width, len(candidates))):
            one = tree.descend(left.values())
            chosen.append(left.pop(one.chunk_path))
            tree.visit(one.path)
        return chosen

    def allows_retry(self, tries: Sequence[Expansion]) -> bool:
        """Return True while tries are left and the last of them did not suffice."""
        return len(tries) < self.tries and not (tries and tries[-1].suffices)


class _Tree:
    """What was expanded so far, by path."""

    def __init__(self, policy: Mcts, expansions: Iterable[Expansion]) -> None:
        self._policy = policy
        self._by_path: dict[Path, Expansion] = {}
        self._tries: dict[Path, list[Path]] = defaultdict(list)
        self._visits: Counter[Path] = Counter()
        self._worth: dict[Path, float] = {}
        for each in expansions:
            path = each.candidate.path
            self._by_path[path] = each
            self._tries[each.candidate.chunk_path].append(path)
            self.visit(path)

    def visit(self, path: Path) -> None:
        """Count an expansion for all chunks and sub-runs on its way."""
        self._visits.update(path[:end] for end in range(len(path) + 1))

    def descend(self, candidates: Iterable[Candidate]) -> Candidate:
        """Return the candidate to which the highest bounds lead."""
        below: Path = ()
        open_ones = list(candidates)
        while True:
            arms: dict[Path, list[Candidate]] = defaultdict(list)
            for each in open_ones:
                is_here = len(each.chunk_path) == len(below) + 1
                arms[each.path if is_here else each.path[: len(below) + 2]].append(each)
            total = self._visits[below]
            best = max(arms, key=lambda arm: self._bound(arm, arms[arm][0], total))
            if len(arms[best][0].chunk_path) == len(below) + 1:
                return arms[best][0]
            below, open_ones = best, arms[best]

    def _bound(self, arm: Path, first: Candidate, total: int) -> float:
        if arm in self._by_path:  # a sub-run to descend into
            worth, visits = self._worth_of(arm), self._visits[arm]
        else:
            worth = first.p * self._policy.discount ** (first.attempt - 1)
            tries = self._tries.get(first.chunk_path, ())
            visits = 0
            if tries and len(tries) >= max(1.0, self._visits[first.chunk_path] ** self._policy.widening) + 1:
                return -math.inf  # too few expansions below it to pay for one try more
        return worth + self._policy.c * math.sqrt(math.log(total + 1) / (visits + 1))

    def _worth_of(self, path: Path) -> float:
        if path not in self._worth:
            expansion = self._by_path[path]
            self._worth[path] = 1.0 if expansion.suffices else self._backed_up(path, expansion)
        return self._worth[path]

    def _backed_up(self, path: Path, expansion: Expansion) -> float:
        facts = [
            max((self._worth_of(each) for each in self._tries.get((*path, chunk_id), ())), default=p)
            for chunk_id, p in expansion.found
        ]
        if not facts:
            return 0.0
        return min(facts) if self._policy.backup == "min" else math.fsum(facts) / len(facts)
