"""The cap on simultaneous calls: its laws, and what it makes of endpoints of several kinds."""

from __future__ import annotations

import asyncio
import errno
import gc
import random
import socket
import threading
from collections.abc import Callable
from contextvars import ContextVar

import httpx
import httpx2
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from judgetree.modules.errors import ModelCallError
from judgetree.modules.llm.attempts import is_congestion
from judgetree.modules.llm.call_gate import AdaptiveLimit, CallGate, LoopLag
from judgetree.modules.llm.rate_limit import RateLimit


class Refused(Exception):
    """HTTP 429, as clients raise it."""

    status_code = 429


def rounds_of(limit: AdaptiveLimit, count: int, latency_s: Callable[[int], float], capacity: int = 10**6) -> list[int]:
    """Let ``count`` waves of as many calls as allowed reach an endpoint; returns the calls refused in each."""
    refused = []
    for _ in range(count):
        calls, step = limit.limit, limit.step
        for number in range(calls):
            if number < capacity:
                limit.succeeded(latency_s(calls), step=step, was_full=True)
            else:
                limit.refused(step=step)
        refused.append(max(0, calls - capacity))
    return refused


@pytest.mark.parametrize(("cap", "first"), [(1, 1), (8, 8), (16, 16), (64, 16)])
def test_limit_starts_at_sixteen_and_reaches_the_cap(cap: int, first: int) -> None:
    limit = AdaptiveLimit(cap)
    assert limit.limit == first
    rounds_of(limit, 5, lambda calls: 0.2)
    assert limit.limit == cap


def test_limit_stays_below_what_is_refused() -> None:
    limit = AdaptiveLimit(64)
    rounds_of(limit, 10, lambda calls: 0.2, capacity=24)
    limits = []
    refused = 0
    for _ in range(200):
        limits.append(limit.limit)
        refused += sum(rounds_of(limit, 1, lambda calls: 0.2, capacity=24))
    assert (min(limits), max(limits)) == (20, 25)
    assert refused / sum(limits) < 0.005


def test_limit_stays_where_latency_holds() -> None:
    limit = AdaptiveLimit(256)
    rounds_of(limit, 300, lambda calls: 0.2 * max(1.0, calls / 32))
    assert 45 <= limit.limit <= 49  # 1.5 times the latency is that of 48 at once


def test_limit_grows_by_half_again_once_a_hiccup_is_over() -> None:
    limit = AdaptiveLimit(64)
    rounds_of(limit, 1, lambda calls: 0.2)
    rounds_of(limit, 1, lambda calls: 2.0)
    assert limit.limit == 16
    rounds_of(limit, 21, lambda calls: 0.2)  # 16 to 23 by 1, ten rounds there, then 24, 36, 54
    assert limit.limit == 64


@pytest.mark.parametrize("slower", [1.0, 2.0, 10.0])
def test_limit_recovers_from_an_outage_also_if_the_endpoint_is_slower_since(slower: float) -> None:
    limit = AdaptiveLimit(64)
    rounds_of(limit, 20, lambda calls: 0.2)
    rounds_of(limit, 30, lambda calls: 0.2, capacity=0)
    assert limit.limit == 1
    rounds_of(limit, 40, lambda calls: 0.2 * slower)
    assert limit.limit >= 30, "half of what held before the outage comes back by half"
    rounds_of(limit, 60, lambda calls: 0.2 * slower)
    assert limit.limit == 64


def test_latency_that_rose_for_good_holds_the_limit_for_ten_rounds() -> None:
    limit = AdaptiveLimit(64)
    rounds_of(limit, 1, lambda calls: 0.3)
    rounds_of(limit, 10, lambda calls: 1.0)
    assert limit.limit == 16
    rounds_of(limit, 40, lambda calls: 1.0)
    assert limit.limit == 64


@pytest.mark.parametrize("seed", range(5))
def test_noise_of_latency_does_not_hold_the_limit_down(seed: int) -> None:
    limit, drawn = AdaptiveLimit(64), random.Random(seed)
    rounds_of(limit, 20, lambda calls: drawn.lognormvariate(0, 1))
    rounds_of(limit, 30, lambda calls: 1.0, capacity=0)
    limits = []
    for _ in range(600):
        rounds_of(limit, 1, lambda calls: drawn.lognormvariate(0, 1))
        limits.append(limit.limit)
    assert sum(limits[300:]) / 300 > 32


def test_few_calls_say_nothing() -> None:
    limit = AdaptiveLimit(64)
    for _ in range(100):
        limit.succeeded(0.1, step=limit.step, was_full=False)
    assert limit.limit == 16


EVENTS = st.lists(st.tuples(st.booleans(), st.integers(0, 5), st.floats(0, 100)), max_size=300)


@given(cap=st.integers(1, 100), events=EVENTS)
def test_limit_is_never_below_one_nor_above_the_cap(cap: int, events: list[tuple[bool, int, float]]) -> None:
    limit, counted = AdaptiveLimit(cap), 0
    for is_refused, age, latency_s in events:
        before, step = limit.limit, max(0, limit.step - age)
        if is_refused:
            limit.refused(step=step)
            assert limit.limit == (before if step < counted else max(1, before * 4 // 5))
            counted = counted if step < counted else limit.step
        else:
            for _ in range(limit.limit):
                limit.succeeded(latency_s, step=step, was_full=True)
        assert 1 <= limit.limit <= cap


@given(cap=st.integers(2, 100), burst=st.integers(1, 100), grown=st.integers(0, 8))
def test_burst_takes_a_fifth_once(cap: int, burst: int, grown: int) -> None:
    limit = AdaptiveLimit(cap)
    rounds_of(limit, grown, lambda calls: 0.1)
    before, step = limit.limit, limit.step
    for _ in range(burst):
        limit.refused(step=step)
    assert limit.limit == max(1, before * 4 // 5)


class Calls:
    """Calls through a gate, and the most that ran at once."""

    def __init__(self, gate: CallGate) -> None:
        self.gate = gate
        self.running = self.peak = 0
        self.ends: list[asyncio.Future[None]] = []
        self.tasks: list[asyncio.Task[None]] = []

    def call(self) -> None:
        self.tasks.append(asyncio.create_task(self._call()))

    def cancel(self) -> None:
        for task in self.tasks[-1:]:
            task.cancel()

    def end(self) -> None:
        for end in self._pending()[:1]:
            end.set_result(None)

    def refuse(self) -> None:
        for end in self._pending()[-1:]:
            end.set_exception(Refused())

    async def end_all(self) -> None:
        while not all(task.done() for task in self.tasks):
            self.end()
            await asyncio.sleep(0)
        ends = await asyncio.gather(*self.tasks, return_exceptions=True)
        assert all(end is None or isinstance(end, Refused | asyncio.CancelledError) for end in ends)

    def _pending(self) -> list[asyncio.Future[None]]:
        return [end for end in self.ends if not end.done()]

    async def _call(self) -> None:
        async with self.gate.slot():
            self.running += 1
            self.peak = max(self.peak, self.running)
            self.ends.append(end := asyncio.get_running_loop().create_future())
            try:
                await end
            finally:
                self.running -= 1


ACTS = st.lists(st.sampled_from(["call", "call", "end", "refuse", "cancel", "rest"]), max_size=40)


@given(cap=st.integers(1, 5), acts=ACTS)
@example(cap=1, acts=["call", "call", "rest", "end", "cancel"])  # the slot is freed before the waiter has ended
def test_gate_lends_no_slot_twice_and_loses_none(cap: int, acts: list[str]) -> None:
    async def play() -> None:
        calls = Calls(CallGate(cap))
        for act in acts:
            if act == "rest":
                await asyncio.sleep(0)
            else:
                getattr(calls, act)()
        await calls.end_all()
        assert calls.peak <= cap
        assert calls.running == 0
        for _ in range(calls.gate.limit):  # all that the limit allows are free
            await asyncio.wait_for(calls.gate.acquire(), 60)

    asyncio.run(play())


def wrapped(cause: Exception) -> ModelCallError:
    error = ModelCallError("failed")
    error.__cause__ = cause
    return error


def test_failure_while_another_was_handled_is_no_congestion() -> None:
    try:
        try:
            raise TimeoutError
        except TimeoutError:
            raise ValueError("the answer of the second model is empty")  # noqa: B904 - a context, and no cause
    except ValueError as error:
        assert not is_congestion(error)
        assert is_congestion(error.__context__ or error)


@pytest.mark.parametrize(
    ("below", "is_too_much"),
    [
        (ConnectionRefusedError(errno.ECONNREFUSED, "refused"), False),
        (socket.gaierror(socket.EAI_NONAME, "unknown"), False),
        (OSError(errno.ENETUNREACH, "unreachable"), False),
        (TimeoutError(errno.ETIMEDOUT, "no answer"), True),
        (TimeoutError(), True),
    ],
    ids=repr,
)
def test_server_that_is_not_there_is_no_congestion(below: OSError, is_too_much: bool) -> None:
    error = httpx2.ConnectTimeout("as aiohttp's transport raises it")
    error.__cause__ = below
    assert is_congestion(wrapped(error)) == is_too_much


ERRORS = [Refused(), TimeoutError(), httpx.ReadTimeout(""), httpx2.ReadTimeout(""), wrapped(Refused())]


@pytest.mark.parametrize("error", [*ERRORS, wrapped(wrapped(httpx2.ReadTimeout("")))], ids=repr)
def test_refused_call_lowers_the_limit_and_its_slot_is_free(error: Exception) -> None:
    async def ask() -> tuple[int, int]:
        gate, rates = CallGate(10), RateLimit()
        with pytest.raises(type(error)):
            async with rates.admitted(gate, 0):
                raise error
        lowered = gate.limit
        with pytest.raises(ValueError, match="malformed"):
            async with rates.admitted(gate, 0):
                raise ValueError("malformed")
        return lowered, gate.limit

    assert asyncio.run(ask()) == (8, 8)


class MadeUpLag(LoopLag):
    """A loop that is as late as a test says."""

    seconds = 0.0

    def __init__(self) -> None: ...

    def start(self) -> None: ...

    def stop(self) -> None: ...


class Waves:
    """Waves of more calls than slots through a gate, each wave answered at once after a latency by a made-up clock."""

    def __init__(self) -> None:
        self.now_s = 0.0
        self.lag = MadeUpLag()
        self.gate = CallGate(64, clock=lambda: self.now_s, lag_of=lambda loop: self.lag)

    async def make(self, latency_s: float, calls: int = 100, lag_s: float = 0.0) -> int:
        """Return the limit after so many calls, for ``lag_s`` of whose latency the reply waited for the loop."""
        self.lag.seconds = lag_s

        async def call() -> None:
            async with self.gate.slot():
                await ends[-1].wait()

        ends = [asyncio.Event()]
        tasks = [asyncio.create_task(call()) for _ in range(calls)]
        while not all(task.done() for task in tasks):
            await asyncio.sleep(0)
            self.now_s += latency_s
            ends.append(asyncio.Event())
            ends[-2].set()
            await asyncio.sleep(0)
            await asyncio.sleep(0)
        return self.gate.limit


def test_gate_measures_its_calls_by_its_clock() -> None:
    assert asyncio.run(Waves().make(0.2, calls=1000)) == 64


@pytest.mark.parametrize(("rest_s", "grows"), [(30, False), (61, True)])
def test_latency_before_a_minute_without_a_call_is_forgotten(rest_s: float, grows: bool) -> None:
    async def ask() -> tuple[int, int]:
        waves = Waves()
        before = await waves.make(0.01)
        waves.now_s += rest_s
        return before, await waves.make(5.0, calls=1000)

    before, after = asyncio.run(ask())
    assert (after > before) == grows


@pytest.mark.parametrize(("lag_s", "reached"), [(0.5, 64), (0.1, 16)])
def test_time_in_which_replies_waited_for_the_loop_is_not_that_of_the_endpoint(lag_s: float, reached: int) -> None:
    async def ask() -> int:
        waves = Waves()
        await waves.make(0.2, calls=40)
        return await waves.make(0.6, calls=200, lag_s=lag_s)

    assert asyncio.run(ask()) == reached


class HeldLoop(asyncio.SelectorEventLoop):
    """A loop that stops whoever looks whether it is closed, until another loop has its slot."""

    looked = threading.Event()
    other_has_its_slot = threading.Event()

    def is_closed(self) -> bool:
        if threading.current_thread().name == "second":
            self.looked.set()
            self.other_has_its_slot.wait(0.3)
        return super().is_closed()


def test_two_loops_that_begin_at_the_same_moment_keep_their_slots() -> None:
    gate, first = CallGate(1), HeldLoop()
    first.run_until_complete(gate.acquire())

    def second() -> None:
        asyncio.run(gate.acquire())

    async def third() -> bool:
        await gate.acquire()
        HeldLoop.other_has_its_slot.set()
        await asyncio.to_thread(thread.join)
        try:
            await asyncio.wait_for(gate.acquire(), timeout=0.05)
        except TimeoutError:
            return True
        return False

    thread = threading.Thread(target=second, name="second")
    thread.start()
    assert HeldLoop.looked.wait(10)
    try:
        assert asyncio.run(third()), "a second call got a slot of a gate that has one"
    finally:
        first.close()


def test_the_timer_of_a_loop_keeps_nothing_of_the_call_that_started_it() -> None:
    class Question:
        """What a call's context holds, such as the state of its question."""

    of_call: ContextVar[Question] = ContextVar("of_call")
    gate = CallGate(4)

    async def call(seconds: float) -> None:
        of_call.set(Question())
        async with gate.slot():
            await asyncio.sleep(seconds)

    async def overlapping() -> None:
        first, second = asyncio.create_task(call(0.01)), asyncio.create_task(call(0.2))
        await first
        del first
        await asyncio.sleep(0.05)
        gc.collect()
        assert sum(isinstance(each, Question) for each in gc.get_objects()) == 1
        await second

    asyncio.run(overlapping())
