"""The ledger of a search tree's tokens, money and time: reserved before each call, corrected after it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from ..errors import BudgetSpent, LimitName, SettingsError
from .prices import FILE_NAME, Prices, load_prices
from .record import NOTHING, CallRecord, Spend, counted_tokens
from .reservations import Reservation, ReservationPool

LIKELY_COMPLETION_TOKENS = 256
"""Expected tokens of a reply of unknown length."""


@dataclass(frozen=True)
class ExpectedSpend:
    """What the calls of a sub-run are expected to take."""

    total: Spend = NOTHING
    answer: Spend = NOTHING
    """The part of ``total`` that is for the answer."""


NO_SHARE = ExpectedSpend()


@dataclass
class _Account:
    """One thread. What it has reserved for itself counts as spent until its search has ended."""

    planned: Spend = NOTHING
    kept: Spend = NOTHING
    """For the answer."""
    spent: Spend = NOTHING
    """Paid, or reserved by calls in flight."""

    @property
    def total(self) -> Spend:
        return self.planned.at_least(self.spent + self.kept)


@dataclass(kw_only=True)
class SpendLimits:
    """What the calls of one search tree may use besides their number; used on one event loop.

    A call is reserved with the estimate of its prompt and the most tokens of its reply, and corrected by what it used.
    ``ReservationPool`` says when one waits, and by how much tokens and money may be exceeded.
    """

    max_tree_tokens: int | None = None
    max_tree_cost_usd: float | None = None
    prices: Prices | None = None
    """None for those of the package."""
    deadline: float | None = None
    """Time of the event loop at which the search ends; None for no limit, as of the other two."""
    replayable: dict[str, CallRecord] = field(default_factory=dict)
    """Calls that an earlier run has paid for and that count once their threads come to them, by id."""
    has_failed_answers: bool = False
    """Whether an earlier run has paid for an answer that could not be used: answers need room then, as other calls do,
    so that a question that is resumed again and again keeps to its limits."""
    _accounts: dict[str, _Account] = field(default_factory=dict)
    _in_flight: ReservationPool = field(default_factory=ReservationPool)

    @property
    def limits_amounts(self) -> bool:
        """Whether tokens or money are limited."""
        return self.max_tree_tokens is not None or self.max_tree_cost_usd is not None

    @property
    def limits_anything(self) -> bool:
        """Whether tokens, money or time are limited."""
        return self.limits_amounts or self.deadline is not None

    @property
    def committed(self) -> Spend:
        """What was used, or is reserved."""
        return sum((each.total for each in self._accounts.values()), NOTHING)

    @property
    def used(self) -> Spend:
        """What was used, or is reserved by calls in flight, without what is kept for answers and sub-runs."""
        return sum((each.spent for each in self._accounts.values()), NOTHING)

    @property
    def is_over(self) -> bool:
        """Whether the time is over."""
        return self.deadline is not None and asyncio.get_running_loop().time() >= self.deadline

    def of_call(self, model: str, prompt_tokens: int, completion_tokens: int) -> Spend:
        """Return the amount of a chat call.

        Raises:
            SettingsError: Money is limited, and the price of the model is unknown.
        """
        tokens = prompt_tokens + completion_tokens
        if self.max_tree_cost_usd is None:
            return Spend(calls=1, tokens=tokens)
        self.prices = self.prices or load_prices()
        price = self.prices.of(model)
        if price is None:
            raise SettingsError(
                f"max_tree_cost_usd={self.max_tree_cost_usd:g} cannot be enforced, since the price of the chat model "
                f'{model!r} is unknown. Write it into {FILE_NAME} in the settings\' home, as [chat."{model}"] and '
                "below it prompt = 0.5 and completion = 1.5 (dollars per million tokens), or leave the limit out."
            )
        return Spend(calls=1, tokens=tokens, usd=price.usd_of(prompt_tokens, completion_tokens))

    def of_record(self, record: CallRecord) -> Spend:
        """Return the amount of a call that was made, or answered by the cache."""
        return self.of_call(record["model"], *counted_tokens(record))

    def add(self, spend: Spend) -> None:
        """Count what was used before the first call."""
        self._of("").spent += spend

    def exhausted_limit(self, more: Spend = NOTHING) -> LimitName | None:
        """Return the limit that leaves no room for ``more``; None if there is room."""
        if self.is_over:
            return "seconds"
        return self._exceeded(self.committed + more) if self.limits_amounts else None

    def plan(self, thread_id: str, share: ExpectedSpend) -> None:
        """Reserve a share for the calls of a thread."""
        account = self._of(thread_id)
        account.planned, account.kept = share.total.at_least(share.answer), share.answer

    def release_judges(self, thread_id: str) -> None:
        """Free what is planned for a thread's search, except for its answer."""
        if thread_id in self._accounts:
            self._accounts[thread_id].planned = NOTHING

    def keep(self, thread_id: str, answer: Spend) -> None:
        """Reserve the amount of an answer, as far as there is room; what is kept already stays."""
        account = self._of(thread_id)
        before = account.kept
        account.kept = before.at_least(answer)
        if self._exceeded(self.committed):
            account.kept = before

    def release(self, thread_id: str) -> None:
        """Free what a thread has reserved and not used."""
        if account := self._accounts.get(thread_id):
            account.planned = account.kept = NOTHING

    def book(self, thread_id: str, *records: CallRecord) -> None:
        """Count calls that were made without a reservation."""
        account = self._of(thread_id)
        account.spent = sum(map(self.of_record, records), account.spent)

    def count_replayed(self, call_id: str, thread_id: str, *, is_answer: bool) -> None:
        """Count an awaited call of a thread; others count already."""
        if record := self.replayable.pop(call_id, None):
            if is_answer:
                self._of(thread_id).kept = NOTHING
            self.book(thread_id, record)

    async def reserve(self, thread_id: str, amount: Spend, *, is_answer: bool) -> Reservation:
        """Wait until there is room for a call, and reserve its amount; the first attempt at an answer always has room.

        Raises:
            BudgetSpent: There is no room.
        """
        account = self._of(thread_id)
        if is_answer:
            account.kept = NOTHING
        limit: LimitName | None = await self._in_flight.wait_for_room(
            lambda: self._no_room(account, amount, is_answer=is_answer)
        )
        if limit is not None:
            raise self.spent(limit)
        account.spent += amount
        return self._in_flight.hold(thread_id, amount)

    def settle(self, reservation: Reservation, record: CallRecord | None) -> None:
        """Replace the reservation of a call by what it used; None for a call that was not made."""
        used = NOTHING if record is None else self.of_record(record)
        self._of(reservation.thread_id).spent += used - reservation.amount
        self._in_flight.release(reservation)

    def room(self, thread_id: str) -> Spend:
        """Return what is left for the answer of a thread: what is kept for it, and what nothing else has reserved."""
        account = self._of(thread_id)
        others = self.committed - account.total + account.spent
        tokens = 0 if self.max_tree_tokens is None else self.max_tree_tokens - others.tokens
        usd = 0.0 if self.max_tree_cost_usd is None else self.max_tree_cost_usd - others.usd
        return Spend(tokens=tokens, usd=usd).at_least(NOTHING)

    def spent(self, limit: LimitName) -> BudgetSpent:
        """Return the error of a limit that is reached."""
        amounts = {"tokens": f"{self.max_tree_tokens} tokens", "cost": f"${self.max_tree_cost_usd}", "seconds": "time"}
        return BudgetSpent(f"The budget of {amounts[limit]} for this question is spent.", limit=limit)

    @asynccontextmanager
    async def in_time(self) -> AsyncIterator[None]:
        """Cancel what is inside once the time is over.

        Raises:
            BudgetSpent: The time is over.
        """
        if self.deadline is None:
            yield
            return
        if self.is_over:
            raise self.spent("seconds")
        try:
            async with asyncio.timeout_at(self.deadline) as scope:
                yield
        except TimeoutError:
            if not scope.expired():
                raise
            raise self.spent("seconds") from None

    def _of(self, thread_id: str) -> _Account:
        return self._accounts.setdefault(thread_id, _Account())

    def _no_room(self, account: _Account, amount: Spend, *, is_answer: bool) -> LimitName | None:
        if is_answer and not self.has_failed_answers:
            return None
        if self.is_over and not is_answer:
            raise self.spent("seconds")
        before = account.spent
        account.spent = before + amount
        limit = self._exceeded(self.committed)
        account.spent = before
        return limit

    def _exceeded(self, committed: Spend) -> LimitName | None:
        if self.max_tree_tokens is not None and committed.tokens > self.max_tree_tokens:
            return "tokens"
        if self.max_tree_cost_usd is not None and committed.usd > self.max_tree_cost_usd * (1 + 1e-9):
            return "cost"
        return None
