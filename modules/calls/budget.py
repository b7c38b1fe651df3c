"""The model calls that a search tree may still make, and a stop from outside that ends its search."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field

from ..errors import BudgetSpent, LimitName
from .ledger import Share, TreeLedger
from .record import TAKEN_FREELY, Taken


class Halt:
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
    async def in_time(self, ledger: TreeLedger) -> AsyncIterator[None]:
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
class CallBudget:
    """The model calls that one search tree may still make, shared by all of its threads.

    A call is reserved before it is made. Every started run holds one call for its answer, so that a tree with a spent
    budget can still answer from its evidence. A sub-run has the calls of its judges set aside as well, so that what
    runs beside it takes none of them, and a tree does not depend on timing.
    """

    limit: int
    used: int = 0
    held: set[str] = field(default_factory=set)
    """Threads that hold a call for their answer."""
    set_aside: Counter[str] = field(default_factory=Counter)
    """Calls for the judges of threads, by thread id."""
    awaited: dict[str, Taken] = field(default_factory=dict)
    """Calls that an earlier run has paid for and had reserved, by id: each counts once its thread comes to it, in place
    of what the thread reserves again."""
    judged_before: Counter[str] = field(default_factory=Counter)
    """Calls that the judges of threads made in an earlier run and that are saved, by thread id."""
    ledger: TreeLedger = field(default_factory=TreeLedger)
    """Limits of tokens, money and time."""
    halt: Halt = field(default_factory=Halt)
    """Stops the search of the tree from outside."""
    short_of: LimitName = "calls"
    """The limit that refused the newest reservation that was refused."""

    @property
    def committed(self) -> int:
        """Calls that were made, or are held or set aside."""
        return self.used + len(self.held) + self.set_aside.total()

    @property
    def over(self) -> LimitName | None:
        """What ended the search of the tree, its time or a stop from outside; None before either."""
        return "stopped" if self.halt.is_set else "seconds" if self.ledger.is_over else None

    def reserve(self, thread_id: str, calls: int, share: Share | None = None) -> bool:
        """Reserve the calls of a whole sub-run, one of which is for its answer; False if fewer are left.

        ``share`` is what they are expected to use. Awaited calls take no room: a round that reserves for their threads
        decides again as before they were made.
        """
        others = self.committed - (thread_id in self.held)  # a started sub-run whose grant was not saved holds a call
        if self.over == "stopped" or others + calls > self.limit or not self.may_answer(thread_id):
            self.short_of = "stopped" if self.over == "stopped" else "calls"
            return False
        limit = self.ledger.short_of(share.total) if share else None
        if limit is not None:
            self.short_of = limit
            return False
        self.restore(thread_id, calls, share)
        return True

    def may_answer(self, thread_id: str) -> bool:
        """Return whether the limit leaves a call for the answer of a sub-run, after all that earlier runs have paid."""
        return self._owed < self.limit or thread_id in self.held | self._begun | self._answered

    def restore(self, thread_id: str, calls: int, share: Share | None = None) -> None:
        """Reserve the calls of a sub-run again that an earlier run reserved, even where fewer are left.

        The calls that it has made since then are counted as used, and those of its judges are not set aside again.
        """
        self.held.add(thread_id)
        self.set_aside[thread_id] = max(calls - 1 - self.judged_before[thread_id], 0)
        if share is not None:
            self.ledger.plan(thread_id, share)

    def judged(self, thread_id: str) -> None:
        """Free the calls that are still set aside for the judges of a thread."""
        self.set_aside.pop(thread_id, None)
        self.ledger.judged(thread_id)

    def hold(self, thread_id: str) -> bool:
        """Set a call aside for the answer of ``thread_id``; False when none is left. A second hold has no effect."""
        if thread_id in self.held:
            return True
        if self.committed >= self.limit:
            return False
        self.held.add(thread_id)
        return True

    def release(self, thread_id: str) -> None:
        """Release all calls that are reserved for ``thread_id``."""
        self.held.discard(thread_id)
        self.judged(thread_id)
        self.ledger.release(thread_id)

    def came(self, call_id: str, *, of: str) -> None:
        """Count an awaited call of a thread, in place of the call that is reserved for it; others count already."""
        taken = self.awaited.pop(call_id, None)
        if taken is None:
            return
        self.held.discard(taken.held_by)
        if self.set_aside.get(taken.set_aside_for, 0):
            self.set_aside[taken.set_aside_for] -= 1
        self.used += 1
        self.ledger.came(call_id, of, is_answer=bool(taken.held_by))

    def in_time(self) -> AbstractAsyncContextManager[None]:
        """Return what ends the work inside with ``BudgetSpent`` once the tree's time is over, or it was stopped."""
        return self.halt.in_time(self.ledger)

    def take(self, *, held_by: str = "", judged_in: str = "") -> Taken:
        """Reserve one call before it is made, and return whose it was, for ``give_back``.

        It is the call held by ``held_by``, or one set aside for the judges of ``judged_in``, if there is one.

        Raises:
            BudgetSpent: No call is left, or the search was stopped.
        """
        if held_by not in self.held:
            self.halt.check()
        if held_by in self.held:
            self.held.remove(held_by)
            taken = Taken(held_by=held_by)
        elif self.set_aside.get(judged_in, 0) and self._owed < self.limit:
            self.set_aside[judged_in] -= 1
            taken = Taken(set_aside_for=judged_in)
        elif self.committed + self._unreserved >= self.limit:
            raise BudgetSpent(f"The budget of {self.limit} model calls for this question is spent.")
        else:
            taken = TAKEN_FREELY
        self.used += 1
        return taken

    @property
    def _owed(self) -> int:
        """Calls that were made in any run, and answers that will be: the limit holds for them on any course.

        A search that goes another way than the run before it, such as one whose grants were not saved (``exit``) or
        that its time cut off, may come to no awaited call.
        """
        return self.used + len(self.awaited) + len((self.held | self._begun) - self._answered)

    @property
    def _unreserved(self) -> int:
        """Awaited calls and answers for which nothing is reserved, so that a new call leaves room for them."""
        awaited = Counter(self.awaited.values())
        calls = sum(max(number - self._reserved_as(taken), 0) for taken, number in awaited.items())
        return calls + len(self._begun - self._answered - self.held)

    @property
    def _begun(self) -> set[str]:
        """Threads with awaited judgements."""
        return {taken.set_aside_for for taken in self.awaited.values()} - {""}

    @property
    def _answered(self) -> set[str]:
        """Threads whose answer is awaited."""
        return {taken.held_by for taken in self.awaited.values()} - {""}

    def _reserved_as(self, taken: Taken) -> int:
        return int(taken.held_by in self.held) + self.set_aside.get(taken.set_aside_for, 0)

    def give_back(self, taken: Taken) -> None:
        """Undo ``take`` for a call that was not made."""
        self.used -= 1
        if taken.held_by:
            self.held.add(taken.held_by)
        elif taken.set_aside_for in self.set_aside:
            self.set_aside[taken.set_aside_for] += 1
