"""One ledger of money and of rates for all workers of a run.

It lives in one process, the others ask it by requests of plain data, one for each call of a model: a few tenths of a
millisecond, and only in runs with limits. Nothing is leased ahead: what is admitted starts at once, so that "in any 60
seconds" holds over all workers, and no worker holds what another one needs.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Protocol

from ...modules.calls.journal import ACCOUNT
from ...modules.calls.prices import Prices
from ...modules.calls.record import NOTHING, CallRecord, Spend
from ...modules.calls.reservations import Reservation
from ...modules.errors import RunLimitReached
from ...modules.llm.rate_limit import MINUTE_S, RateLimit
from ..rows.store import RunRow
from .experiment import Experiment
from .limits import Spending

_ON_THE_WAY_S = 2.0
"""Seconds that may pass between an admission here and the request that a busy worker sends."""


@dataclass(frozen=True, kw_only=True)
class WorkerReservation:
    """A reservation of one worker."""

    holder: str
    reservation: Reservation


class RunLedger:
    """What all workers of a run may spend, and how often they may ask; use it on one event loop."""

    def __init__(
        self,
        experiment: Experiment,
        attempts: Iterable[RunRow],
        prices: Prices,
        *,
        paid_elsewhere: Spend = NOTHING,
        requests_per_minute: int = 0,
        tokens_per_minute: int = 0,
    ) -> None:
        """``attempts``: rows of earlier attempts, which count too, as does what was paid elsewhere.

        Limits a minute are those of each endpoint.
        """
        self._spending = Spending(experiment, attempts, prices=prices)
        self._spending.count(paid_elsewhere)
        self._requests_per_minute = requests_per_minute
        self._tokens_per_minute = tokens_per_minute
        self._rates: dict[str, RateLimit] = {}
        self._reserved: dict[int, WorkerReservation] = {}
        self._gone: set[str] = set()
        self._admitted: dict[int, Callable[[int], None]] = {}
        self._numbers = itertools.count(1)

    async def reserve(self, holder: str, thread_id: str, expected: Spend) -> int | str:
        """Wait until the limits allow a call; returns the number of its reservation, or why it must not be made."""
        ACCOUNT.set(thread_id)
        try:
            reservation = await self._spending.reserve(expected)
        except RunLimitReached as error:
            return str(error)
        if holder in self._gone:  # it died while it waited, and made no call
            await self._spending.settle(reservation, NOTHING)
            return "The worker has died."
        number = next(self._numbers)
        self._reserved[number] = WorkerReservation(holder=holder, reservation=reservation)
        return number

    async def settle(self, number: int, actual: Spend) -> None:
        """Replace a reservation by the actual amount; nothing happens if it was released meanwhile."""
        if (held := self._reserved.pop(number, None)) is not None:
            await self._spending.settle(held.reservation, actual)

    async def release(self, holder: str) -> None:
        """Settle the reservations of a worker that has died by what its calls may have cost.

        They count until the question has its row, which holds what was really paid. A worker that is started in its
        place needs another name.
        """
        self._gone.add(holder)
        for number, held in list(self._reserved.items()):
            if held.holder == holder:
                await self.settle(number, held.reservation.amount)

    async def owe(self, open_payments: Mapping[str, Spend]) -> None:
        """Count what earlier starts of the run have paid for questions without a row, by thread."""
        self._spending.adopt("", open_payments)

    async def add(self, row: RunRow) -> None:
        """Count the row of a question, in place of its calls counted before."""
        self._spending.add(row)

    async def standing(self) -> tuple[str, dict[str, Spend]]:
        """Return the limit that is reached, ``""`` if none is, and the payments of questions without a row."""
        return self._spending.exhausted, self._spending.open_payments

    async def admit(self, endpoint: str, tokens: int) -> int:
        """Wait until an endpoint may be asked once more, count it, and return its number for ``correct``."""
        rates = self._rates_of(endpoint)
        correct = await rates.admit(tokens)
        number = next(self._numbers)
        if rates.counts_tokens:
            self._admitted[number] = correct
        return number

    async def pause(self, endpoint: str, for_s: float, spread_s: float) -> None:
        """Admit nothing at an endpoint for ``for_s`` seconds, since it asked one worker to wait."""
        with self._rates_of(endpoint).paused(spread_s=spread_s):
            await asyncio.sleep(for_s)

    def _rates_of(self, endpoint: str) -> RateLimit:
        if endpoint not in self._rates:
            self._rates[endpoint] = RateLimit(
                requests_per_minute=self._requests_per_minute,
                tokens_per_minute=self._tokens_per_minute,
                minute_s=MINUTE_S + _ON_THE_WAY_S,
            )
        return self._rates[endpoint]

    async def correct(self, number: int, tokens: int) -> None:
        """Replace the token estimate of an attempt by the real number."""
        if (correct := self._admitted.pop(number, None)) is not None:
            correct(tokens)


class RemoteLedger(Protocol):
    """Protocol of the ledger as a worker sees it: methods of ``RunLedger``, somewhere else."""

    async def reserve(self, holder: str, thread_id: str, expected: Spend) -> int | str:
        """Reserve a call, see ``RunLedger``."""
        ...

    async def settle(self, number: int, actual: Spend) -> None:
        """Settle a call, see ``RunLedger``."""
        ...

    async def admit(self, endpoint: str, tokens: int) -> int:
        """Count an attempt, see ``RunLedger``."""
        ...

    async def correct(self, number: int, tokens: int) -> None:
        """Correct an attempt, see ``RunLedger``."""
        ...

    async def pause(self, endpoint: str, for_s: float, spread_s: float) -> None:
        """Pause an endpoint, see ``RunLedger``."""
        ...


class WorkerLimits:
    """The limits of a run as one worker keeps them: it asks the ledger before each call."""

    def __init__(self, ledger: RemoteLedger, holder: str, prices: Prices) -> None:
        self._ledger = ledger
        self._holder = holder
        self._prices = prices

    def spend_of(self, record: CallRecord) -> Spend:
        """Compute calls, tokens and cost of one call; its tokens may be estimates."""
        return self._prices.spend_of(record)

    async def reserve(self, expected: Spend, *, is_answer: bool = False) -> object:
        """Reserve an attempt, see ``Payer``."""
        number = await self._ledger.reserve(self._holder, ACCOUNT.get(), expected)
        if isinstance(number, str):
            raise RunLimitReached(number)
        return number

    async def settle(self, place: object, actual: Spend) -> None:
        """Settle an attempt, see ``Payer``."""
        assert isinstance(place, int)
        await self._ledger.settle(place, actual)
