"""The one event loop, when a caller gives up: the work is cancelled, and waited for until it has cleaned up."""

from __future__ import annotations

import asyncio
import contextlib
import gc
import os
import signal
import subprocess
import sys
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Coroutine
from concurrent.futures import ThreadPoolExecutor
from typing import cast

import pytest

from judgetree.modules.background_loop import async_twin, background_loop, blocking
from tests.modules.test_background_loop import PATIENCE_S, double


class Producer:
    """A stream of whole numbers that never ends by itself, and what became of it."""

    def __init__(self) -> None:
        self.started = threading.Event()
        self.may_clean_up = threading.Event()
        self.ended = threading.Event()
        self.thread = ""

    @property
    def cleaned_up(self) -> bool:
        return self.ended.is_set()

    async def items(self) -> AsyncIterator[int]:
        self.thread = threading.current_thread().name
        self.started.set()
        try:
            yield 0
            yield 1
            await asyncio.Event().wait()
        finally:
            await asyncio.to_thread(self.may_clean_up.wait, PATIENCE_S)
            self.ended.set()

    async def work(self) -> None:
        async for _ in self.items():
            pass


# --- leaving a stream early ---


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


async def consume(producer: Producer) -> None:
    async for _ in background_loop().aiterate(producer.items()):
        pass


async def hop(producer: Producer) -> None:
    await background_loop().arun(producer.work())


@pytest.mark.parametrize("call", [consume, hop])
def test_cancelled_call_cancels_its_work_and_waits_for_its_end(call: Callable[[Producer], Awaitable[None]]) -> None:
    producer = Producer()

    async def cancel() -> list[bool]:
        consumer = asyncio.ensure_future(call(producer))
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


def test_twin_left_early_waits_for_the_end_of_the_producer() -> None:
    producer = Producer()
    producer.may_clean_up.set()
    twin = async_twin(blocking(producer.items))

    async def leave() -> bool:
        async with contextlib.aclosing(cast("AsyncGenerator[int]", twin())) as stream:
            async for _ in stream:
                break
        return producer.cleaned_up

    assert asyncio.run(leave())


def test_stream_whose_loop_was_closed_ends_its_producer() -> None:
    closed, cleaned_up = threading.Event(), threading.Event()

    async def items() -> AsyncIterator[int]:
        try:
            yield 0
            await asyncio.to_thread(closed.wait, PATIENCE_S)
            yield 1
        finally:
            cleaned_up.set()

    stream = background_loop().aiterate(items())
    with contextlib.closing(asyncio.new_event_loop()) as loop:
        assert loop.run_until_complete(anext(stream)) == 0
    closed.set()
    assert cleaned_up.wait(PATIENCE_S)
    asyncio.run(cast("AsyncGenerator[int]", stream).aclose())


GIVE_UP_HEAD = """
import asyncio, faulthandler, gc, os, sys
from judgetree.modules.background_loop import background_loop

faulthandler.dump_traceback_later(15, exit=True)

async def items():
    try:
        while True:
            yield 0
            await asyncio.sleep(0)
    finally:
        print("cleaned up", flush=True)

class Viewer:
    def __init__(self):
        self.stream, self.itself = background_loop().iterate(items()), self

async def work():
    gc.collect()
"""
GIVE_UPS = {
    "collected on the loop": """
viewer = Viewer()
next(viewer.stream)
del viewer
background_loop().run(work())
background_loop().run(asyncio.sleep(0))
print("ended")
""",
    "collected on a thread that the producer's end needs": """
from concurrent.futures import ThreadPoolExecutor
pool = ThreadPoolExecutor(1)

async def work():
    await asyncio.get_running_loop().run_in_executor(pool, gc.collect)

async def items():
    try:
        while True:
            yield 0
            await asyncio.sleep(0)
    finally:
        await asyncio.get_running_loop().run_in_executor(pool, print, "cleaned up")

viewer = Viewer()
next(viewer.stream)
del viewer
background_loop().run(work())
pool.shutdown()
print("ended")
""",
    "dropped in a forked child": """
stream = background_loop().iterate(items())
next(stream)
if not (child := os.fork()):
    del stream
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
stream.close()
print("ended")
""",
}


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.parametrize("given_up", GIVE_UPS)
def test_stream_that_is_given_up_elsewhere_freezes_nothing(given_up: str) -> None:
    script = f"{GIVE_UP_HEAD}\ngc.disable()\n{GIVE_UPS[given_up]}"
    arguments = [sys.executable, "-W", "error", "-W", "ignore::DeprecationWarning", "-c", script]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (done.stdout.splitlines(), done.stderr) == (["cleaned up", "ended"], "")


def test_call_at_the_exit_of_python_ends_with_an_error() -> None:
    script = """
import asyncio
from judgetree.modules.background_loop import background_loop

class Session:
    def __del__(self):
        background_loop().run(asyncio.sleep(0))

session = Session()
background_loop().run(asyncio.sleep(0))
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert (done.returncode, "Python is exiting" in done.stderr) == (0, True)


# --- cancelling a call ---


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
        caller = asyncio.ensure_future(background_loop().arun(work()))
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


def check_silence(cancelling: Coroutine[object, object, bool], caplog: pytest.LogCaptureFixture) -> None:
    """Check that a call is cancelled, and that nothing is told of how its work ended."""
    gc.collect()
    caplog.clear()  # what other tests have left
    assert asyncio.run(cancelling)
    gc.collect()
    assert caplog.records == []


def test_hop_lets_the_failure_of_cancelled_work_go_unreported(caplog: pytest.LogCaptureFixture) -> None:
    started = threading.Event()

    async def work() -> None:
        started.set()
        try:
            await asyncio.Event().wait()
        except asyncio.CancelledError:
            raise OSError("while winding up") from None

    async def cancel() -> bool:
        caller = asyncio.ensure_future(background_loop().arun(work()))
        await asyncio.to_thread(started.wait, PATIENCE_S)
        caller.cancel()
        await asyncio.wait([caller])
        return caller.cancelled()

    check_silence(cancel(), caplog)


def test_a_caller_cancelled_again_leaves_the_end_of_its_work_unreported(caplog: pytest.LogCaptureFixture) -> None:
    producer = Producer()

    async def cancel() -> bool:
        caller = asyncio.ensure_future(hop(producer))
        await asyncio.to_thread(producer.started.wait, PATIENCE_S)
        while not caller.done():
            caller.cancel()
            await asyncio.sleep(0)
        producer.may_clean_up.set()
        await asyncio.to_thread(producer.ended.wait, PATIENCE_S)
        await asyncio.to_thread(background_loop().run, double(1))  # the loop has told of the end by now
        await asyncio.sleep(0)
        return caller.cancelled()

    check_silence(cancel(), caplog)


# --- Ctrl-C ---


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


def assert_cleaned_up(script: str, sent: signal.Signals, said: str) -> None:
    """Run a script in a process, which has to clean up, say so and end well after a signal."""
    with subprocess.Popen([sys.executable, "-W", "error", "-c", script], stdout=-1, stderr=-1, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "started\n"
            process.send_signal(sent)
            output, errors = process.communicate(timeout=PATIENCE_S)
        finally:
            process.kill()
    assert (output.splitlines(), errors, process.returncode) == (["cleaned up", said], "", 0)


@pytest.mark.parametrize("call", ["background_loop().run(work())", "list(background_loop().iterate(items()))"])
def test_ctrl_c_cancels_the_work_and_waits_for_its_clean_up(call: str) -> None:
    script = f"{SCRIPT_HEAD}\ntry:\n    {call}\nexcept KeyboardInterrupt:\n    print('interrupted')\n"
    assert_cleaned_up(script, signal.SIGINT, "interrupted")


@pytest.mark.skipif(not hasattr(signal, "SIGALRM"), reason="needs signals of Unix")
@pytest.mark.parametrize("error", ["RuntimeError", "SystemExit"])
def test_what_a_signal_handler_raises_cancels_the_work_too(error: str) -> None:
    script = f"""{SCRIPT_HEAD}
import signal

def stop(*_):
    raise {error}

signal.signal(signal.SIGTERM, stop)
try:
    background_loop().run(work())
except {error}:
    print("stopped")
"""
    assert_cleaned_up(script, signal.SIGTERM, "stopped")


KILLS = {
    "this process": ("os.kill(os.getpid(), signal.SIGINT)", 100),
    "another thread": ("signal.pthread_kill(threading.get_ident(), signal.SIGINT)", 2),  # wakes no thread that waits
}


def test_a_wait_for_ctrl_c_notices_one_that_wakes_no_thread() -> None:
    script = """
import signal, threading
from judgetree.modules.background.waiting import wait_for_signal

def kill():
    signal.pthread_kill(threading.get_ident(), signal.SIGINT)

try:
    threading.Thread(target=kill).start()
    wait_for_signal()
except KeyboardInterrupt:
    print("stopped")
"""
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, timeout=PATIENCE_S, check=False
    )
    assert (done.stdout, done.stderr) == ("stopped\n", "")


@pytest.mark.parametrize(("kill", "times"), KILLS.values(), ids=KILLS)
@pytest.mark.parametrize("call", ["background_loop().run(work())", "list(background_loop().iterate(items()))"])
def test_ctrl_c_in_the_very_moment_that_the_work_starts_is_no_different(call: str, kill: str, times: int) -> None:
    script = f"""
import asyncio, os, signal, threading
from judgetree.modules.background_loop import background_loop

async def work():
    global cleaned_up
    try:
        {kill}
        await asyncio.Event().wait()
    finally:
        await asyncio.sleep(0)
        cleaned_up = True

async def items():
    yield await work()

for _ in range({times}):
    cleaned_up = False
    try:
        {call}
    except KeyboardInterrupt:
        print(cleaned_up)
"""
    arguments = [sys.executable, "-W", "error", "-c", script]
    done = subprocess.run(arguments, capture_output=True, text=True, timeout=PATIENCE_S, check=False)
    assert (done.stdout.split(), done.stderr) == (["True"] * times, "")
