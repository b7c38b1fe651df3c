"""What a round grants of a policy's choice; the same live and in replays."""

from __future__ import annotations

from collections.abc import Callable, Iterable

from ...modules.calls.budget import TreeBudget
from ...modules.errors import LimitName
from .candidate import Candidate, SearchLimits, SkipReason


def affordable(
    chosen: Iterable[Candidate],
    limits: SearchLimits,
    budget: TreeBudget,
    *,
    sub_runs: int,
    thread_of: Callable[[Candidate], str],
) -> list[Candidate]:
    """Reserve the calls of the first of ``chosen`` that the limits allow, and return these.

    ``sub_runs`` is the number of expansions so far, ``thread_of`` names the thread that a candidate's calls are for.
    """
    most = limits.width
    if limits.max_sub_runs is not None:
        left = limits.max_sub_runs - sub_runs
        most = left if most is None else min(most, left)
    granted: list[Candidate] = []
    for each in chosen:
        if most is not None and len(granted) >= most:
            break
        if budget.reserve(thread_of(each), max(each.calls, 1), each.share):
            granted.append(each)
    return granted


def skip_reason(limits: SearchLimits, *, has_chosen: bool, sub_runs: int, short_of: LimitName = "calls") -> SkipReason:
    """Return why nothing was granted; ``exhausted_limit`` is the limit that refused the budget's newest reservation."""
    if not has_chosen:
        return "policy"
    return "sub_runs" if limits.max_sub_runs is not None and sub_runs >= limits.max_sub_runs else short_of
