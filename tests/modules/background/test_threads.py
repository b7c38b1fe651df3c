"""Blocking calls that hang: what runs beside them, and whether the process ends."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from concurrent.futures import Future, wait

import pytest

from judgetree.modules.background.threads import SpareThreads
from judgetree.modules.background_loop import background_loop


@pytest.fixture
def over() -> Iterator[threading.Event]:
    """Ends the calls that hang."""
    event = threading.Event()
    yield event
    event.set()


def test_calls_run_beside_others_that_hang(over: threading.Event) -> None:
    pool = SpareThreads(2, hangs_after_s=0.02)
    hung = [pool.submit(over.wait) for _ in range(20)]
    assert pool.submit(lambda: "done").result(60) == "done"
    assert not any(each.done() for each in hung)


def test_no_more_calls_run_at_once_than_allowed_while_none_hangs(over: threading.Event) -> None:
    pool = SpareThreads(2, hangs_after_s=3600)
    lock, now, most = threading.Lock(), 0, 0
    both = threading.Barrier(2, timeout=60)

    def count() -> None:
        nonlocal now, most
        with lock:
            now += 1
            most = max(most, now)
        both.wait()
        with lock:
            now -= 1

    wait([pool.submit(count) for _ in range(20)])
    assert most == 2


def test_an_error_is_raised_where_the_outcome_is_awaited() -> None:
    def fails() -> None:
        raise KeyError("x")

    pool = SpareThreads(1)
    with pytest.raises(KeyError):
        pool.submit(fails).result(60)
    assert pool.submit(lambda: 1).result(60) == 1


def test_a_call_that_raises_stop_iteration_ends_all_the_same() -> None:
    """No future of asyncio takes that, so that who awaits it would wait for ever."""

    async def call() -> object:
        return await asyncio.wait_for(asyncio.to_thread(next, iter(())), 60)

    with pytest.raises(RuntimeError, match="a function raised StopIteration"):
        background_loop().run(call())


def test_a_cancelled_call_is_not_made(over: threading.Event) -> None:
    pool, made = SpareThreads(1, hangs_after_s=3600), []
    running = pool.submit(over.wait)
    second: Future[None] = pool.submit(lambda: made.append(2))
    assert second.cancel()
    over.set()
    assert running.result(60)
    assert pool.wait_until_idle(60)
    assert made == []


def test_a_pool_that_was_shut_down_takes_no_calls_and_does_not_wait(over: threading.Event) -> None:
    pool = SpareThreads(1)
    pool.submit(over.wait)
    pool.shutdown(wait=True)
    with pytest.raises(RuntimeError, match="shutdown"):
        pool.submit(over.wait)


def test_hung_calls_on_judgetree_s_loop_do_not_hold_up_others(over: threading.Event) -> None:
    async def beside_hung() -> str:
        hung = [asyncio.create_task(asyncio.to_thread(over.wait)) for _ in range((os.cpu_count() or 1) + 5)]
        done = await asyncio.to_thread(lambda: "done")
        over.set()
        await asyncio.gather(*hung)
        return done

    assert background_loop().run(beside_hung()) == "done"


ENDS = """
import asyncio, threading
from judgetree.modules.background_loop import background_loop

async def hang():
    began = threading.Event()
    asyncio.ensure_future(asyncio.to_thread(lambda: (began.set(), threading.Event().wait())))
    asyncio.ensure_future(asyncio.get_running_loop().getaddrinfo("localhost", 1))
    await asyncio.to_thread(began.wait)

background_loop().run(hang())
print("end")
"""


def test_a_hung_call_does_not_hold_the_process() -> None:
    ended = subprocess.run([sys.executable, "-c", ENDS], capture_output=True, text=True, timeout=120, check=False)
    assert (ended.returncode, ended.stdout.strip(), ended.stderr) == (0, "end", "")
