"""The one event loop: who may call it, and what passes through."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import gc
import os
import subprocess
import sys
import threading
import warnings
from collections.abc import AsyncIterator, Callable
from concurrent.futures import ThreadPoolExecutor
from typing import TypeVar

import pytest

from judgetree.modules.background_loop import BackgroundLoop, background_loop
from judgetree.modules.errors import LoopReentryError

T = TypeVar("T")

PATIENCE_S = 60.0
"""How long a test waits for what should happen at once, before it fails."""


async def double(number: int) -> int:
    await asyncio.sleep(0)
    return 2 * number


async def count_to(end: int) -> AsyncIterator[int]:
    for number in range(end):
        await asyncio.sleep(0)
        yield number


async def fail(error: BaseException) -> None:
    await asyncio.sleep(0)
    raise error


def in_thread(call: Callable[[], T]) -> T:
    """The result of a call made on a thread of its own; a test that would hang fails instead."""
    outcome: concurrent.futures.Future[T] = concurrent.futures.Future()

    def settle() -> None:
        try:
            outcome.set_result(call())
        except BaseException as error:  # noqa: BLE001 - handed on to the test
            outcome.set_exception(error)

    threading.Thread(target=settle, daemon=True).start()
    return outcome.result(PATIENCE_S)


# --- who may call ---


def test_run_works_on_one_loop_when_called_from_several_threads() -> None:
    async def where(number: int) -> tuple[int, str]:
        return await double(number), threading.current_thread().name

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda number: background_loop().run(where(number)), range(50)))
    assert found == [(2 * number, "judgetree-loop") for number in range(50)]


def test_client_of_the_loop_serves_one_asyncio_run_after_another() -> None:
    async def make_lock() -> asyncio.Lock:
        return asyncio.Lock()

    async def use(lock: asyncio.Lock) -> int:
        async with lock:  # contended, so that it binds itself to the loop it is used on
            return await double(1)

    async def cell() -> list[int]:
        return await asyncio.gather(*(background_loop().arun(use(lock)) for _ in range(3)))

    lock = background_loop().run(make_lock())
    assert asyncio.run(cell()) == asyncio.run(cell()) == [2, 2, 2]


@pytest.mark.parametrize("count", [0, 100])
def test_iterate_and_aiterate_give_all_items_in_order(count: int) -> None:
    async def collect() -> list[int]:
        return [item async for item in background_loop().aiterate(count_to(count))]

    assert list(background_loop().iterate(count_to(count))) == list(range(count))
    assert asyncio.run(collect()) == list(range(count))
    assert background_loop().run(collect()) == list(range(count))
    assert in_thread(lambda: list(background_loop().iterate(count_to(3)))) == [0, 1, 2]


def test_run_works_inside_a_running_loop_and_a_hop_on_the_loop_itself() -> None:
    async def cell() -> int:
        return background_loop().run(double(4))

    async def nested() -> int:
        return await background_loop().arun(double(5))

    assert asyncio.run(cell()) == 8
    assert background_loop().run(nested()) == 10


def test_context_variables_of_the_caller_reach_the_work() -> None:
    variable: contextvars.ContextVar[str] = contextvars.ContextVar("variable", default="unset")

    async def read() -> str:
        return variable.get()

    def set_and_run() -> str:
        variable.set("set")
        return background_loop().run(read())

    assert contextvars.copy_context().run(set_and_run) == "set"
    assert background_loop().run(read()) == "unset"


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_child_starts_a_loop_of_its_own() -> None:
    script = """
import os
from judgetree.modules.background_loop import background_loop

async def double(number):
    return 2 * number

assert background_loop().run(double(1)) == 2
child = os.fork()
found = background_loop().run(double(2))
if child == 0:
    print("child", found, flush=True)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
print("parent", found, background_loop().run(double(3)))
"""
    arguments = [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", "-c", script]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (done.stdout.splitlines(), done.stderr) == (["child 4", "parent 4 6"], "")


# --- what passes through ---


@pytest.mark.parametrize("error", [ValueError("x"), KeyError("k"), ExceptionGroup("g", [OSError()]), SystemExit(3)])
def test_exceptions_pass_through_run_hop_and_streams(error: BaseException) -> None:
    async def failing_items() -> AsyncIterator[int]:
        yield 1
        raise error

    async def consume() -> None:
        async for item in loop.aiterate(failing_items()):
            seen.append(item)

    async def consume_and_tell() -> BaseException | None:
        for attempt in (lambda: loop.arun(fail(error)), consume):
            try:
                await attempt()
            except type(error) as raised:
                assert raised is error
            else:
                return None
        return error

    loop, seen = BackgroundLoop(), list[int]()
    for call in (lambda: loop.run(fail(error)), lambda: seen.extend(loop.iterate(failing_items()))):
        with pytest.raises(type(error)) as caught:
            in_thread(call)
        assert caught.value is error
    assert in_thread(lambda: asyncio.run(consume_and_tell())) is error
    assert seen == [1, 1]
    assert in_thread(lambda: loop.run(double(1))) == 2


def test_loop_outlives_a_task_that_exits() -> None:
    """asyncio lets SystemExit end the thread of its loop; whoever waits would then wait for ever."""

    async def spawn() -> None:
        await asyncio.create_task(fail(SystemExit(3)))

    loop = BackgroundLoop()
    with pytest.raises(SystemExit):
        in_thread(lambda: loop.run(spawn()))
    assert in_thread(lambda: loop.run(double(1))) == 2


def test_work_that_cancels_itself_raises_cancelled_error() -> None:
    async def arun() -> None:
        await background_loop().arun(fail(asyncio.CancelledError()))

    with pytest.raises(concurrent.futures.CancelledError):
        background_loop().run(fail(asyncio.CancelledError()))
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(arun())


# --- re-entry ---


def test_blocking_calls_on_the_loop_raise_and_leave_nothing_unawaited() -> None:
    async def reenter() -> str:
        with pytest.raises(LoopReentryError, match="ainvoke"):
            background_loop().run(double(1))
        with pytest.raises(LoopReentryError):
            next(iter(background_loop().iterate(count_to(1))))
        gc.collect()
        return "still alive"

    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        assert background_loop().run(reenter()) == "still alive"
    assert [str(warning.message) for warning in caught] == []
