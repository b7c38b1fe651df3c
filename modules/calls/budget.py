"""The model calls that a search tree may still make, and a stop from outside that ends its search."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field

from ..errors import BudgetSpent, LimitName
from .ledger import ExpectedSpend, SpendLimits
from .record import UNRESERVED, BudgetSource


class StopSignal:
    """Ends the searches that it was given to, as the end of their time does; used on one event loop."""

    def __init__(self) -> None:
        self.is_set = False
        self._scopes: set[asyncio.Timeout] = set()

    def set(self) -> None:
        """Cancel the judges, searches, tools and sub-runs of the searches; their roots answer from what was found."""
        self.is_set = True
        for scope in self._scopes:
            if not scope.expired():
                scope.reschedule(asyncio.get_running_loop().time())

    def check(self) -> None:
        """Check that the search was not stopped.

        Raises:
            BudgetSpent: It was stopped.
        """
        if self.is_set:
            raise BudgetSpent("The search was stopped.", limit="stopped")

    @asynccontextmanager
    async def in_time(self, ledger: SpendLimits) -> AsyncIterator[None]:
        """Cancel what is inside once the search is stopped, or once the time of the ledger is over.

        Raises:
            BudgetSpent: One of both.
        """
        self.check()
        try:
            async with asyncio.timeout(None) as scope:
                self._scopes.add(scope)
                try:
                    async with ledger.in_time():
                        yield
                finally:
                    self._scopes.discard(scope)
        except TimeoutError:
            if not scope.expired():
                raise
            self.check()


@dataclass(kw_only=True)
class TreeBudget:
    """The model calls that one search tree may still make, shared by all of its threads.

    A call is reserved before it is made. Every started run holds one call for its answer, so that a tree with a spent
    budget can still answer from its evidence. A sub-run has the calls of its judges set aside as well, so that what
    runs beside it takes none of them, and a tree does not depend on timing.
    """

    limit: int
    used: int = 0
    reserved_for_answers: set[str] = field(default_factory=set)
    """Threads that hold a call for their answer."""
    reserved_for_judges: Counter[str] = field(default_factory=Counter)
    """Calls for the judges of threads, by thread id."""
    replayable: dict[str, BudgetSource] = field(default_factory=dict)
    """Calls that an earlier run has paid for and had reserved, by id: each counts once its thread comes to it, in place
    of what the thread reserves again."""
    replayed_judge_calls: Counter[str] = field(default_factory=Counter)
    """Calls that the judges of threads made in an earlier run and that are saved, by thread id."""
    ledger: SpendLimits = field(default_factory=SpendLimits)
    """Limits of tokens, money and time."""
    halt: StopSignal = field(default_factory=StopSignal)
    """Stops the search of the tree from outside."""
    exhausted_limit: LimitName = "calls"
    """The limit that refused the newest reservation that was refused."""

    @property
    def committed(self) -> int:
        """Calls that were made, or are held or set aside."""
        return self.used + len(self.reserved_for_answers) + self.reserved_for_judges.total()

    @property
    def over(self) -> LimitName | None:
        """What ended the search of the tree, its time or a stop from outside; None before either."""
        return "stopped" if self.halt.is_set else "seconds" if self.ledger.is_over else None

    def reserve(self, thread_id: str, calls: int, share: ExpectedSpend | None = None) -> bool:
        """Reserve the calls of a whole sub-run, one of which is for its answer; False if fewer are left.

        ``share`` is what they are expected to use. Awaited calls take no room: a round that reserves for their threads
        decides again as before they were made.
        """
        others = self.committed - (
            thread_id in self.reserved_for_answers
        )  # a started sub-run whose grant was not saved holds a call
        if self.over == "stopped" or others + calls > self.limit or not self.can_reserve_answer(thread_id):
            self.exhausted_limit = "stopped" if self.over == "stopped" else "calls"
            return False
        limit = self.ledger.exhausted_limit(share.total) if share else None
        if limit is not None:
            self.exhausted_limit = limit
            return False
        self.restore(thread_id, calls, share)
        return True

    def can_reserve_answer(self, thread_id: str) -> bool:
        """Return whether the limit leaves a call for the answer of a sub-run, after all that earlier runs have paid."""
        return self._owed < self.limit or thread_id in self.reserved_for_answers | self._begun | self._answered

    def restore(self, thread_id: str, calls: int, share: ExpectedSpend | None = None) -> None:
        """Reserve the calls of a sub-run again that an earlier run reserved, even where fewer are left.

        The calls that it has made since then are counted as used, and those of its judges are not set aside again.
        """
        self.reserved_for_answers.add(thread_id)
        self.reserved_for_judges[thread_id] = max(calls - 1 - self.replayed_judge_calls[thread_id], 0)
        if share is not None:
            self.ledger.plan(thread_id, share)

    def release_judges(self, thread_id: str) -> None:
        """Free the calls that are still set aside for the judges of a thread."""
        self.reserved_for_judges.pop(thread_id, None)
        self.ledger.release_judges(thread_id)

    def reserve_answer(self, thread_id: str) -> bool:
        """Set a call aside for the answer of ``thread_id``; False when none is left. A second hold has no effect."""
        if thread_id in self.reserved_for_answers:
            return True
        if self.committed >= self.limit:
            return False
        self.reserved_for_answers.add(thread_id)
        return True

    def release(self, thread_id: str) -> None:
        """Release all calls that are reserved for ``thread_id``."""
        self.reserved_for_answers.discard(thread_id)
        self.release_judges(thread_id)
        self.ledger.release(thread_id)

    def count_replayed(self, call_id: str, *, of: str) -> None:
        """Count an awaited call of a thread, in place of the call that is reserved for it; others count already."""
        taken = self.replayable.pop(call_id, None)
        if taken is None:
            return
        self.reserved_for_answers.discard(taken.held_by)
        if self.reserved_for_judges.get(taken.set_aside_for, 0):
            self.reserved_for_judges[taken.set_aside_for] -= 1
        self.used += 1
        self.ledger.count_replayed(call_id, of, is_answer=bool(taken.held_by))

    def in_time(self) -> AbstractAsyncContextManager[None]:
        """Return what ends the work inside with ``BudgetSpent`` once the tree's time is over, or it was stopped."""
        return self.halt.in_time(self.ledger)

    def acquire(self, *, held_by: str = "", judged_in: str = "") -> BudgetSource:
        """Reserve one call before it is made, and return whose it was, for ``undo_acquire``.

        It is the call held by ``held_by``, or one set aside for the judges of ``judged_in``, if there is one.

        Raises:
            BudgetSpent: No call is left, or the search was stopped.
        """
        if held_by not in self.reserved_for_answers:
            self.halt.check()
        if held_by in self.reserved_for_answers:
            self.reserved_for_answers.remove(held_by)
            taken = BudgetSource(held_by=held_by)
        elif self.reserved_for_judges.get(judged_in, 0) and self._owed < self.limit:
            self.reserved_for_judges[judged_in] -= 1
            taken = BudgetSource(set_aside_for=judged_in)
        elif self.committed + self._unreserved >= self.limit:
            raise BudgetSpent(f"The budget of {self.limit} model calls for this question is spent.")
        else:
            taken = UNRESERVED
        self.used += 1
        return taken

    @property
    def _owed(self) -> int:
        """Calls that were made in any run, and answers that will be: the limit holds for them on any course.

        A search that goes another way than the run before it, such as one whose grants were not saved (``exit``) or
        that its time cut off, may come to no awaited call.
        """
        return self.used + len(self.replayable) + len((self.reserved_for_answers | self._begun) - self._answered)

    @property
    def _unreserved(self) -> int:
        """Awaited calls and answers for which nothing is reserved, so that a new call leaves room for them."""
        awaited = Counter(self.replayable.values())
        calls = sum(max(number - self._reserved_as(taken), 0) for taken, number in awaited.items())
        return calls + len(self._begun - self._answered - self.reserved_for_answers)

    @property
    def _begun(self) -> set[str]:
        """Threads with awaited judgements."""
        return {taken.set_aside_for for taken in self.replayable.values()} - {""}

    @property
    def _answered(self) -> set[str]:
        """Threads whose answer is awaited."""
        return {taken.held_by for taken in self.replayable.values()} - {""}

    def _reserved_as(self, taken: BudgetSource) -> int:
        return int(taken.held_by in self.reserved_for_answers) + self.reserved_for_judges.get(taken.set_aside_for, 0)

    def undo_acquire(self, taken: BudgetSource) -> None:
        """Undo ``acquire`` for a call that was not made."""
        self.used -= 1
        if taken.held_by:
            self.reserved_for_answers.add(taken.held_by)
        elif taken.set_aside_for in self.reserved_for_judges:
            self.reserved_for_judges[taken.set_aside_for] += 1
