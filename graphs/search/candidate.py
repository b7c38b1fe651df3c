"""What a policy sees: open candidates of a search tree, what was expanded so far, and what is spent."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Literal

from ...modules.calls.ledger import NO_SHARE, ExpectedSpend

SkipReason = Literal["calls", "sub_runs", "tokens", "cost", "seconds", "stopped", "policy", "stop", "cycle"]
"""Why a candidate was not asked. calls, tokens, cost: the rest of the budget does not pay for the expansion. sub_runs:
the tree has all the sub-runs that it may have. seconds: the time of the search is over. policy: the policy ended the
search. stop: a chunk of the same query sufficed before this one was judged. cycle: the answer of an equal question
waits for this one's."""

Path = tuple[str, ...]
"""Chunk ids and sub-questions in turn, from the root's chunk on; the same in each run, unlike thread ids."""


@dataclass(frozen=True, kw_only=True)
class Candidate:
    """A chunk, in any thread of the tree, that may ask a sub-question.

    >>> one = Candidate(thread_id="t", chunk_id="a", next_query="Which oil?", path=("a", "Which oil?"), p_needed=.8)
    >>> one.depth, one.p
    (1, 0.8)
    """

    thread_id: str
    """Thread of the query that found the chunk."""
    chunk_id: str
    next_query: str
    """Sub-question; ``""`` for a further try, whose question is written once it is granted."""
    path: Path
    """Path of the sub-run; without ``next_query`` for a further try."""
    p_needed: float | None = None
    """The judge's probability that the chunk is needed, in [0, 1]; None if it gives none."""
    is_calibrated: bool = False
    """Whether ``p_needed`` was calibrated on judgements with known answers."""
    retrieval_score: float | None = None
    """The retriever's score; comparable only among chunks of one query."""
    rank: int = 0
    """Rank among the chunks of its query, from 0."""
    ancestors: tuple[Ancestor, ...] = ()
    """Chunks whose sub-runs lead to this one, the root's first."""
    attempt: int = 1
    """Number of the try, from 1."""
    tried: tuple[str, ...] = ()
    """Sub-questions of the chunk's earlier tries."""
    calls: int = 0
    """Model calls that the expansion is expected to take, its answer included."""
    share: ExpectedSpend = NO_SHARE
    """Tokens and money that it is expected to take; nothing unless they are limited."""

    @property
    def depth(self) -> int:
        """Depth of the sub-run, from 1."""
        return len(self.ancestors) + 1

    @property
    def p(self) -> float:
        """``p_needed``, or 1/2 where the judge gives none."""
        return 0.5 if self.p_needed is None else self.p_needed

    def asking(self, question: str) -> Candidate:
        """Return the candidate with the question of this try."""
        return replace(self, next_query=question, path=(*self.chunk_path, question))

    def again(self) -> Candidate:
        """Return the next try of the same chunk, whose question is not written yet."""
        return replace(
            self,
            next_query="",
            path=self.chunk_path,
            attempt=self.attempt + 1,
            tried=(*self.tried, self.next_query),
            calls=self.calls + (self.attempt == 1),  # its question takes one
        )

    @property
    def chunk_path(self) -> Path:
        """Path to the chunk, without the sub-question; the same for all of its tries."""
        return self.path[: 2 * self.depth - 1]

    @property
    def order(self) -> tuple[object, ...]:
        """Key that sorts candidates by depth, then by the ranks from the root on, then by path and try."""
        return self.depth, (*(each.rank for each in self.ancestors), self.rank), self.path, self.attempt


@dataclass(frozen=True, kw_only=True)
class Ancestor:
    """A chunk on the way to a candidate."""

    chunk_id: str
    rank: int
    p: float
    """Probability that the chunk is needed, 1/2 where the judge gives none."""


@dataclass(frozen=True, kw_only=True)
class Expansion:
    """A candidate that was granted, and what its sub-run's search found."""

    candidate: Candidate
    round: int
    """Round of the grant, from 1."""
    priority: int
    """Place among the grants of the round, from 0."""
    found: tuple[tuple[str, float], ...] = ()
    """Ids of the chunks that the sub-run found and the judge held to be needed, each with its P(needed), by rank."""
    suffices: bool = False
    """Whether one of its chunks, or their set, answers its query."""


@dataclass(frozen=True, kw_only=True)
class SearchProgress:
    """What a search tree has used so far. Calls that are set aside for its threads count."""

    calls: int = 0
    sub_runs: int = 0
    expansions: tuple[Expansion, ...] = ()
    """In the order of their grants."""


@dataclass(frozen=True, kw_only=True)
class SearchLimits:
    """Limits that a policy may consider."""

    max_calls: int
    max_sub_runs: int | None = None
    width: int | None = None
    """Most grants of a round; None for no limit."""
