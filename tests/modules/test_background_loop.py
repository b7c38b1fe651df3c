"""The one event loop: who may call it, what passes through, and what is left behind when a caller gives up."""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextvars
import gc
import os
import signal
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

PATIENCE_S = 20.0
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


class Producer:
    """A stream of whole numbers that never ends by itself, and what became of it."""

    def __init__(self) -> None:
        self.started = threading.Event()
        self.may_clean_up = threading.Event()
        self.cleaned_up = False
        self.thread = ""

    async def items(self) -> AsyncIterator[int]:
        self.thread = threading.current_thread().name
        self.started.set()
        try:
            yield 0
            yield 1
            await asyncio.Event().wait()
        finally:
            await asyncio.to_thread(self.may_clean_up.wait, PATIENCE_S)
            self.cleaned_up = True

    async def work(self) -> None:
        async for _ in self.items():
            pass


# --- who may call ---


def test_run_gives_back_the_result_when_called_from_the_main_thread() -> None:
    assert background_loop().run(double(21)) == 42


def test_run_works_on_one_loop_when_called_from_several_threads() -> None:
    async def where(number: int) -> tuple[int, str]:
        return await double(number), threading.current_thread().name

    with ThreadPoolExecutor(8) as threads:
        found = list(threads.map(lambda number: background_loop().run(where(number)), range(50)))
    assert found == [(2 * number, "judgetree-loop") for number in range(50)]


def test_run_works_when_called_inside_a_running_loop() -> None:
    async def cell() -> int:
        return background_loop().run(double(4))

    assert asyncio.run(cell()) == 8


def test_client_of_the_loop_serves_one_asyncio_run_after_another() -> None:
    async def make_lock() -> asyncio.Lock:
        return asyncio.Lock()

    async def use(lock: asyncio.Lock) -> int:
        async with lock:  # contended, so that it binds itself to the loop it is used on
            return await double(1)

    async def cell() -> list[int]:
        return await asyncio.gather(*(background_loop().hop(use(lock)) for _ in range(3)))

    lock = background_loop().run(make_lock())
    assert asyncio.run(cell()) == asyncio.run(cell()) == [2, 2, 2]


def test_iterate_and_aiterate_give_all_items_in_order() -> None:
    async def collect() -> list[int]:
        return [item async for item in background_loop().aiterate(count_to(100))]

    assert list(background_loop().iterate(count_to(100))) == list(range(100))
    assert asyncio.run(collect()) == list(range(100))
    assert background_loop().run(collect()) == list(range(100))
    assert in_thread(lambda: list(background_loop().iterate(count_to(3)))) == [0, 1, 2]


def test_iterate_and_aiterate_end_at_once_when_there_is_nothing() -> None:
    async def collect() -> list[int]:
        return [item async for item in background_loop().aiterate(count_to(0))]

    assert list(background_loop().iterate(count_to(0))) == []
    assert asyncio.run(collect()) == []


def test_hop_runs_in_place_when_already_on_the_loop() -> None:
    async def nested() -> int:
        return await background_loop().hop(double(5))

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
        for attempt in (lambda: loop.hop(fail(error)), consume):
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
    async def hop() -> None:
        await background_loop().hop(fail(asyncio.CancelledError()))

    with pytest.raises(concurrent.futures.CancelledError):
        background_loop().run(fail(asyncio.CancelledError()))
    with pytest.raises(asyncio.CancelledError):
        asyncio.run(hop())


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


# --- giving up ---


def test_iterate_left_early_cancels_the_producer_and_waits_for_its_end() -> None:
    producer = Producer()
    producer.may_clean_up.set()
    stream = background_loop().iterate(producer.items())
    assert [next(stream), next(stream)] == [0, 1]
    stream.close()
    assert producer.cleaned_up
    assert producer.thread == "judgetree-loop"


def test_aiterate_left_early_cancels_the_producer_and_waits_for_its_end() -> None:
    producer = Producer()

    async def leave() -> list[bool]:
        stream = background_loop().aiterate(producer.items())
        assert await anext(stream) == 0
        leaving = asyncio.ensure_future(stream.aclose())
        await asyncio.sleep(0)
        ended_before_clean_up = leaving.done()
        producer.may_clean_up.set()
        await leaving
        return [ended_before_clean_up, producer.cleaned_up]

    assert asyncio.run(leave()) == [False, True]


def test_aiterate_left_early_on_the_loop_itself_closes_the_producer() -> None:
    producer = Producer()
    producer.may_clean_up.set()

    async def leave() -> bool:
        items = producer.items()  # kept, so that no garbage collection closes it
        stream = background_loop().aiterate(items)
        assert await anext(stream) == 0
        await stream.aclose()
        return producer.cleaned_up

    assert background_loop().run(leave())


def test_aiterate_cancelled_while_it_waits_cancels_the_producer() -> None:
    producer = Producer()

    async def consume() -> None:
        async for _ in background_loop().aiterate(producer.items()):
            pass

    async def cancel() -> list[bool]:
        consumer = asyncio.ensure_future(consume())
        await asyncio.to_thread(producer.started.wait, PATIENCE_S)
        consumer.cancel()
        await asyncio.sleep(0)
        ended_before_clean_up = consumer.done()
        producer.may_clean_up.set()
        await asyncio.wait([consumer])
        return [ended_before_clean_up, consumer.cancelled(), producer.cleaned_up]

    assert asyncio.run(cancel()) == [False, True, True]


def test_aiterate_cancelled_at_its_very_end_leaves_the_loop_in_peace(caplog: pytest.LogCaptureFixture) -> None:
    """The stream has ended, its work is not settled yet: cancelling the consumer must not settle it too."""
    ending, cancelled = threading.Event(), threading.Event()

    async def items() -> AsyncIterator[int]:
        yield 1

        def block() -> None:  # runs after the end of the stream is told, before the work is settled
            ending.set()
            cancelled.wait(PATIENCE_S)

        asyncio.get_running_loop().call_soon(block)

    async def consume() -> None:
        async for _ in background_loop().aiterate(items()):
            pass

    async def cancel() -> bool:
        consumer = asyncio.ensure_future(consume())
        await asyncio.to_thread(ending.wait, PATIENCE_S)
        for _ in range(5):  # let it take the end of the stream off its queue
            await asyncio.sleep(0)
        consumer.cancel()
        await asyncio.sleep(0)
        cancelled.set()
        await asyncio.wait([consumer])
        return consumer.cancelled()

    assert asyncio.run(cancel())
    assert background_loop().run(double(1)) == 2
    assert caplog.records == []


def test_hop_cancelled_waits_for_the_end_of_its_work() -> None:
    producer = Producer()

    async def cancel() -> list[bool]:
        caller = asyncio.ensure_future(background_loop().hop(producer.work()))
        await asyncio.to_thread(producer.started.wait, PATIENCE_S)
        caller.cancel()
        await asyncio.sleep(0)
        ended_before_clean_up = caller.done()
        producer.may_clean_up.set()
        await asyncio.wait([caller])
        return [ended_before_clean_up, caller.cancelled(), producer.cleaned_up]

    assert asyncio.run(cancel()) == [False, True, True]


def test_hop_cancelled_before_its_work_begins_never_begins_it() -> None:
    begun: list[int] = []
    busy, free = threading.Event(), threading.Event()

    async def block() -> None:
        busy.set()
        free.wait(PATIENCE_S)

    async def work() -> None:
        begun.append(1)

    async def cancel() -> bool:
        busy.wait(PATIENCE_S)
        caller = asyncio.ensure_future(background_loop().hop(work()))
        await asyncio.sleep(0)
        caller.cancel()
        await asyncio.sleep(0)
        free.set()
        await asyncio.wait([caller], timeout=PATIENCE_S)
        return caller.cancelled()

    with ThreadPoolExecutor(1) as threads:
        blocking = threads.submit(background_loop().run, block())
        assert asyncio.run(cancel())
        blocking.result(PATIENCE_S)
    assert begun == []


def test_hop_lets_the_failure_of_cancelled_work_go_unreported(caplog: pytest.LogCaptureFixture) -> None:
    started = threading.Event()

    async def work() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise OSError("while winding up") from None

    async def cancel() -> bool:
        caller = asyncio.ensure_future(background_loop().hop(work()))
        await asyncio.to_thread(started.wait, PATIENCE_S)
        caller.cancel()
        await asyncio.wait([caller])
        return caller.cancelled()

    assert asyncio.run(cancel())
    gc.collect()
    assert caplog.records == []


SCRIPT_HEAD = """
import asyncio, os, sys, threading
from judgetree.modules.background_loop import background_loop

async def work():
    try:
        print("started", flush=True)
        await asyncio.Event().wait()
    finally:
        await asyncio.sleep(0.05)
        print("cleaned up", flush=True)

async def items():
    yield await work()
"""


@pytest.mark.parametrize("call", ["background_loop().run(work())", "list(background_loop().iterate(items()))"])
def test_ctrl_c_cancels_the_work_and_waits_for_its_clean_up(call: str) -> None:
    script = f"{SCRIPT_HEAD}\ntry:\n    {call}\nexcept KeyboardInterrupt:\n    print('interrupted')\n"
    with subprocess.Popen([sys.executable, "-W", "error", "-c", script], stdout=-1, stderr=-1, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "started\n"
        process.send_signal(signal.SIGINT)
        output, errors = process.communicate(timeout=PATIENCE_S)
    assert (output.splitlines(), errors, process.returncode) == (["cleaned up", "interrupted"], "", 0)


@pytest.mark.parametrize("call", ["background_loop().run(work())", "list(background_loop().iterate(items()))"])
def test_ctrl_c_in_the_very_moment_that_the_work_starts_is_no_different(call: str) -> None:
    script = f"""
import asyncio, os, signal
from judgetree.modules.background_loop import background_loop

async def work():
    global cleaned_up
    try:
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.Event().wait()
    finally:
        await asyncio.sleep(0)
        cleaned_up = True

async def items():
    yield await work()

for _ in range(100):
    cleaned_up = False
    try:
        {call}
    except KeyboardInterrupt:
        print(cleaned_up)
"""
    arguments = [sys.executable, "-W", "error", "-c", script]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (done.stdout.split(), done.stderr) == (["True"] * 100, "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_forked_child_starts_a_loop_of_its_own_and_leaves_the_parents_alone() -> None:
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
