"""How fast an endpoint may be asked: requests and tokens a minute, and a pause when it says that it has had enough.

Own code, since no library was found that fits: a leaky bucket (aiolimiter) lets twice the limit through in its first
minute, prefers small calls to large ones, cannot take back tokens that were reserved in vain, and knows no pause.
"""

from __future__ import annotations

import asyncio
import random
import time
from collections import deque
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Sequence
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Protocol

from ..calls.messages import Message
from ..calls.tokens import message_tokens

MINUTE_S = 60.0
LONGEST_REST_S = 1.0
"""How long at most a waiting call goes without looking whether others have given tokens back."""
_SHORTEST_REST_S = 0.001
"""A rest that the clock is too coarse to show would be taken for ever."""

_COMPLETION_TOKENS = 256
"""Reserved for an answer whose length the call does not limit."""


class Slots(Protocol):
    """A cap on simultaneous calls."""

    async def acquire(self) -> object:
        """Take a slot as soon as one is free."""
        ...

    def release(self) -> None:
        """Give it back."""
        ...


@dataclass(kw_only=True)
class Amount:
    """What one call uses of a window."""

    at_s: float
    amount: int
    is_past: bool = False
    """Whether it lies a minute back, and so counts no more."""


class SlidingWindow:
    """What the last minute has used, against what any minute may use."""

    def __init__(self, limit: int) -> None:
        """``limit``: most that 60 seconds may use, whichever they are; at least 1."""
        self._limit = limit
        self._amounts: deque[Amount] = deque()
        self._used = 0

    def wait_s(self, amount: int, now_s: float) -> float:
        """Seconds until ``amount`` more fits; 0 if it does now. One over the limit fits into an empty minute."""
        self._forget(now_s)
        surplus = self._used + min(amount, self._limit) - self._limit
        free_at_s = now_s
        for used in self._amounts:
            if surplus <= 0:
                break
            surplus -= used.amount
            free_at_s = used.at_s + MINUTE_S
        return free_at_s - now_s

    def add(self, amount: int, now_s: float) -> Amount:
        """Use ``amount`` now, whether it fits or not."""
        self._amounts.append(used := Amount(at_s=now_s, amount=amount))
        self._used += amount
        return used

    def correct(self, used: Amount, amount: int) -> None:
        """Put what was really used in place of what was assumed."""
        if not used.is_past:
            self._used += amount - used.amount
        used.amount = amount

    def _forget(self, now_s: float) -> None:
        while self._amounts and self._amounts[0].at_s + MINUTE_S <= now_s:
            past = self._amounts.popleft()
            past.is_past = True
            self._used -= past.amount


class RateLimit:
    """Lets attempts at one model endpoint through, in the order in which they came: share it between all its callers.

    Like the cap on calls it belongs to the event loop on which it is first waited for.
    """

    def __init__(
        self,
        *,
        requests_per_minute: int = 0,
        tokens_per_minute: int = 0,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    ) -> None:
        """Limits of 0 are none.

        Args:
            requests_per_minute: Most attempts in any 60 seconds.
            tokens_per_minute: Most tokens in any 60 seconds, reserved as estimated and then corrected.
            clock: Seconds since some moment.
            sleep: Waits so many seconds.
        """
        self._requests = SlidingWindow(requests_per_minute) if requests_per_minute else None
        self._tokens = SlidingWindow(tokens_per_minute) if tokens_per_minute else None
        self._clock = clock
        self._sleep = sleep
        self._turn = asyncio.Lock()  # fair: whoever waits longest is next
        self._resumed = asyncio.Event()
        self._pauses = 0
        self._spread_s = 0.0

    @property
    def counts_tokens(self) -> bool:
        """Whether an estimate of tokens is of any use."""
        return self._tokens is not None

    @asynccontextmanager
    async def admitted(self, slots: Slots, tokens: int) -> AsyncIterator[Callable[[int], None]]:
        """Make one attempt in here, within the limits, outside of pauses, in one of the slots; none is held meanwhile.

        Args:
            slots: Cap on simultaneous calls.
            tokens: Estimate of what the attempt uses.

        Yields:
            What to tell the number of tokens that were really used; untold, the estimate stands.
        """
        if self._requests is None and self._tokens is None:
            await self._take(slots)
            used = None
        else:
            used = await self._take_in_turn(slots, tokens)
        try:
            yield lambda really: self._correct(used, really)
        finally:
            slots.release()

    @contextmanager
    def paused(self, *, spread_s: float = 0.0) -> Iterator[None]:
        """Let no attempt through while in here; those that wait for its end then come back over ``spread_s``."""
        self._pauses += 1
        self._spread_s = spread_s
        self._resumed.clear()
        try:
            yield
        finally:
            self._pauses -= 1
            if not self._pauses:
                self._resumed.set()

    async def _take(self, slots: Slots) -> None:
        await slots.acquire()
        while self._pauses:
            slots.release()
            await self._resumed.wait()
            await self._sleep(random.uniform(0, self._spread_s))
            await slots.acquire()

    async def _take_in_turn(self, slots: Slots, tokens: int) -> Amount | None:
        async with self._turn:
            await self._rest_until_it_fits(tokens)
            await self._take(slots)
            while self._wait_s(tokens) > 0:  # for the slot came late, and others have used more than they had reserved
                slots.release()
                await self._rest_until_it_fits(tokens)
                await self._take(slots)
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

    def _correct(self, used: Amount | None, really: int) -> None:
        if used is not None and self._tokens is not None:
            self._tokens.correct(used, really)


def estimated_tokens(messages: Sequence[Message], max_tokens: int | None) -> int:
    """About what a call uses, prompt and completion: enough to reserve by, and corrected by what the endpoint says."""
    return message_tokens(messages) + (_COMPLETION_TOKENS if max_tokens is None else max_tokens)
