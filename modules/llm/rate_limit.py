"""Rate limits of an endpoint: requests and tokens a minute, and pauses after an HTTP 429.

No library fits: a leaky bucket (aiolimiter) lets twice the limit through in its first minute, prefers small calls to
large ones, cannot take back reserved tokens, and has no pauses.
"""

from __future__ import annotations

import asyncio
import logging
import math
import random
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Protocol

from ..calls.messages import Message
from ..calls.tokens import message_tokens
from ..network.long_waits import LONG_WAITS
from .attempts import LONGEST_WAIT_S
from .call_gate import CallGate

logger = logging.getLogger(__name__)

MINUTE_S = 60.0
LONGEST_REST_S = 1.0
"""Most seconds that a waiting call sleeps before it checks whether other calls gave tokens back."""
_SHORTEST_REST_S = 0.001
"""A rest below the resolution of the clock would be repeated for ever."""

_CALM_S = 60.0
"""Seconds without an HTTP 429 after which the next one is told again."""
_COMPLETION_TOKENS = 256
"""Tokens reserved for an answer of unlimited length."""


@dataclass(kw_only=True)
class WindowEntry:
    """The use of a window by one call."""

    at_s: float
    amount: int
    is_past: bool = False
    """True once it lies more than a minute back and no longer counts."""


class SlidingWindow:
    """The use of the last minute, against a limit for any minute."""

    def __init__(self, limit: int, *, minute_s: float = MINUTE_S) -> None:
        """Allow at most ``limit`` (at least 1) in any ``minute_s`` seconds."""
        self._limit = limit
        self._minute_s = minute_s
        self._amounts: deque[WindowEntry] = deque()
        self._used = 0

    def wait_s(self, amount: int, now_s: float) -> float:
        """Return the seconds until ``amount`` more fits. An amount over the limit fits into an empty minute."""
        self._forget(now_s)
        surplus = self._used + min(amount, self._limit) - self._limit
        free_at_s = now_s
        for used in self._amounts:
            if surplus <= 0:
                break
            surplus -= used.amount
            free_at_s = used.at_s + self._minute_s
        return free_at_s - now_s

    def add(self, amount: int, now_s: float) -> WindowEntry:
        """Record the use of ``amount`` now, whether it fits or not."""
        self._amounts.append(used := WindowEntry(at_s=now_s, amount=amount))
        self._used += amount
        return used

    def correct(self, used: WindowEntry, amount: int) -> None:
        """Replace an estimated amount by the real one."""
        if not used.is_past:
            self._used += amount - used.amount
        used.amount = amount

    def _forget(self, now_s: float) -> None:
        while self._amounts and self._amounts[0].at_s + self._minute_s <= now_s:
            past = self._amounts.popleft()
            past.is_past = True
            self._used -= past.amount


class RateLimit:
    """The rate limits of one model endpoint, shared by all its callers, who are served in order.

    It belongs to the event loop on which it is first awaited.
    """

    def __init__(
        self,
        *,
        requests_per_minute: int = 0,
        tokens_per_minute: int = 0,
        minute_s: float = MINUTE_S,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Set the limits; 0 for none.

        Args:
            requests_per_minute: Most attempts in any 60 seconds.
            tokens_per_minute: Most tokens in any 60 seconds, reserved by estimate and then corrected.
            minute_s: Longer than 60 seconds where attempts reach their endpoint some time after they are admitted.
            clock: Returns monotonic seconds.
            sleep: Waits the given seconds.
        """
        self._requests = SlidingWindow(requests_per_minute, minute_s=minute_s) if requests_per_minute else None
        self._tokens = SlidingWindow(tokens_per_minute, minute_s=minute_s) if tokens_per_minute else None
        self._clock = clock
        self._sleep = sleep
        self._turn = asyncio.Lock()  # fair: the longest waiter is next
        self._resumed = asyncio.Event()
        self._pauses = 0
        self._spread_s = 0.0
        self._told_until_s = -math.inf

    @property
    def counts_tokens(self) -> bool:
        """Whether tokens are limited, so that calls need an estimate."""
        return self._tokens is not None

    async def admit(self, tokens: int) -> Callable[[int], None]:
        """Wait until the rate limits allow one attempt and count it, for callers that have slots of their own.

        Returns a callback that replaces the token estimate by the real number.
        """
        while self._pauses:
            async with LONG_WAITS.one():
                await self._resumed.wait()
                await self._sleep(random.uniform(0, self._spread_s))
        async with self._turn:
            await self._rest_until_it_fits(tokens)
            while self._pauses:  # it began while this attempt waited for its turn
                async with LONG_WAITS.one():
                    await self._resumed.wait()
                await self._rest_until_it_fits(tokens)
            used = self._count(tokens)
        return lambda really: self._correct(used, really)

    @asynccontextmanager
    async def admitted(self, slots: CallGate, tokens: int) -> AsyncIterator[Callable[[int], None]]:
        """Wait until the rate limits allow one attempt, then hold a concurrency slot while it runs.

        Args:
            slots: Cap on simultaneous calls; no slot is held while waiting.
            tokens: Estimated tokens of the attempt.

        Yields:
            A callback that replaces the token estimate by the real number.
        """
        if self._requests is None and self._tokens is None:
            await self._take(slots)
            used = None
        else:
            used = await self._take_in_turn(slots, tokens)
        try:
            with slots.watched():
                yield lambda really: self._correct(used, really)
        finally:
            slots.release()

    @contextmanager
    def paused(self, *, for_s: float = 0.0, spread_s: float = 0.0) -> Iterator[None]:
        """Stop all attempts inside the block, which takes ``for_s`` seconds.

        Those that waited for its end come back over ``spread_s`` seconds.
        """
        self._pauses += 1
        self._spread_s = spread_s
        self._resumed.clear()
        try:
            yield
        finally:
            self._pauses -= 1
            if not self._pauses:
                self._resumed.set()

    def tell_of_wait(self, model: str, wait_s: float) -> None:
        """Warn that an endpoint answers HTTP 429, once until it has not done so for a while, however many calls wait.

        Args:
            model: Who answers, such as ``Model 'm' at http://…``.
            wait_s: Seconds until the refused call is made again.
        """
        now_s = self._clock()
        is_new = now_s > self._told_until_s
        self._told_until_s = max(self._told_until_s, now_s + wait_s + _CALM_S)
        if is_new:
            logger.warning(
                "%s answers HTTP 429 (too many requests). The call is made again in %.0f s; one that is refused again "
                "and again is given up after %.0f s. Ctrl-C ends the waiting at once. To ask less: "
                "JUDGETREE_REQUESTS_PER_MINUTE, JUDGETREE_TOKENS_PER_MINUTE or JUDGETREE_MAX_CONCURRENCY",
                model,
                wait_s,
                LONGEST_WAIT_S,
            )

    async def _take(self, slots: CallGate) -> None:
        await slots.acquire()
        while self._pauses:
            slots.release()
            async with LONG_WAITS.one():
                await self._resumed.wait()
                await self._sleep(random.uniform(0, self._spread_s))
            await slots.acquire()

    async def _take_in_turn(self, slots: CallGate, tokens: int) -> WindowEntry | None:
        async with self._turn:
            await self._rest_until_it_fits(tokens)
            await self._take(slots)
            while self._wait_s(tokens) > 0:  # others used more than they had reserved, while this call had no slot
                slots.release()
                await self._rest_until_it_fits(tokens)
                await self._take(slots)
            return self._count(tokens)

    def _count(self, tokens: int) -> WindowEntry | None:
        now_s = self._clock()
        if self._requests is not None:
            self._requests.add(1, now_s)
        return self._tokens.add(tokens, now_s) if self._tokens is not None else None

    async def _rest_until_it_fits(self, tokens: int) -> None:
        while (wait_s := self._wait_s(tokens)) > 0:
            await self._sleep(min(max(wait_s, _SHORTEST_REST_S), LONGEST_REST_S))

    def _wait_s(self, tokens: int) -> float:
        now_s = self._clock()
        for_request = self._requests.wait_s(1, now_s) if self._requests is not None else 0.0
        for_tokens = self._tokens.wait_s(tokens, now_s) if self._tokens is not None else 0.0
        return max(for_request, for_tokens)

    def _correct(self, used: WindowEntry | None, really: int) -> None:
        if used is not None and self._tokens is not None:
            self._tokens.correct(used, really)


class Admissions(Protocol):
    """Protocol of rate limits that several processes share, by endpoint and model."""

    async def admit(self, endpoint: str, tokens: int) -> int:
        """Wait until one attempt is allowed, count it, and return its number for ``correct``."""
        ...

    async def correct(self, number: int, tokens: int) -> None:
        """Replace the token estimate of an attempt by the real number."""
        ...

    async def pause(self, endpoint: str, for_s: float, spread_s: float) -> None:
        """Admit nothing for ``for_s`` seconds; those that waited come back over ``spread_s`` seconds."""
        ...


class SharedRateLimit(RateLimit):
    """The part of one process in the rate limits of an endpoint that it shares with other processes.

    An attempt is counted once its slot is held, so that it starts as it is counted: an attempt that was admitted ahead
    would be in another minute than the one that has room for it.
    """

    def __init__(self, admissions: Admissions, endpoint: str, *, counts_tokens: bool) -> None:
        super().__init__()
        self._admissions = admissions
        self._endpoint = endpoint
        self._counts_tokens = counts_tokens
        self._pausing: set[asyncio.Task[None]] = set()

    @property
    def counts_tokens(self) -> bool:
        """Whether tokens are limited, so that calls need an estimate."""
        return self._counts_tokens

    @contextmanager
    def paused(self, *, for_s: float = 0.0, spread_s: float = 0.0) -> Iterator[None]:
        """Stop the attempts of all processes, see ``RateLimit.paused``."""
        with super().paused(for_s=for_s, spread_s=spread_s):
            pausing = asyncio.ensure_future(self._admissions.pause(self._endpoint, for_s, spread_s))
            self._pausing.add(pausing)
            pausing.add_done_callback(self._pausing.discard)
            yield

    @asynccontextmanager
    async def admitted(self, slots: CallGate, tokens: int) -> AsyncIterator[Callable[[int], None]]:
        """Wait for a slot, then for the shared limits, see ``RateLimit.admitted``."""
        await self._take(slots)
        really: list[int] = []
        try:
            number = await self._admissions.admit(self._endpoint, tokens)
            with slots.watched():
                yield really.append
            if really and self._counts_tokens:
                await self._admissions.correct(number, really[-1])
        finally:
            slots.release()


def estimated_tokens(messages: Sequence[Message], max_tokens: int | None) -> int:
    """Estimate the tokens of a call, prompt and completion, to reserve them before the real number is known."""
    return message_tokens(messages) + (_COMPLETION_TOKENS if max_tokens is None else max_tokens)
