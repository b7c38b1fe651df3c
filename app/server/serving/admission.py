"""Which questions are let in: as many at once as the server takes, within the budgets of their keys."""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass

from ....modules.calls.prices import Prices, usage_by_model
from ....modules.calls.record import CallRecord
from ....modules.calls.usage import total_usage
from ..keys.key import Budget
from ..keys.spending import DayIsSpent, Ledger, Spent
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
    reservation: tuple[Ledger, str] | None = None
    """What is reserved for it, and its id there; None for a caller without a budget."""

    async def name_turn(self, turn_id: str) -> None:
        """Tell which turn the question is, so that what a killed worker reserved for it ends with it."""
        self.turn_id = turn_id
        if self.reservation is not None:
            ledger, run_id = self.reservation
            await asyncio.to_thread(ledger.name_turn, run_id, turn_id)


class Admissions:
    """The questions that a worker answers, and the budgets of all."""

    def __init__(self, options: ServerOptions, ledger: Ledger, prices: Prices) -> None:
        self._options = options
        self._ledger = ledger
        self._prices = prices
        self._running: Counter[str] = Counter()

    @property
    def running(self) -> int:
        """Questions that are answered now."""
        return self._running.total()

    @asynccontextmanager
    async def admitted(self, caller: Caller) -> AsyncIterator[Admission]:
        """Hold a place for one question inside, and settle at the end what ``Admission.calls`` cost.

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
            run_id = await asyncio.to_thread(self._ledger.reserve, caller.key_id, caller.per_day, per_question)
        except DayIsSpent as error:
            kind, code = ("rate_limit_error", "budget_held") if error.is_held else (_NO_QUOTA, _NO_QUOTA)
            raise ApiError(
                429,
                str(error),
                kind=kind,
                code=code,
                headers={"Retry-After": str(math.ceil(error.renews_in_s))},
            ) from error
        admission, began = Admission(reservation=(self._ledger, run_id)), time.monotonic()
        try:
            yield admission
        finally:
            spent = self._spent(admission.calls, time.monotonic() - began)
            await asyncio.to_thread(self._ledger.settle, run_id, spent, turn_id=admission.turn_id)

    def _spent(self, calls: Sequence[CallRecord], seconds: float) -> Spent:
        usage = total_usage(calls)
        return Spent(
            usd=self._prices.cost_of(usage_by_model(calls)).usd,
            tokens=usage["prompt_tokens"] + usage["completion_tokens"],
            seconds=seconds,
        )


def per_question_of(caller: Caller, options: ServerOptions) -> Budget:
    """Return what one question of a caller may use: the tighter of the key's and the server's limits."""
    of_server = Budget(usd=options.max_tree_cost_usd, tokens=options.max_tree_tokens, seconds=options.max_tree_seconds)
    return of_server.within(caller.per_question)
