"""The accounting of model calls: one record a call, and its place in the budget of the search tree."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from contextvars import ContextVar
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from typing_extensions import TypedDict

from .budget import TreeBudget
from .record import BudgetSource, CallKind, CallRecord, Spend, possible_count, recorded_now

if TYPE_CHECKING:
    from .completion import Completion
    from .journal import JournalEntry, ThreadCalls
    from .ledger import SpendLimits
    from .messages import CallOptions, Message
    from .reservations import Reservation

__all__ = ["CallKind", "CallMeter", "CallRecord", "Payer", "UsageTotals", "sum_usage", "total_usage"]


class Payer(Protocol):
    """Protocol of what pays for calls besides their search tree: a run with its limits, or the day of a key."""

    def spend_of(self, record: CallRecord) -> Spend:
        """Compute calls, tokens and cost of one call; its tokens may be estimates."""
        ...

    async def reserve(self, expected: Spend, *, is_answer: bool) -> object:
        """Wait until the limits allow an attempt, then reserve what it is expected to use; ``settle`` takes the result.

        ``is_answer`` says that it answers a question from what was found for it.

        Raises:
            RunLimitReached: The limits of a run do not allow the attempt; it must not be made.
            BudgetSpent: Those of a question do not.
        """
        ...

    async def settle(self, place: object, actual: Spend) -> None:
        """Replace the reservation of an attempt by what it used; by nothing if it was not made."""
        ...


PAYER: ContextVar[Payer | None] = ContextVar("payer", default=None)
"""What pays for the calls of a task besides their search tree; None for nothing."""


class CallBooks(Protocol):
    """Protocol of what admits and books the attempts of one call."""

    async def begin(self) -> None:
        """Journal the call, before the first of its attempts."""
        ...

    async def book(self, record: CallRecord) -> None:
        """Book a failed attempt that may be billed, in place of what was reserved for it."""
        ...

    async def admit(self) -> None:
        """Reserve the next attempt unless one is reserved."""
        ...

    def refused(self) -> None:
        """Note that the attempt that was sent is not billed, and that none is in flight until the next."""
        ...


class UsageTotals(TypedDict):
    """Sums over call records; ``seconds`` adds up the calls' own times, which overlap when calls run in parallel."""

    llm_calls: int
    prompt_tokens: int
    completion_tokens: int
    seconds: float


def total_usage(records: Iterable[CallRecord]) -> UsageTotals:
    """Sum the chat calls that were made: failed ones count, cached ones do not."""
    totals = UsageTotals(llm_calls=0, prompt_tokens=0, completion_tokens=0, seconds=0.0)
    for record in records:
        if record["kind"] != "chat" or record["cached"]:
            continue
        totals["llm_calls"] += 1
        totals["prompt_tokens"] += record["prompt_tokens"]
        totals["completion_tokens"] += record["completion_tokens"]
        totals["seconds"] += record["seconds"]
    return totals


def sum_usage(parts: Iterable[UsageTotals]) -> UsageTotals:
    """Add up totals; without any, all sums are zero."""
    totals = total_usage(())
    for part in parts:
        totals["llm_calls"] += part["llm_calls"]
        totals["prompt_tokens"] += part["prompt_tokens"]
        totals["completion_tokens"] += part["completion_tokens"]
        totals["seconds"] += part["seconds"]
    return totals


@dataclass(frozen=True)
class Reserved:
    """A call that was reserved."""

    taken: BudgetSource | None = None
    amount: Reservation | None = None


@dataclass(kw_only=True)
class CallMeter:
    """The accounting of one graph node's model calls: reserves each in the budget and keeps its record.

    >>> meter = CallMeter(node="judge")
    >>> meter.reserve()  # raises BudgetSpent where the tree may make no more calls
    >>> meter.record(kind="chat", model="mine", started=0.0, prompt_tokens=7, completion_tokens=2)
    >>> meter.records[0]["prompt_tokens"]
    7
    """

    node: str
    chunk_id: str = ""
    budget: TreeBudget | None = None
    held_by: str = ""
    """Thread whose held call the first call may use."""
    judged_in: str = ""
    """Thread whose judges make the calls."""
    calls: ThreadCalls | None = None
    """The journal of the thread's calls; None without one."""
    records: list[CallRecord] = field(default_factory=list)
    claimed: Counter[bytes] = field(default_factory=Counter)
    """Number of calls made so far, by request."""
    books: CallBooks | None = None
    """Admits and books the attempts of the one call that the meter is for; None for a meter of several calls."""
    payer: Payer | None = field(default_factory=PAYER.get)
    """What pays for the calls besides their tree."""
    sending: Callable[[], Awaitable[None]] | None = None
    """Awaited before the first request of each call, which it may hold back until it is cancelled."""

    def holds(self, request: Callable[[], bytes]) -> bool:
        """Return whether the journal has the reply to the next call of a request, which will then not be made.

        ``request`` computes its key, and is called only if the journal held calls when the run began.
        """
        if self.calls is None or not self.calls.known:
            return False
        key = request()
        return self.calls.slot(self.node, self.chunk_id, key, self.claimed[key]).call.kept is not None

    def claim(self, request: bytes) -> JournalEntry | None:
        """Return the journal's entry for the next call of a request; None without a journal."""
        if self.calls is None:
            return None
        slot = self.calls.slot(self.node, self.chunk_id, request, self.claimed[request])
        self.claimed[request] += 1
        return slot

    async def about_to_send(self) -> None:
        """Journal the call, before the first of its attempts; to be awaited before each."""
        if self.books is not None:
            await self.books.begin()

    async def book_failed(self, *, estimated: bool) -> None:
        """Book the newest record, which is that of a failed attempt that may be billed; its tokens may be estimates."""
        self.records[-1]["estimated"] = estimated
        if self.books is not None:
            await self.books.book(self.records[-1])

    def attempt_refused(self) -> None:
        """Note that the newest attempt was refused, so that a call that is cancelled before the next costs nothing."""
        if self.books is not None:
            self.books.refused()

    async def admit_again(self) -> None:
        """Reserve a further attempt after one that was booked.

        Raises:
            BudgetSpent: The tree's budget, or that of who pays, allows no further attempt.
            RunLimitReached: The limits of the run do not.
        """
        if self.books is not None:
            await self.books.admit()

    def reserve(self) -> None:
        """Reserve the next call, whose tokens ``record`` counts.

        Raises:
            BudgetSpent: The tree's budget is used up.
        """
        if self.budget is None:
            return
        ledger = self.budget.ledger
        if self.held_by not in self.budget.reserved_for_answers and (limit := ledger.exhausted_limit()):
            raise ledger.spent(limit)
        self.budget.acquire(held_by=self.held_by, judged_in=self.judged_in)

    async def reserve_amount(self, amount: Callable[[SpendLimits], Spend]) -> Reserved:
        """Reserve the next call with what it may use, until ``settle``.

        Raises:
            BudgetSpent: The tree's budget is used up.
        """
        if self.budget is None:
            return Reserved()
        taken = self.budget.acquire(held_by=self.held_by, judged_in=self.judged_in)
        ledger = self.budget.ledger
        if not ledger.limits_anything:
            return Reserved(taken)
        try:
            return Reserved(taken, await ledger.reserve(self._account, amount(ledger), is_answer=bool(taken.held_by)))
        except BaseException:
            self.budget.undo_acquire(taken)
            raise

    def settle(self, reserved: Reserved, record: CallRecord | None) -> None:
        """Correct what is reserved by the record of the call; None gives the call back, which was not made."""
        if self.budget is None or reserved.taken is None:
            return
        if record is None:
            self.budget.undo_acquire(reserved.taken)
        if reserved.amount is not None:
            self.budget.ledger.settle(reserved.amount, record)

    def in_time(self, reserved: Reserved) -> AbstractAsyncContextManager[None]:
        """Return a context that cancels a call once the tree's time is over; a thread's held answer stays."""
        is_of_answer = reserved.taken is not None and reserved.taken.held_by
        return nullcontext() if self.budget is None or is_of_answer else self.budget.in_time()

    @property
    def _account(self) -> str:
        return self.held_by or self.judged_in

    def replay(self, record: CallRecord) -> None:
        """Append the record of a call that was made in an earlier run."""
        self.records.append(record)
        if self.budget is not None:
            self.budget.count_replayed(record["call_id"], of=self._account)

    def record(  # noqa: PLR0913 - a call has so many facts
        self,
        *,
        kind: CallKind,
        model: str,
        started: float,
        prompt_tokens: int = 0,
        completion_tokens: int = 0,
        cached_prompt_tokens: int = 0,
        attempts: int = 1,
        cut_off: bool = False,
        error: str = "",
    ) -> None:
        """Append the record of a call that ended now; ``started`` is its ``time.perf_counter()``."""
        self.records.append(
            CallRecord(
                call_id=uuid.uuid4().hex,
                kind=kind,
                node=self.node,
                chunk_id=self.chunk_id,
                model=model,
                prompt_tokens=possible_count(prompt_tokens) or 0,  # a model of one's own may say anything
                completion_tokens=possible_count(completion_tokens) or 0,
                estimated=False,
                seconds=round(time.perf_counter() - started, 4),
                attempts=attempts,
                cached=False,
                cut_off=cut_off,
                error=error,
                ended_at=recorded_now(),
            )
        )
        if from_cache := possible_count(cached_prompt_tokens):
            self.records[-1]["cached_prompt_tokens"] = from_cache
        if kind == "chat" and self.budget is not None:
            self.budget.ledger.book(self._account, self.records[-1])

    def transcribe(self, messages: Sequence[Message], options: CallOptions, reply: Completion | None) -> None:
        """Keep the texts of the newest record's call, where calls are recorded; a chat model calls it after ``record``.

        ``reply`` is None for a failed call. It returns at once.
        """
        if self.calls is not None and self.calls.transcripts is not None and self.records:
            self.calls.transcripts.keep(self.records[-1], messages, options, reply)

    def record_cached(self, paid: CallRecord) -> None:
        """Append the record of a call that the cache answered, with the usage in ``paid``."""
        own = {"call_id": uuid.uuid4().hex, "node": self.node, "chunk_id": self.chunk_id, "cached": True}
        own["ended_at"] = recorded_now()
        self.records.append(CallRecord(**{**paid, **own}))  # type: ignore[typeddict-item]
