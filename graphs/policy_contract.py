"""What judgetree relies on in a policy, as a check that one can be run against."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from ..modules.errors import UserError
from .contract_rules import ContractError, check_fingerprint, require
from .search.candidate import Ancestor, Candidate, Expansion, SearchLimits, SearchProgress
from .search.policies.registry import create_policy
from .search.policy import Policy


def check_policy(policy: str | object) -> None:
    """Check a policy, or a class or function that makes one: its fingerprint, its choices of small trees, its retries.

    No model is called; the check takes about a hundred choices.

    Raises:
        ContractError: It breaks a rule.
    """
    try:
        made = create_policy(policy)
        made.fingerprint()
        check_fingerprint(made)
        asks_again = _check_retries(made)
        _check_choices(made, _rounds(asks_again=asks_again))
    except UserError as error:
        raise ContractError(str(error)) from error


@dataclass(frozen=True, kw_only=True)
class _Round:
    """What a policy is given when it chooses."""

    candidates: tuple[Candidate, ...]
    spent: SearchProgress
    limits: SearchLimits

    def in_another_run(self) -> _Round:
        """Return the round as another run of the same search has it, whose threads have other ids."""
        before = self.spent.expansions
        renamed = tuple(replace(each, candidate=_renamed(each.candidate)) for each in before)
        candidates = tuple(map(_renamed, self.candidates))
        return replace(self, candidates=candidates, spent=replace(self.spent, expansions=renamed))

    def of(self, *candidates: Candidate) -> _Round:
        return replace(self, candidates=candidates)


def _check_retries(policy: Policy) -> bool:
    """Check ``allows_retry``, and return whether the policy ever asks a chunk again."""
    ever = policy.allows_retry(())
    tries = _expansions(_candidate("a"), _candidate("a").again().asking("a, in other words?"))
    for tried in (tries[:1], tries, [replace(tries[0], found=(("b", 0.8),), suffices=True)]):
        allowed = policy.allows_retry(tried)
        require(policy.allows_retry(tried) == allowed, "the same tries are allowed a retry each time", allowed)
        require(ever or not allowed, "a policy that allows no retry without tries allows none after them", allowed)
    return ever


def _check_choices(policy: Policy, rounds: Sequence[_Round]) -> None:
    first = [_choice(policy, each) for each in rounds]
    again = [_choice(policy, each) for each in reversed(rounds)][::-1]
    require(again == first, "the same candidates have the same choice each time, whatever came between", (first, again))
    resumed = [_choice(policy, each.in_another_run()) for each in rounds]
    require(resumed == first, "a choice depends on no thread_id, which is new in each run", (first, resumed))
    for each, chosen in zip(rounds, first, strict=True):
        if not chosen:
            _check_end(policy, each)


def _check_end(policy: Policy, ended: _Round) -> None:
    rule = "a policy that chooses nothing chooses nothing of a part of these candidates either"
    for place, one in enumerate(ended.candidates):
        others = ended.candidates[:place] + ended.candidates[place + 1 :]
        for part in (ended.of(one), ended.of(*others)):
            require(not part.candidates or not _choice(policy, part), rule, part.candidates)


def _choice(policy: Policy, given: _Round) -> list[int]:
    """Return the places of the chosen candidates, best first; ``OwnPolicy`` checks that they are candidates."""
    candidates = list(given.candidates)
    chosen = policy.choose(candidates, given.spent, given.limits)
    require(tuple(candidates) == given.candidates, "a policy leaves the candidates as they are", candidates)
    places = {id(each): place for place, each in enumerate(candidates)}
    return [places[id(each)] for each in chosen]


def _rounds(*, asks_again: bool) -> list[_Round]:
    """Return rounds of a small search, from its first to one whose calls are nearly spent."""
    a, b, c = _candidate("a", p=0.9), _candidate("b", p=0.4, rank=1), _candidate("c", p=None, rank=2)
    below_a = (_candidate("a", "d", p=0.7), _candidate("a", "e", p=0.0, rank=1))
    after_a = SearchProgress(calls=9, sub_runs=1, expansions=tuple(_expansions(a)))
    after_b = SearchProgress(calls=13, sub_runs=2, expansions=tuple(_expansions(a, b)))
    retried = (b.again(),) if asks_again else ()
    wide, narrow = SearchLimits(max_calls=60), SearchLimits(max_calls=15, max_sub_runs=4, width=1)
    return [
        _Round(candidates=candidates, spent=spent, limits=limits)
        for limits in (wide, narrow)
        for candidates, spent in (
            ((a,), SearchProgress(calls=4)),
            ((a, b, c), SearchProgress(calls=4)),
            ((_candidate("f", p=0.0),), SearchProgress(calls=4)),
            ((b, c, *below_a), after_a),
            ((c, *below_a, *retried), after_b),
        )
    ]


def _candidate(*chunks: str, p: float | None = 0.5, rank: int = 0) -> Candidate:
    """Return the chunk at the end of a path of chunks, each found by the question of the one before."""
    above = tuple(Ancestor(chunk_id=chunk, rank=0, p=0.9) for chunk in chunks[:-1])
    return Candidate(
        thread_id=f"thread-{len(chunks)}",
        chunk_id=chunks[-1],
        next_query=f"{chunks[-1]}?",
        path=tuple(part for chunk in chunks for part in (chunk, f"{chunk}?")),
        p_needed=p,
        retrieval_score=1 / (rank + 1),
        rank=rank,
        ancestors=above,
        calls=4,
    )


def _expansions(*granted: Candidate) -> list[Expansion]:
    """Return the expansions of candidates, one a round; the first found chunks, the others nothing."""
    found = (("d", 0.7), ("e", 0.0))
    return [
        Expansion(candidate=each, round=number, priority=0, found=() if number > 1 else found)
        for number, each in enumerate(granted, 1)
    ]


def _renamed(candidate: Candidate) -> Candidate:
    # Deeper threads come first here, so that an order by thread id is another.
    return replace(candidate, thread_id=f"thread-{9 - candidate.depth}")
