"""Which questions are let in: as many at once as the server takes, within the budgets of their keys."""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, fields, replace
from typing import cast

from ....modules.calls.prices import Prices
from ....modules.calls.record import NOTHING, CallRecord, Spend
from ....modules.calls.usage import PAYER
from ....modules.errors import BudgetSpent
from ..keys.key import Budget
from ..keys.spending import DailyBudgetExhausted, KeyLedger, reserved_at_first
from .caller import Caller
from .errors import ApiError
from .options import ServerOptions

_BUSY_S = 5
_NO_QUOTA = "insufficient_quota"


@dataclass(kw_only=True)
class Admission:
    """A question that was let in."""

    calls: Sequence[CallRecord] = ()
    """Model calls that it pays for; read when it ends, however it ends."""
    turn_id: str = ""
    """Turn whose calls they are, those of earlier runs included; ``""`` for no turn."""
    reservation: tuple[KeyLedger, str] | None = None
    """What is reserved for it, and its id there; None for a caller without a budget."""

    async def name_turn(self, turn_id: str, conversation: str) -> None:
        """Tell which turn the question is, so that what a killed worker reserved for it can be settled."""
        self.turn_id = turn_id
        if self.reservation is not None:
            ledger, run_id = self.reservation
            await asyncio.to_thread(ledger.name_turn, run_id, turn_id, conversation)


class KeyDay:
    """What pays for the calls of one question: the day of its key, of which the question has reserved a part.

    An attempt that goes beyond what is reserved reserves more, by one atomic write that all workers share. The answer
    to a question is always paid for, so that what was found for it is not lost.
    """

    def __init__(self, ledger: KeyLedger, run_id: str, caller: Caller, per_question: Budget, prices: Prices) -> None:
        self._ledger = ledger
        self._run_id = run_id
        self._per_day = caller.per_day
        self._prices = prices
        self._step = reserved_at_first(caller.per_day, per_question)
        # Of a question without a limit, more may have been reserved than the day has left.
        self._held = Spend(
            usd=per_question.usd or 0.0, tokens=per_question.tokens or 0, seconds=per_question.seconds or 0.0
        )
        self._used = NOTHING
        """Used, or reserved by attempts in flight."""
        self._began = time.monotonic()
        self._growing = asyncio.Lock()

    def spend_of(self, record: CallRecord) -> Spend:
        """Compute calls, tokens and cost of one call."""
        return self._prices.spend_of(record)

    async def reserve(self, expected: Spend, *, is_answer: bool) -> object:
        """Reserve an attempt, see ``Payer``."""
        async with self._growing:
            wanted = self._used + expected + Spend(seconds=time.monotonic() - self._began)
            if not (await self._holds(wanted) or is_answer):
                raise BudgetSpent("The budget of this key for the day has no room for a further call.", limit="tokens")
            self._used += expected
            return expected

    async def settle(self, place: object, actual: Spend) -> None:
        """Settle an attempt, see ``Payer``."""
        self._used += actual - cast(Spend, place)

    async def _holds(self, wanted: Spend) -> bool:
        """Return whether so much is reserved; where it is not, reserve a further step, or what is wanted alone."""
        short = [name for name in _limited(self._per_day) if getattr(self._held, name) < getattr(wanted, name)]
        if not short:
            return True
        for amounts in (wanted.at_least(self._held + self._step), wanted):
            grown = replace(self._held, **{name: getattr(amounts, name) for name in short})
            if await asyncio.to_thread(self._ledger.grow, self._run_id, self._per_day, grown):
                self._held = grown
                return True
        return False


def _limited(budget: Budget) -> list[str]:
    """Return the names of what a budget limits."""
    return [each.name for each in fields(budget) if getattr(budget, each.name) is not None]


AbandonedCalls = Callable[[str], Awaitable[tuple[str, Sequence[CallRecord]]]]
"""Takes the stored name of a conversation; returns the id and calls of its open turn that no process is answering."""


class QuestionAdmissions:
    """The questions that a worker answers, and the budgets of all."""

    def __init__(self, options: ServerOptions, ledger: KeyLedger, prices: Prices, abandoned: AbandonedCalls) -> None:
        self._options = options
        self._ledger = ledger
        self._prices = prices
        self._abandoned = abandoned
        self._running: Counter[str] = Counter()

    @property
    def running(self) -> int:
        """Questions that are answered now."""
        return self._running.total()

    @asynccontextmanager
    async def admitted(self, caller: Caller) -> AsyncIterator[Admission]:
        """Hold a place for one question inside, and settle at the end what ``Admission.calls`` cost.

        The key pays for each attempt of the calls inside (``PAYER``).

        A key may hold as many places as are still free: one key alone half of them, two a third each. So there is
        always a place for another.

        Raises:
            ApiError: HTTP 429: no place is free, or the key's budget of the day is spent.
        """
        free = self._options.max_runs - self.running
        if free <= 0 or (not caller.is_local and self._running[caller.key_id] >= free):
            raise ApiError(
                429,
                f"The server answers {self.running} questions, and takes no more of yours now. Try again soon.",
                kind="rate_limit_error",
                code="too_many_runs",
                headers={"Retry-After": str(_BUSY_S)},
            )
        self._running[caller.key_id] += 1
        try:
            async with self._reserved(caller) as admission:
                yield admission
        finally:
            self._running[caller.key_id] -= 1
            self._running = +self._running

    @asynccontextmanager
    async def _reserved(self, caller: Caller) -> AsyncIterator[Admission]:
        if caller.per_day.is_empty:
            yield Admission()
            return
        per_question = per_question_of(caller, self._options)
        try:
            run_id = await self._reserve(caller, per_question)
        except DailyBudgetExhausted as error:
            kind, code = ("rate_limit_error", "budget_held") if error.is_held else (_NO_QUOTA, _NO_QUOTA)
            raise ApiError(
                429,
                str(error),
                kind=kind,
                code=code,
                headers={"Retry-After": str(math.ceil(error.renews_in_s))},
            ) from error
        admission, began = Admission(reservation=(self._ledger, run_id)), time.monotonic()
        # Not reset: it is of the question's own task, and a generator may be closed in another context.
        PAYER.set(KeyDay(self._ledger, run_id, caller, per_question, self._prices))
        try:
            yield admission
        finally:
            spent = self._spent(admission.calls, time.monotonic() - began)
            await asyncio.to_thread(self._ledger.settle, run_id, spent, turn_id=admission.turn_id)

    async def _reserve(self, caller: Caller, per_question: Budget) -> str:
        """Reserve a question; if the day is full of reservations, first settle those that killed workers left."""
        wanted = (caller.key_id, caller.per_day, per_question)
        try:
            return await asyncio.to_thread(self._ledger.reserve, *wanted)
        except DailyBudgetExhausted as error:
            if not error.is_held:
                raise
        for run in await asyncio.to_thread(self._ledger.open_runs, caller.key_id):
            turn_id, calls = await self._abandoned(run.conversation)
            if turn_id == run.turn_id:
                await asyncio.to_thread(self._ledger.settle, run.run_id, self._spent(calls, 0.0), turn_id=turn_id)
        return await asyncio.to_thread(self._ledger.reserve, *wanted)

    def _spent(self, calls: Sequence[CallRecord], seconds: float) -> Spend:
        return sum(map(self._prices.spend_of, calls), Spend(seconds=seconds))


def per_question_of(caller: Caller, options: ServerOptions) -> Budget:
    """Return what one question of a caller may use: the tighter of the key's and the server's limits."""
    config = options.config
    of_server = Budget(usd=config.max_tree_cost_usd, tokens=config.max_tree_tokens, seconds=config.max_tree_seconds)
    return of_server.within(caller.per_question)
