"""AB-MCTS of the library treequest (Sakana AI, arXiv 2503.04412) as a policy; needs the extra ``treequest``."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any, Literal

from ....modules.digests import text_digest
from ....modules.errors import needs_extra
from ..candidate import Candidate, Expansion, Path, SearchLimits, SearchProgress
from .wider import Wider

_ACTIONS = ["ask"]
_DRAWING = threading.Lock()
"""Held while numpy's global generator is seeded; treequest draws from no other."""


@dataclass(frozen=True, kw_only=True)
class TreeQuest(Wider):
    """Lets AB-MCTS draw, by Thompson sampling, from which query to ask next: from one that has asked already (wider),
    or from a sub-run below it (deeper). Which of the query's chunks asks is decided as in ``Wider``, and so are further
    tries.

    A sub-run's score is fixed once it is judged: 1 if it suffices, else the least P(needed) of the needed chunks that
    it found, 0 without any. Where the drawn query has nothing left to ask, the nearest query that has stands in. Each
    choice tells treequest the whole search again and draws by its own seed.
    """

    name = "treequest"

    algorithm: Literal["abmcts_a"] = "abmcts_a"
    prior: Literal["gaussian", "beta"] = "gaussian"
    """Distribution of scores that treequest assumes."""
    seed: int = 0

    def __post_init__(self) -> None:
        with needs_extra("treequest"):
            import treequest  # noqa: F401, PLC0415 - takes seconds, so before the search, and only for this policy

    def fingerprint(self) -> dict[str, str]:
        """Return the name, the parameters, and the versions of the libraries that draw."""
        drawn_by = ", ".join(f"{name} {version(name)}" for name in ("treequest", "numpy", "scipy"))
        return {**super().fingerprint(), "libraries": drawn_by}

    def choose(
        self, candidates: Sequence[Candidate], spent: SearchProgress, limits: SearchLimits
    ) -> Sequence[Candidate]:
        """Return as many candidates as a round grants, in the order in which AB-MCTS draws them."""
        left = list(super().choose(candidates, spent, limits))
        most = len(left) if limits.width is None else min(limits.width, len(left))
        chosen: list[Candidate] = []
        for query in self._drawn(spent.expansions, most):
            chosen.append(_nearest(left, query))
            left.remove(chosen[-1])
        return chosen

    def _drawn(self, expansions: Sequence[Expansion], most: int) -> list[Path]:
        """Return the paths of the queries that the next round asks from, ``()`` for the root's."""
        from treequest import ABMCTSA  # noqa: PLC0415

        algorithm: Any = ABMCTSA(dist_type=self.prior)
        state = algorithm.init_tree()
        nodes: dict[Path, Any] = {(): state.tree.root}
        for each in expansions:
            above = nodes.get(each.candidate.chunk_path[:-1], state.tree.root)
            state.thompson_states.get_or_create(above, _ACTIONS)  # as ask_batch does; tell needs it
            trial = state.trial_store.create_trial(above, *_ACTIONS)
            state = algorithm.tell(state, trial.trial_id, (each.candidate.path, _score(each)))
            nodes[each.candidate.path] = above.children[-1]
        with _seeded(self._seed_of(expansions)):
            _, trials = algorithm.ask_batch(state, most, _ACTIONS)
        return [trial.parent_state or () for trial in trials]

    def _seed_of(self, expansions: Sequence[Expansion]) -> int:
        paths = ("\0".join(each.candidate.path) for each in expansions)
        return int.from_bytes(text_digest(str(self.seed), *paths)[:4])


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    """Seed numpy's global generator, and put its state back at the end."""
    import numpy as np  # noqa: PLC0415

    with _DRAWING:
        before = np.random.get_state()
        np.random.seed(seed)
        try:
            yield
        finally:
            np.random.set_state(before)


def _score(expansion: Expansion) -> float:
    if expansion.suffices:
        return 1.0
    return min(max(min((p for _, p in expansion.found), default=0.0), 0.0), 1.0)


def _nearest(candidates: Sequence[Candidate], query: Path) -> Candidate:
    """Return the first candidate of a query; else of those below it, below the query above it, and so on."""
    here = (each for each in candidates if each.chunk_path[:-1] == query)
    for found in here:
        return found
    while True:
        for each in candidates:
            if each.path[: len(query)] == query:
                return each
        query = query[:-2]
