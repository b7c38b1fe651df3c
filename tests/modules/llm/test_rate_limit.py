"""Limits a minute at an endpoint: how many attempts and tokens any minute sees, in which order, and who pauses."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from dataclasses import dataclass, field

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgetree.app.scripted.answers import ChatReply
from judgetree.app.scripted.server import ScriptedServer
from judgetree.modules.background_loop import background_loop
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.llm.call_gate import CallGate
from judgetree.modules.llm.endpoint import EndpointLLM
from judgetree.modules.llm.factory import create_llm
from judgetree.modules.llm.openai_client import open_chat
from judgetree.modules.llm.rate_limit import MINUTE_S, RateLimit, estimated_tokens
from judgetree.modules.settings import load_settings
from tests.modules.model_endpoints import QUESTION, saying

PATIENCE_S = 60.0
A_MOMENT_S = 0.2
"""Ample for a call that nothing holds back; one that is held back outlasts it however slow the machine."""


@dataclass
class Time:
    """A clock that only sleeping moves."""

    now_s: float = 1000.0
    slept_s: list[float] = field(default_factory=list)

    def clock(self) -> float:
        return self.now_s

    async def sleep(self, seconds: float) -> None:
        self.slept_s.append(seconds)
        self.now_s += seconds
        await asyncio.sleep(0)


@dataclass
class Endpoint:
    """Notes when which attempt was let through."""

    time: Time
    rates: RateLimit
    gate: CallGate = field(default_factory=lambda: CallGate(100))
    started: list[tuple[float, int]] = field(default_factory=list)

    async def attempt(self, tokens: int = 1, really: int | None = None) -> None:
        async with self.rates.admitted(self.gate, tokens) as correct:
            self.started.append((self.time.now_s, tokens))
            if really is not None:
                correct(really)

    def attempt_all(self, amounts: Iterable[int]) -> None:
        """Make the attempts side by side."""

        async def work() -> None:
            await asyncio.gather(*map(self.attempt, amounts))

        run(work)


def endpoint(*, requests: int = 0, tokens: int = 0, gate: CallGate | None = None) -> Endpoint:
    time = Time()
    rates = RateLimit(requests_per_minute=requests, tokens_per_minute=tokens, clock=time.clock, sleep=time.sleep)
    return Endpoint(time, rates, gate or CallGate(100))


def run(work: Callable[[], Awaitable[None]]) -> None:
    async def patiently() -> None:
        async with asyncio.timeout(PATIENCE_S):
            await work()

    asyncio.run(patiently())


@settings(max_examples=50, deadline=None)
@given(
    requests=st.integers(0, 5),
    tokens=st.integers(0, 50),
    calls=st.lists(st.tuples(st.integers(0, 50), st.floats(0, 90)), min_size=1, max_size=12),
)
def test_no_minute_sees_more_than_the_limits(requests: int, tokens: int, calls: list[tuple[int, float]]) -> None:
    there = endpoint(requests=requests, tokens=tokens)

    async def work() -> None:
        for amount, idle_s in calls:
            await there.attempt(min(amount, tokens) if tokens else amount)
            there.time.now_s += idle_s

    run(work)
    assert len(there.started) == len(calls)
    for begin, _ in there.started:
        minute = [amount for at, amount in there.started if begin <= at < begin + MINUTE_S - 1e-6]
        assert not requests or len(minute) <= requests
        assert not tokens or sum(minute) <= tokens


@pytest.mark.parametrize(
    ("limits", "amounts", "waited_s"),
    [
        pytest.param({"requests": 2}, range(6), [0, 0, 60, 60, 120, 120], id="in time"),
        pytest.param({"tokens": 100}, [60, 90, 5, 5], [0, 60, 60, 60], id="a large one is not overtaken"),
        pytest.param({"tokens": 100}, [10, 500, 10], [0, 60, 120], id="one above the limit has a minute of its own"),
    ],
)
def test_attempts_are_let_through_in_order(
    limits: dict[str, int], amounts: Sequence[int], waited_s: list[float]
) -> None:
    there = endpoint(**limits)
    there.attempt_all(amounts)
    assert [amount for _, amount in there.started] == [*amounts]
    assert [at - there.started[0][0] for at, _ in there.started] == pytest.approx(waited_s)


@pytest.mark.parametrize(("really", "waits_s"), [(None, 60.0), (10, 0.0), (90, 60.0), (150, 60.0)])
def test_what_was_really_used_takes_the_place_of_the_estimate(really: int | None, waits_s: float) -> None:
    there = endpoint(tokens=100)

    async def work() -> None:
        await there.attempt(90, really)
        await there.attempt(50)

    run(work)
    assert there.started[1][0] - there.started[0][0] == pytest.approx(waits_s)


def test_tokens_given_back_let_a_waiting_attempt_go_within_a_second() -> None:
    there = endpoint(tokens=100)

    async def work() -> None:
        async with there.rates.admitted(there.gate, 90) as correct:
            waiting = asyncio.ensure_future(there.attempt(50))
            await asyncio.sleep(0)
            correct(10)
            await waiting

    run(work)
    assert there.time.now_s <= 1001.0


def test_correction_that_comes_after_the_minute_changes_nothing() -> None:
    there = endpoint(tokens=100)

    async def work() -> None:
        async with there.rates.admitted(there.gate, 90) as correct:
            there.time.now_s += 61
            await there.attempt(50)
            correct(10_000)
            await there.attempt(50)

    run(work)
    assert there.started[1][0] == there.started[0][0]


def test_attempt_that_waits_for_its_minute_holds_no_slot() -> None:
    gate = CallGate(1)
    limited, other = endpoint(requests=1, gate=gate), endpoint(gate=gate)

    async def work() -> None:
        await limited.attempt()
        waiting = asyncio.ensure_future(limited.attempt())
        await asyncio.sleep(0)
        await other.attempt()
        assert len(limited.started) == 1
        await waiting

    run(work)
    assert len(limited.started) == 2


@pytest.mark.parametrize("requests", [0, 10])
def test_pause_holds_back_all_attempts_those_that_waited_for_a_slot_too(requests: int) -> None:
    there = endpoint(requests=requests, gate=CallGate(1))

    async def work() -> None:
        await there.gate.acquire()
        waiting = asyncio.ensure_future(there.attempt())
        await asyncio.sleep(0)
        with there.rates.paused(), there.rates.paused():
            there.gate.release()
            later = asyncio.ensure_future(there.attempt())
            for _ in range(10):
                await asyncio.sleep(0)
            await there.gate.acquire()  # nobody holds it
            there.gate.release()
            assert there.started == []
        await asyncio.gather(waiting, later)

    run(work)
    assert len(there.started) == 2


@pytest.mark.parametrize("requests", [0, 10])
def test_slot_is_free_after_a_failure_and_after_a_cancelled_wait(requests: int) -> None:
    there = endpoint(requests=requests, gate=CallGate(1))

    async def fail() -> None:
        async with there.rates.admitted(there.gate, 1):
            raise ValueError("no")

    async def work() -> None:
        with pytest.raises(ValueError, match="no"):
            await fail()
        with there.rates.paused():
            waiting = asyncio.ensure_future(there.attempt())
            await asyncio.sleep(0)
            waiting.cancel()
            await asyncio.wait([waiting])
        await there.attempt()

    run(work)
    assert len(there.started) == 1


def test_without_limits_nothing_is_waited_for() -> None:
    there = endpoint()
    there.attempt_all([10**9] * 50)
    assert (len(there.started), there.time.slept_s, there.rates.counts_tokens) == (50, [], False)


def test_estimate_counts_prompt_and_answer_in_either_script() -> None:
    assert estimated_tokens([("user", "a" * 440)], 100) == 100 + 100 + 4
    assert estimated_tokens([("user", "压" * 400)], 100) == 360 + 100 + 4
    assert estimated_tokens([], None) == 256


# --- around the calls of an endpoint ---


async def settled(*calls: Awaitable[object]) -> list[bool]:
    """Which of the calls are done after a moment; the others are cancelled."""
    tasks = [asyncio.ensure_future(call) for call in calls]
    await asyncio.wait(tasks, timeout=A_MOMENT_S)
    done = [task.done() for task in tasks]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    return done


def test_refusal_that_says_how_long_makes_every_call_to_the_endpoint_wait(server: ScriptedServer) -> None:
    server.responses = saying(ChatReply(text="42"))
    server.configure(faults={"429": 1.0}, fault_attempts=1, retry_after_s=7)
    rates, held_back = RateLimit(), list[bool]()

    async def sleep(_: float) -> None:
        held_back.append((await settled(ask_with(asyncio.sleep))) == [False])

    def ask_with(sleep: Callable[[float], Awaitable[None]]) -> Awaitable[object]:
        chat = open_chat("m", base_url=server.base_url, api_key="k", timeout_s=10)
        llm = EndpointLLM(chat, gate=CallGate(4), rates=rates, sleep=sleep)
        return llm.complete(QUESTION, meter=CallMeter(node="judge"))

    async def work() -> None:
        await ask_with(sleep)

    background_loop().run(work())
    assert held_back == [True]
    assert server.requests["other"] == 2, "the refused attempt, and the one after the pause"


def limited_llm(server: ScriptedServer, there: Endpoint) -> EndpointLLM:
    chat = open_chat("m", base_url=server.base_url, api_key="k", timeout_s=10)
    return EndpointLLM(chat, gate=CallGate(1), rates=there.rates, sleep=there.time.sleep)


def test_each_attempt_takes_its_place_in_the_minute(server: ScriptedServer) -> None:
    server.responses = saying(ChatReply(status=500, text="busy"), ChatReply(text="42"))
    there = endpoint(requests=1)
    background_loop().run(limited_llm(server, there).complete(QUESTION, meter=CallMeter(node="judge")))
    assert there.time.now_s == pytest.approx(1060)


def test_tokens_are_corrected_by_what_the_endpoint_counted(server: ScriptedServer) -> None:
    there = endpoint(tokens=300)
    llm = limited_llm(server, there)
    for _ in range(3):  # each reserves most of the minute, and uses little of it
        background_loop().run(llm.complete(QUESTION, meter=CallMeter(node="judge")))
    assert there.time.slept_s == []


def test_models_of_one_name_and_endpoint_share_their_minute(server: ScriptedServer) -> None:
    chosen = load_settings(requests_per_minute=1)

    def ask(model: str) -> Awaitable[object]:
        llm = create_llm(f"{server.base_url}#{model}", chosen, CallGate(1))
        return llm.complete(QUESTION, meter=CallMeter(node="judge"))

    async def work() -> list[bool]:
        await ask("one")
        await ask("two")
        return await settled(ask("one"))

    assert background_loop().run(work()) == [False]
    assert server.requests["other"] == 2
