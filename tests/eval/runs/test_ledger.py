"""The ledger of a run with workers: within its limits whoever asks, dies, or waits."""

from __future__ import annotations

import asyncio
import random
import time
from itertools import pairwise

import pytest

from judgetree.evaluation.runs.experiment import Experiment
from judgetree.evaluation.runs.ledger import RunLedger, WorkerLimits
from judgetree.modules.calls.journal import ACCOUNT
from judgetree.modules.calls.prices import Prices
from judgetree.modules.calls.record import Spend
from judgetree.modules.errors import RunLimitReached
from judgetree.modules.llm.call_gate import CallGate
from judgetree.modules.llm.rate_limit import SharedRateLimit

ONE = Spend(calls=1, tokens=10)


def ledger(**limits: object) -> RunLedger:
    return RunLedger(Experiment.model_validate({"dataset": "hotpotqa:x.json", **limits}), (), Prices({}))


def test_what_a_pilot_has_paid_counts_for_workers_too() -> None:
    """143 calls were paid under a limit of 130."""
    experiment = Experiment.model_validate({"dataset": "hotpotqa:x.json", "max_calls": 20})
    books = RunLedger(experiment, (), Prices({}), paid_elsewhere=Spend(calls=20, tokens=200))
    assert "max_calls=20" in str(asyncio.run(books.reserve("w", "t", ONE)))


def test_no_interleaving_of_workers_and_deaths_passes_the_limit() -> None:
    async def run(seed: int) -> None:
        rng, books, made = random.Random(seed), ledger(max_calls=20), 0

        async def worker(name: str) -> None:
            nonlocal made
            limits = WorkerLimits(books, name, Prices({}))
            ACCOUNT.set(name)
            for _ in range(rng.randint(1, 9)):
                try:
                    place = await limits.reserve(ONE)
                except RunLimitReached:
                    return
                made += 1
                await asyncio.sleep(0)
                if rng.random() < 0.2:
                    await books.release(name)
                    return
                await limits.settle(place, rng.choice([ONE, Spend()]))

        await asyncio.wait_for(asyncio.gather(*(worker(str(number)) for number in range(8))), 60)
        exhausted, payments = await books.standing()
        assert sum(paid.calls for paid in payments.values()) <= 20
        assert made >= 20 or not exhausted

    for seed in range(200):
        asyncio.run(run(seed))


def test_a_worker_that_dies_while_it_waits_holds_nothing() -> None:
    async def run() -> int | str:
        books = ledger(max_calls=1)
        first = await books.reserve("a", "thread a", ONE)
        waiting = asyncio.create_task(books.reserve("b", "thread b", ONE))
        await asyncio.sleep(0)
        await books.release("b")
        assert isinstance(first, int)
        await books.settle(first, Spend())
        assert isinstance(await waiting, str)
        return await books.reserve("c", "thread c", ONE)

    assert isinstance(asyncio.run(run()), int)


def test_calls_of_a_dead_worker_count_as_made() -> None:
    async def run() -> int | str:
        books = ledger(max_calls=1)
        number = await books.reserve("a", "thread", ONE)
        await books.release("a")
        assert isinstance(number, int)
        await books.settle(number, Spend())
        return await books.reserve("b", "other", ONE)

    assert "max_calls=1" in str(asyncio.run(run()))


def test_what_earlier_starts_paid_without_a_row_counts_for_all_workers() -> None:
    """Workers were told the rows alone, so that each start of a run of failing questions had its limit anew."""

    async def run() -> int | str:
        books = ledger(max_calls=3)
        await books.owe({"thread": Spend(calls=3)})
        return await books.reserve("a", "other", ONE)

    assert "max_calls=3" in str(asyncio.run(run()))


@pytest.mark.parametrize("limit", [3, 10])
def test_all_workers_share_the_attempts_of_a_minute(limit: int, monkeypatch: pytest.MonkeyPatch) -> None:
    experiment = Experiment.model_validate({"dataset": "hotpotqa:x.json"})
    books = RunLedger(experiment, (), Prices({}), requests_per_minute=limit)

    async def run() -> list[int]:
        asking = [asyncio.create_task(books.admit("model", 5)) for _ in range(limit + 2)]
        done, waiting = await asyncio.wait(asking, timeout=0.2)
        for task in waiting:
            task.cancel()
        other = await books.admit("another model", 5)
        return [*sorted(task.result() for task in done), other]

    admitted = asyncio.run(run())
    assert len(admitted) == limit + 1
    assert all(one < other for one, other in pairwise(admitted))


def test_pause_that_one_worker_is_told_holds_all_workers() -> None:
    books = RunLedger(
        Experiment.model_validate({"dataset": "hotpotqa:x.json"}), (), Prices({}), requests_per_minute=100
    )
    told, other = (SharedRateLimit(books, "model", counts_tokens=False) for _ in range(2))

    async def run() -> None:
        async with told.admitted(CallGate(1), 1):
            pass
        begun = time.monotonic()
        with told.paused(for_s=0.2):
            await asyncio.sleep(0)
            async with other.admitted(CallGate(1), 1):
                assert time.monotonic() - begun > 0.15

    asyncio.run(run())
