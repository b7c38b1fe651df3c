"""The frontier of a search tree: the open candidates of all its threads, and the rounds in which they are granted."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

from ...modules.calls.budget import TreeBudget
from ...modules.digests import text_digest
from ...modules.errors import UserError
from .candidate import Candidate, Expansion, SearchLimits, SearchProgress, SkipReason
from .findings import NOTHING_FOUND, Findings
from .policy import Policy
from .rounds import affordable, skip_reason
from .sharing import Link, SharedRuns

_DIGITS = 8
"""Length of the digests of thread ids among the grants of a round."""


@dataclass(frozen=True, kw_only=True)
class Grant:
    """The permission to ask a sub-question."""

    round: int
    """From 1."""
    priority: int
    """Place among the grants of the round, from 0."""
    round_digests: str
    """Digests of the threads that were granted in the round, by priority.

    Each thread saves it, so that a run that was killed before all of them were saved grants the others again.
    """


@dataclass(frozen=True, kw_only=True)
class Skipped:
    """The refusal of a sub-question."""

    reason: SkipReason


Decision = Grant | Skipped | Link
Place = tuple[str, str, int]
"""Thread, chunk id and number of the try."""


@dataclass(frozen=True, kw_only=True)
class _Waiting:
    candidate: Candidate
    sub_thread_id: str
    decision: asyncio.Future[Decision]


class Frontier:
    """Grants the candidates of one run of a search tree in rounds; used on one event loop.

    A round begins once every thread that was granted has said which candidates it has (``announce_candidates``), and
    all of these have arrived (``request_grant``). So a choice depends on verdicts and never on timing. Each granted
    thread holds the calls of its whole expansion. A candidate that is not chosen stays open until nothing more is
    granted.

    A resumed run names the grants of earlier runs (``restore_grant``); they are never decided again.
    """

    def __init__(
        self,
        policy: Policy,
        limits: SearchLimits,
        budget: TreeBudget,
        *,
        root: str,
        thread_of_try: Callable[[Candidate], str],
        shared: SharedRuns | None = None,
    ) -> None:
        """Begin with the thread ``root``, whose search counts as running.

        ``thread_of_try`` names the thread of a further try of a chunk, which does not depend on its question. With
        ``shared``, a candidate whose question was asked before is linked instead of granted.
        """
        self._policy = policy
        self._limits = limits
        self._budget = budget
        self.thread_of_try = thread_of_try
        self.shared = shared
        self._running = {root}
        self._expected: set[Place] = set()
        self._waiting: dict[Place, _Waiting] = {}
        self._expansions: dict[str, Expansion] = {}
        self._granted_before: dict[str, Grant] = {}
        """Grants of an earlier run that have not come again, by digest of the thread."""
        self._searching: dict[str, asyncio.Event] = {}
        """Events of running threads whose end is awaited."""
        self._answering: set[str] = set()
        """Threads whose answers a round awaits, since what they use decides on its grants."""
        self._branches: Counter[str] = Counter()
        """Branches of threads that have not ended."""
        self._round = 0
        self._failure: BaseException | None = None
        self._is_closed = False
        self.allows_retry = policy.allows_retry(())
        """Whether chunks may be asked on more than once."""

    @property
    def spent(self) -> SearchProgress:
        """What the tree has used, and what was expanded, in the order of the grants."""
        expansions = sorted(self._expansions.values(), key=lambda each: (each.round, each.priority))
        return SearchProgress(calls=self._budget.committed, sub_runs=len(expansions), expansions=tuple(expansions))

    def announce_candidates(
        self, thread_id: str, candidates: Iterable[str] = (), findings: Findings = NOTHING_FOUND
    ) -> None:
        """Announce the chunks of a thread that will ask; only the first call for a thread counts."""
        if thread_id not in self._running:
            return
        asking = [(thread_id, chunk_id, 1) for chunk_id in candidates]
        self._expected.update(asking)
        self._branches[thread_id] = len(asking)
        self._budget.release_judges(thread_id)
        if not asking:
            self._answers(thread_id)
        if expansion := self._expansions.get(thread_id):
            found = replace(expansion, found=findings.needed, suffices=findings.suffices)
            self._expansions[thread_id] = found
            self._ask_again(found.candidate)
        self._end(thread_id)

    def finish_asking(self, thread_id: str) -> None:
        """Note that a thread asks nothing more, and answers."""
        if thread_id in self._running:
            self._answers(thread_id)
        self._expected = {place for place in self._expected if place[0] != thread_id}
        self._end(thread_id)

    def finish_run(self, thread_id: str) -> None:
        """Note that the run of a thread has ended; idempotent."""
        self._expected = {place for place in self._expected if place[0] != thread_id}
        self._answering.discard(thread_id)
        self._end(thread_id)

    def restore_grant(self, candidate: Candidate, sub_thread_id: str, grant: Grant, *, has_ended: bool = False) -> None:
        """Note a grant of an earlier run, whose thread runs now; ``announce_candidates`` says what it found.

        One that ``has_ended`` there makes no call, and reserves none.
        """
        self._expected.discard(_place(candidate))
        if not has_ended:
            self._budget.restore(sub_thread_id, max(candidate.calls, 1), candidate.share)
        self._remember(grant)
        self._start(candidate, sub_thread_id, grant)

    def restore_finished(self, candidate: Candidate, sub_thread_id: str, grant: Grant, findings: Findings) -> None:
        """Note a grant of an earlier run whose sub-run has ended, so that this run does not come to it again."""
        self._remember(grant)
        self._expand(candidate, sub_thread_id, grant, findings)

    async def request_grant(self, candidate: Candidate, sub_thread_id: str) -> Decision:
        """Wait for the round that decides on a candidate.

        Raises:
            UserError: The policy failed, or the question ended with an error elsewhere in the tree.
            GraphInterrupt: A sub-run elsewhere in the tree waits for an answer, which decides on the round.
        """
        place = _place(candidate)
        self._expected.discard(place)
        if place not in self._waiting:
            self._wait(candidate, sub_thread_id)
            self._next_round()
        if self._failure is not None:
            raise self._failure
        try:
            return await self._waiting[place].decision
        finally:
            self._waiting.pop(place, None)

    async def next_attempt(self, candidate: Candidate, sub_thread_id: str) -> tuple[Candidate, str] | None:
        """Wait until the search of a granted candidate has ended, and return the next try of its chunk with its thread.

        It already waits for its decision (``request_grant``). None if the policy wants none.
        """
        if sub_thread_id in self._running:
            await self._searching.setdefault(sub_thread_id, asyncio.Event()).wait()
        waiting = self._waiting.get((candidate.thread_id, candidate.chunk_id, candidate.attempt + 1))
        return (waiting.candidate, waiting.sub_thread_id) if waiting else None

    def update_candidate(self, sub_thread_id: str, candidate: Candidate) -> None:
        """Note the question of a further try, which was written once it was granted."""
        self._note(sub_thread_id, replace(self._expansions[sub_thread_id], candidate=candidate))

    def fail(self, error: BaseException) -> None:
        """End the search of the whole tree: every candidate that waits, or comes later, raises the error."""
        self._failure = self._failure or error
        for each in self._waiting.values():
            if not each.decision.done():
                each.decision.set_exception(self._failure)
                each.decision.exception()  # a try whose branch has left is not awaited

    def close(self) -> None:
        """Decide on nothing more: the run is cancelled, and each candidate waits until its own branch is.

        A round without the branches that are cancelled already would choose otherwise, and its grants would be saved.
        """
        self._is_closed = True

    def close_chunk(self, thread_id: str, chunk_id: str) -> None:
        """Note that the branch of a chunk has ended, so that none of its tries is awaited any more."""
        for place in [place for place in self._waiting if place[:2] == (thread_id, chunk_id)]:
            self._running.discard(self._waiting.pop(place).sub_thread_id)
        self._branches[thread_id] -= 1
        if not self._branches[thread_id]:
            self._answers(thread_id)
        self._next_round()

    def _ask_again(self, candidate: Candidate) -> None:
        """Let the chunk of an expansion wait for one more try, if the policy wants it."""
        tries = [each for each in self._expansions.values() if _chunk(each.candidate) == _chunk(candidate)]
        try:
            is_wanted = len(tries) <= candidate.attempt and self._policy.allows_retry(tries)
        except UserError as error:
            self.fail(error)
            return
        if not is_wanted:
            return
        again = candidate.again()
        self._wait(again, self.thread_of_try(again))

    def _answers(self, thread_id: str) -> None:
        """Let rounds await the answer of a sub-run, if tokens or money are limited.

        Otherwise a grant would depend on which answers have come.
        """
        if self._budget.ledger.limits_amounts and thread_id in self._expansions:
            self._answering.add(thread_id)

    def _wait(self, candidate: Candidate, sub_thread_id: str) -> None:
        decision: asyncio.Future[Decision] = asyncio.get_running_loop().create_future()
        self._waiting[_place(candidate)] = _Waiting(candidate=candidate, sub_thread_id=sub_thread_id, decision=decision)

    def _end(self, thread_id: str) -> None:
        self._running.discard(thread_id)
        if ended := self._searching.pop(thread_id, None):
            ended.set()
        self._next_round()

    def _start(self, candidate: Candidate, sub_thread_id: str, grant: Grant) -> None:
        self._running.add(sub_thread_id)
        self._expand(candidate, sub_thread_id, grant, NOTHING_FOUND)

    def _expand(self, candidate: Candidate, sub_thread_id: str, grant: Grant, findings: Findings) -> None:
        expansion = Expansion(
            candidate=candidate,
            round=grant.round,
            priority=grant.priority,
            found=findings.needed,
            suffices=findings.suffices,
        )
        self._note(sub_thread_id, expansion)
        self._granted_before.pop(_digest(sub_thread_id), None)

    def _note(self, sub_thread_id: str, expansion: Expansion) -> None:
        self._expansions[sub_thread_id] = expansion
        if self.shared is not None:
            self.shared.granted(sub_thread_id, expansion)

    def _remember(self, grant: Grant) -> None:
        """Note which others were granted in the round of a grant."""
        self._round = max(self._round, grant.round)
        for priority, digest in enumerate(grant.round_digests.split()):
            self._granted_before[digest] = replace(grant, priority=priority)

    def _next_round(self) -> None:
        """Decide on the waiting candidates, if nothing that runs could add another."""
        if self._is_closed or self._running or self._expected or self._answering or self._failure is not None:
            return
        waiting = {id(each.candidate): each for each in self._waiting.values() if not each.decision.done()}
        if not waiting or self._grant_again(waiting.values()):
            return
        if self.shared is not None:
            self._link(waiting, self.shared)
            if not waiting:
                return
        candidates = sorted((each.candidate for each in waiting.values()), key=lambda each: each.order)
        try:
            chosen = self._policy.choose(candidates, self.spent, self._limits)
        except UserError as error:
            self.fail(error)
            return
        sub_runs = len(self._expansions)
        granted = affordable(
            chosen if self.shared is None else self.shared.distinct(chosen),
            self._limits,
            self._budget,
            sub_runs=sub_runs,
            thread_of=lambda each: waiting[id(each)].sub_thread_id,
        )
        if granted:
            self._round += 1
            self._grant([waiting[id(each)] for each in granted])
            return
        short_of = self._budget.exhausted_limit
        reason = skip_reason(self._limits, has_chosen=bool(chosen), sub_runs=sub_runs, short_of=short_of)
        for each in waiting.values():
            each.decision.set_result(Skipped(reason=reason))

    def _link(self, waiting: dict[int, _Waiting], shared: SharedRuns) -> None:
        """Decide on the candidates whose question was asked before, and take them out of ``waiting``."""
        for candidate, link in shared.decided(each.candidate for each in waiting.values()):
            waiting.pop(id(candidate)).decision.set_result(link or Skipped(reason="cycle"))

    def _grant(self, granted: Sequence[_Waiting]) -> None:
        digests = " ".join(_digest(each.sub_thread_id) for each in granted)
        for priority, each in enumerate(granted):
            grant = Grant(round=self._round, priority=priority, round_digests=digests)
            self._start(each.candidate, each.sub_thread_id, grant)
            each.decision.set_result(grant)

    def _grant_again(self, waiting: Iterable[_Waiting]) -> bool:
        """Grant what an earlier run had granted before it was killed, and return whether there was any."""
        has_granted = False
        for each in waiting:
            grant = self._granted_before.get(_digest(each.sub_thread_id))
            if grant is not None and self._budget.can_reserve_answer(each.sub_thread_id):
                self._budget.restore(each.sub_thread_id, max(each.candidate.calls, 1), each.candidate.share)
                self._start(each.candidate, each.sub_thread_id, grant)
                each.decision.set_result(grant)
                has_granted = True
        return has_granted


def _place(candidate: Candidate) -> Place:
    return candidate.thread_id, candidate.chunk_id, candidate.attempt


def _chunk(candidate: Candidate) -> tuple[str, str]:
    return candidate.thread_id, candidate.chunk_id


def _digest(thread_id: str) -> str:
    return text_digest(thread_id).hex()[:_DIGITS]
