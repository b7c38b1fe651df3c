"""Plays a search on a recorded question: the rounds, grants and budget of a live search, without a model."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise

from ...graphs.config.limits import Limits
from ...graphs.search.candidate import Ancestor, Candidate, Expansion, SearchLimits, SearchProgress, SkipReason
from ...graphs.search.policy import Policy
from ...graphs.search.rounds import affordable, skip_reason
from ...graphs.search.stop import Stop
from ...modules.calls.budget import TreeBudget
from ...modules.errors import BudgetSpent
from ...modules.reader.evidence_choice import USEFUL, EvidenceChoice
from .world import JudgedQuery, NotRecorded, ReplayEnvironment

ROOT = "root"
"""Name of the root's thread."""


@dataclass(frozen=True, kw_only=True)
class Moment:
    """State of a search after a round."""

    calls: int
    """Calls made, with those held for answers."""
    gold: int
    """Gold documents that some reader of the tree sees."""


@dataclass(frozen=True, kw_only=True)
class Episode:
    """A search that was played to its end."""

    expansions: tuple[Expansion, ...]
    """In the order of their grants."""
    skipped: tuple[tuple[Candidate, SkipReason], ...]
    calls: int
    """Judges' and readers' calls, and those for further questions."""
    found: frozenset[str]
    """Gold documents that some reader of the tree sees."""
    needed: int
    """Number of gold documents."""
    moments: tuple[Moment, ...]
    """After the root's search, and after each round."""
    judged: Mapping[str, JudgedQuery]
    """What the reader of each thread may be shown, with the verdicts that were paid for; without queries that are not
    recorded."""
    misses: int
    """Queries and further questions that the recording does not hold; they count as having found nothing."""

    @property
    def is_complete(self) -> bool:
        """Whether all gold documents were found."""
        return len(self.found) == self.needed

    @property
    def recall(self) -> float:
        """Share of the gold documents that were found; 1 where none is needed."""
        return len(self.found) / self.needed if self.needed else 1.0

    def area(self, budget: int) -> float:
        """Return the mean gold recall over the calls from 0 to ``budget``, in [0, 1]."""
        steps = [*self.moments, Moment(calls=budget, gold=self.moments[-1].gold)]
        held = sum(one.gold * (min(after.calls, budget) - min(one.calls, budget)) for one, after in pairwise(steps))
        return held / (budget * self.needed) if self.needed else 1.0


def run_episode(
    world: ReplayEnvironment, policy: Policy, stop: Stop, limits: Limits, evidence: EvidenceChoice = USEFUL
) -> Episode:
    """Play a question; ``evidence`` chooses what the readers see, each of which takes one call."""
    search = _Search(world, policy, stop, limits, evidence)
    search.visit(ROOT, (), (), world.question)
    while search.next_round():
        pass
    return search.played()


@dataclass
class _Search:
    world: ReplayEnvironment
    policy: Policy
    stop: Stop
    limits: Limits
    evidence: EvidenceChoice
    open: dict[int, tuple[Candidate, str]] = field(default_factory=dict)
    """Open candidates with the queries that found their chunks, by identity."""
    expansions: list[Expansion] = field(default_factory=list)
    skipped: list[tuple[Candidate, SkipReason]] = field(default_factory=list)
    found: set[str] = field(default_factory=set)
    judged: dict[str, JudgedQuery] = field(default_factory=dict)
    moments: list[Moment] = field(default_factory=list)
    misses: int = 0
    rounds: int = 0

    def __post_init__(self) -> None:
        self.budget = TreeBudget(limit=self.limits.max_llm_calls)
        self.budget.reserve_answer(ROOT)
        self.allows_retry = self.policy.allows_retry(())
        self.most = SearchLimits(
            max_calls=self.limits.max_llm_calls, max_sub_runs=self.limits.max_sub_runs, width=self.limits.width
        )

    def visit(
        self, thread: str, path: tuple[str, ...], ancestors: tuple[Ancestor, ...], query: str
    ) -> JudgedQuery | None:
        """Search and judge a query, and add its candidates; None if it is not recorded."""
        try:
            judged = self.world.judged(query)
        except NotRecorded:
            self.misses += 1
            self.budget.release_judges(thread)
            return None
        depth = len(ancestors)
        is_judged = depth < self.limits.max_rec_depth or self.limits.judge_leaves
        self.judged[thread] = judged = self._paid(thread, judged) if is_judged else judged.unjudged()
        self.budget.release_judges(thread)
        self.found |= judged.shown_keys(self.evidence) & self.world.gold
        if depth < self.limits.max_rec_depth and not self.stop.closes(judged.findings):
            self._add_candidates(thread, path, ancestors, query, judged)
        if thread == ROOT:
            self._note()
        return judged

    def next_round(self) -> bool:
        """Let the policy choose, and expand what it is granted; False once nothing is."""
        if not self.open:
            return False
        candidates = sorted((each for each, _ in self.open.values()), key=lambda each: each.order)
        spent = SearchProgress(
            calls=self.budget.committed, sub_runs=len(self.expansions), expansions=tuple(self.expansions)
        )
        chosen = self.policy.choose(candidates, spent, self.most)
        threads = {id(each): thread_of(each) for each in chosen}
        granted = affordable(
            chosen, self.most, self.budget, sub_runs=len(self.expansions), thread_of=lambda each: threads[id(each)]
        )
        if not granted:
            reason = skip_reason(self.most, has_chosen=bool(chosen), sub_runs=len(self.expansions))
            self.skipped += [(each, reason) for each in candidates]
            return False
        self.rounds += 1
        for priority, each in enumerate(granted):
            self._expand(each, priority)
        self._note()
        return True

    def played(self) -> Episode:
        """Return the search as it stands."""
        return Episode(
            expansions=tuple(self.expansions),
            skipped=tuple(self.skipped),
            calls=self.budget.committed,
            found=frozenset(self.found),
            needed=len(self.world.gold),
            moments=tuple(self.moments),
            judged=self.judged,
            misses=self.misses,
        )

    def _expand(self, candidate: Candidate, priority: int) -> None:
        _, above = self.open.pop(id(candidate))
        thread = thread_of(candidate)
        if not candidate.next_query:
            candidate = self._written(candidate, thread, above) or candidate
        judged = None
        if candidate.next_query:
            ancestor = Ancestor(chunk_id=candidate.chunk_id, rank=candidate.rank, p=candidate.p)
            below = (*candidate.ancestors, ancestor)
            judged = self.visit(thread, candidate.path, below, candidate.next_query)
        else:
            self.budget.release(thread)
        expansion = Expansion(candidate=candidate, round=self.rounds, priority=priority)
        if judged is not None:
            findings = judged.findings
            expansion = replace(expansion, found=findings.needed, suffices=findings.suffices)
        self.expansions.append(expansion)
        if self.allows_retry and judged is not None:
            tries = [each for each in self.expansions if each.candidate.chunk_path == candidate.chunk_path]
            if self.policy.allows_retry(tries):
                again = candidate.again()
                self.open[id(again)] = again, above

    def _written(self, candidate: Candidate, thread: str, above: str) -> Candidate | None:
        """Return a further try with its question, which takes a call."""
        if not self._pay(thread, 1):
            return None
        try:
            question = self.world.asked_again(above, candidate.chunk_id, candidate.tried)
        except NotRecorded:
            self.misses += 1
            return None
        return None if question is None else candidate.asking(question)

    def _add_candidates(
        self, thread: str, path: tuple[str, ...], ancestors: tuple[Ancestor, ...], query: str, judged: JudgedQuery
    ) -> None:
        is_judged = self.limits.judge_leaves or len(ancestors) + 1 < self.limits.max_rec_depth
        calls = 1 + (judged.expected_calls if is_judged else 0)
        for chunk in judged.chunks:
            if chunk.score == 1 and chunk.next_query:
                candidate = Candidate(
                    thread_id=thread,
                    chunk_id=chunk.chunk_id,
                    next_query=chunk.next_query,
                    path=(*path, chunk.chunk_id, chunk.next_query),
                    p_needed=chunk.p_needed,
                    is_calibrated=chunk.is_calibrated,
                    retrieval_score=chunk.retrieval_score,
                    rank=chunk.rank,
                    ancestors=ancestors,
                    calls=calls,
                )
                self.open[id(candidate)] = candidate, query

    def _paid(self, thread: str, judged: JudgedQuery) -> JudgedQuery:
        """Return the query with the verdicts that the budget pays for.

        A live search begins the calls about all chunks, by rank, before it repeats one for an unusable reply.
        """
        if not self._pay(thread, judged.calls):
            return judged.unjudged()
        unpaid: set[str] = set()
        for turn in range(max((each.calls for each in judged.chunks), default=0)):
            due = (each.chunk_id for each in judged.chunks if each.calls > turn and each.chunk_id not in unpaid)
            unpaid.update(chunk_id for chunk_id in due if not self._pay(thread, 1))
        if not unpaid:
            return judged
        chunks = (each.unjudged() if each.chunk_id in unpaid else each for each in judged.chunks)
        return replace(judged, chunks=tuple(chunks))

    def _pay(self, thread: str, calls: int) -> bool:
        """Pay calls one by one; False if the budget has not all of them."""
        try:
            for _ in range(calls):
                self.budget.acquire(judged_in=thread)
        except BudgetSpent:
            return False
        return True

    def _note(self) -> None:
        self.moments.append(Moment(calls=self.budget.committed, gold=len(self.found)))


def thread_of(candidate: Candidate) -> str:
    """Return a name of the thread of a try, the same before its question is written and after."""
    return "\0".join((*candidate.chunk_path, str(candidate.attempt)))
