"""The cap on simultaneous model calls, and the number that an endpoint takes below it."""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import statistics
import threading
import time
from collections import deque
from collections.abc import AsyncIterator, Callable, Iterator

from .attempts import is_congestion

FIRST_LIMIT = 16
"""Simultaneous calls at first, where the cap allows as many."""
_LATENCY_HOLDS = 1.5
"""Most times the latency of fewer calls that a greater number may take."""
_FEWEST_SAMPLES = 8
"""Least calls in a round, so that one slow call is not the median."""
_ROUNDS_BEFORE_A_PROBE = 10
"""Rounds at a limit below one that was too high before that one is tried again."""
_BEAT_S = 0.02
"""Seconds between two looks at how late an event loop is."""
_IDLE_S = 60.0
"""Seconds without a call after which latencies are forgotten; waves of calls and most pauses are shorter."""


class AdaptiveLimit:
    """The number of simultaneous calls that an endpoint takes: additive increase, multiplicative decrease.

    A round is as many calls as the limit, each started while all slots were taken. After a round the limit grows if the
    round's median latency is at most 1.5 times the lowest one, or the limit is below 16: by half, up to half of a limit
    that was too high, then by 1 until that one passes a round. A step that raised the latency is taken back. Time in
    which a reply waited for the caller is not the endpoint's: a round is slow if it is so without that. A 429 or a
    time-out takes a fifth; calls that began before take no further one, so that a burst counts once. The lowest latency
    is forgotten after a 429 or a time-out, after ten slow rounds at one limit, and after a minute without a call. Chiu
    and Jain 1989.
    """

    def __init__(self, most: int) -> None:
        """Start at 16, or at ``most`` (at least 1) if that is less."""
        self.most = most
        self.limit = min(FIRST_LIMIT, most)
        self.step = 0
        """Number of changes of the limit; a call belongs to the step at which it began."""
        self._too_high = 0  # the lowest limit that was too high; 0 for none
        self._before = self.limit  # limit before the last growth
        self._lowest_s = 0.0  # lowest median of a round since the endpoint was idle; 0 for none
        self._latencies_s: list[float] = []
        self._without_lag_s: list[float] = []  # of the same calls
        self._rounds = 0  # at this limit
        self._slow_rounds = 0  # one after another
        self._first_of_burst = 0  # calls of earlier steps belong to a burst that has been counted

    def succeeded(self, latency_s: float, *, step: int, was_full: bool, lag_s: float = 0.0) -> None:
        """Count a reply to a call that began at ``step``, and adapt the limit after a round.

        For about ``lag_s`` of ``latency_s`` the reply was there and waited for the caller.
        """
        if step != self.step or not was_full:
            return
        self._latencies_s.append(latency_s)
        self._without_lag_s.append(latency_s - lag_s)
        if len(self._latencies_s) >= max(self.limit, _FEWEST_SAMPLES):
            self._end_round(statistics.median(self._latencies_s), statistics.median(self._without_lag_s))

    def refused(self, *, step: int) -> None:
        """Take a fifth of the limit, unless the call began before the last time."""
        if step < self._first_of_burst:
            return
        has_held = self._rounds or self._before < self.limit
        if has_held or not self._too_high:  # else an outage, not this limit, was too much
            self._too_high = self.limit
        self._change(max(1, self.limit * 4 // 5))
        self._before = self.limit
        self._first_of_burst = self.step
        self._lowest_s = 0.0  # an endpoint that recovers may be slower than before

    def forget_latencies(self) -> None:
        """Compare no further call with earlier ones: the next may be of another kind."""
        self._lowest_s = 0.0
        self._slow_rounds = 0
        self._clear_round()

    def _end_round(self, latency_s: float, without_lag_s: float) -> None:
        self._clear_round()
        self._rounds += 1
        if self._is_slow(without_lag_s):
            if self._before < self.limit:
                self._too_high = self.limit
                self._change(self._before)
            elif self._slow_rounds >= _ROUNDS_BEFORE_A_PROBE:
                self.forget_latencies()  # slow at a number that was quick: not for that number
            return
        self._lowest_s = min(self._lowest_s or latency_s, latency_s)
        if self.limit >= self._too_high:
            self._too_high = 0  # a hiccup, or the endpoint takes more by now
        by_half = self.limit + max(1, self.limit // 2)
        is_far = not self._too_high or by_half <= self._too_high // 2
        grown = min(self.most, by_half if is_far else self.limit + 1)
        if grown == self.limit or (grown == self._too_high and self._rounds < _ROUNDS_BEFORE_A_PROBE):
            return
        before = self.limit
        self._change(grown)
        self._before = before

    def _is_slow(self, without_lag_s: float) -> bool:
        """Return whether a round says that the limit is too high; one below the first limit is none by its latency."""
        is_slow = bool(self._lowest_s) and without_lag_s > _LATENCY_HOLDS * self._lowest_s
        self._slow_rounds = self._slow_rounds + 1 if is_slow else 0
        return is_slow and self.limit >= min(FIRST_LIMIT, self.most)

    def _change(self, limit: int) -> None:
        self.limit = limit
        self.step += 1
        self._rounds = 0
        self._clear_round()

    def _clear_round(self) -> None:
        self._latencies_s.clear()
        self._without_lag_s.clear()


class LoopLag:
    """How late an event loop is, by a timer that should ring every 20 ms.

    >>> async def compute() -> bool:
    ...     lag = LoopLag(asyncio.get_running_loop())
    ...     lag.start()
    ...     time.sleep(0.2)
    ...     return lag.seconds > 0.15
    >>> asyncio.run(compute())
    True
    """

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._due_s = self._late_s = 0.0
        self._timer: asyncio.TimerHandle | None = None
        self._context = contextvars.Context()  # else the timer would hold that of the call which started it

    @property
    def seconds(self) -> float:
        """How late the timer is, or was when it last rang; 0 if it does not run."""
        return max(self._late_s, self._loop.time() - self._due_s) if self._timer else 0.0

    def start(self) -> None:
        """Start the timer if it does not run."""
        if self._timer is None:
            self._late_s = 0.0
            self._wind()

    def stop(self) -> None:
        """Stop the timer."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _wind(self) -> None:
        self._due_s = self._loop.time() + _BEAT_S
        self._timer = self._loop.call_at(self._due_s, self._ring, context=self._context)

    def _ring(self) -> None:
        self._late_s = self._loop.time() - self._due_s
        self._wind()


class _Slots:
    """The slots of one event loop; waiters are served in order."""

    def __init__(self, limit: AdaptiveLimit, clock: Callable[[], float], lag: LoopLag) -> None:
        self.limit = limit
        self.lag = lag
        self._clock = clock
        self._waiters: deque[asyncio.Future[None]] = deque()
        self._taken = 0
        self._idle_since_s = clock()

    @property
    def are_full(self) -> bool:
        """Whether all slots are taken, or more since the limit was lowered."""
        return self._taken >= self.limit.limit

    async def acquire(self) -> None:
        if not self.are_full:  # then nobody waits, see _fill
            self._take()
            return
        self._waiters.append(granted := asyncio.get_running_loop().create_future())
        try:
            await granted
        except asyncio.CancelledError:
            if not granted.cancelled():
                self.release()  # the slot came with the cancellation
            raise

    def release(self) -> None:
        self._taken -= 1
        self._fill()
        if not self._taken:
            self._idle_since_s = self._clock()
            self.lag.stop()

    def _fill(self) -> None:
        while self._waiters and not self.are_full:
            granted = self._waiters.popleft()
            if not granted.cancelled():
                self._take()
                granted.set_result(None)

    def _take(self) -> None:
        if not self._taken and self._clock() - self._idle_since_s > _IDLE_S:
            self.limit.forget_latencies()
        self._taken += 1
        self.lag.start()


class CallGate:
    """Limits the model calls that run at once, over all models that share it; each event loop has its own count.

    Fewer calls than the cap run at once where the endpoint takes fewer, see ``AdaptiveLimit``.

    >>> gate = CallGate(64)  # give the same gate to every model of one endpoint
    """

    def __init__(
        self,
        max_concurrency: int,
        *,
        clock: Callable[[], float] = time.monotonic,
        lag_of: Callable[[asyncio.AbstractEventLoop], LoopLag] = LoopLag,
    ) -> None:
        """Allow at most ``max_concurrency`` calls at once.

        ``clock`` returns monotonic seconds, and ``lag_of`` makes the meter of how late a loop is.
        """
        self.max_concurrency = max_concurrency
        self._clock = clock
        self._lag_of = lag_of
        self._slots: dict[asyncio.AbstractEventLoop, _Slots] = {}
        self._new_loop = threading.Lock()

    @property
    def limit(self) -> int:
        """Number of simultaneous calls that are allowed now on the running loop."""
        return self._here().limit.limit

    async def acquire(self) -> None:
        """Wait for a slot."""
        await self._here().acquire()

    def release(self) -> None:
        """Give a slot back, on the loop where it was acquired."""
        self._here().release()

    @contextlib.contextmanager
    def watched(self) -> Iterator[None]:
        """Adapt the limit to the call made inside the block, which holds a slot."""
        slots = self._here()
        limit = slots.limit
        step, was_full, started_s = limit.step, slots.are_full, self._clock()
        try:
            yield
        except Exception as error:
            if is_congestion(error):
                limit.refused(step=step)
            raise
        limit.succeeded(self._clock() - started_s, step=step, was_full=was_full, lag_s=slots.lag.seconds)

    @contextlib.asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Hold a slot while the call inside the block is made."""
        await self.acquire()
        try:
            with self.watched():
                yield
        finally:
            self.release()

    def _here(self) -> _Slots:
        loop = asyncio.get_running_loop()
        if (slots := self._slots.get(loop)) is not None:
            return slots
        slots = _Slots(AdaptiveLimit(self.max_concurrency), self._clock, self._lag_of(loop))
        with self._new_loop:  # a loop of another thread may come at the same moment, and must not be lost
            self._slots = {each: its for each, its in self._slots.items() if not each.is_closed()} | {loop: slots}
        return slots
