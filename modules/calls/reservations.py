"""The model calls in flight of a tree or a run, each with what it is expected to use."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from .record import NOTHING, Spend

Limit = TypeVar("Limit")


@dataclass(frozen=True, eq=False)
class Reservation:
    """The expected amount of a call in flight."""

    thread_id: str
    """Thread that the call is booked to; ``""`` for work without one."""
    amount: Spend


class ReservationPool:
    """The reservations of the calls in flight; used on one event loop.

    A call that does not fit waits for those in flight, which may use less than expected; with none in flight, the limit
    is reached. So a limit is exceeded only by what the calls in flight use beyond their estimates.
    """

    def __init__(self) -> None:
        self._held: set[Reservation] = set()
        self._changed = asyncio.Event()

    @property
    def amount(self) -> Spend:
        """What the calls in flight are expected to use."""
        return sum((each.amount for each in self._held), NOTHING)

    async def wait_for_room(self, limit_in_the_way: Callable[[], Limit | None]) -> Limit | None:
        """Wait for calls in flight until no limit is in the way; return the limit if one still is after the last call.

        ``limit_in_the_way`` is called again whenever a call has ended. ``hold`` must follow without an ``await``.
        """
        while (limit := limit_in_the_way()) and self._held:
            await self._changed.wait()
        return limit

    def hold(self, thread_id: str, amount: Spend) -> Reservation:
        """Reserve the amount of a call that is about to be made."""
        reservation = Reservation(thread_id, amount)
        self._held.add(reservation)
        return reservation

    def release(self, reservation: Reservation) -> None:
        """End the reservation of a call, once its actual amount is booked."""
        self._held.discard(reservation)
        self._changed.set()
        self._changed = asyncio.Event()
