"""The event loop of the process on its own thread, which owns all async clients: savers, HTTP connections, graphs.

A client works only on the loop that made it, and in a notebook each ``asyncio.run`` is a new loop. All async work
therefore runs here, whether started from scripts, notebook cells, threads or other event loops.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import os
import queue
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from typing import Final, Generic, TypeVar

from .errors import LoopReentryError

T = TypeVar("T")


class _End:
    """The end of a stream on its queue."""


_END: Final = _End()


class _Work(Generic[T]):
    """A coroutine on the loop; ``outcome`` is set when it has ended, also after a cancel.

    Call ``start`` inside the ``try`` that cancels: Ctrl-C may arrive before it has returned.
    """

    def __init__(self, loop: asyncio.AbstractEventLoop, coroutine: Coroutine[object, object, T]) -> None:
        self.outcome: concurrent.futures.Future[T] = concurrent.futures.Future()
        self.outcome.set_running_or_notify_cancel()  # a waiter that is cancelled cannot cancel it any more
        self._loop = loop
        self._coroutine = coroutine
        self._task: asyncio.Task[T] | None = None

    def start(self) -> None:
        self._loop.call_soon_threadsafe(self._start)

    def cancel(self) -> None:
        self._loop.call_soon_threadsafe(self._cancel)

    async def cancel_and_wait(self) -> None:
        """Cancel, and wait on the caller's own loop for the end of the work."""
        self.cancel()
        await asyncio.gather(asyncio.wrap_future(self.outcome), return_exceptions=True)

    def _start(self) -> None:
        self._task = self._loop.create_task(self._coroutine)
        self._task.add_done_callback(self._settle)

    def _cancel(self) -> None:
        if self._task is not None:
            self._task.cancel()
        else:  # it was never started
            self._coroutine.close()
            self.outcome.set_exception(concurrent.futures.CancelledError())

    def _settle(self, task: asyncio.Task[T]) -> None:
        if task.cancelled():
            self.outcome.set_exception(concurrent.futures.CancelledError())
        elif (error := task.exception()) is not None:
            self.outcome.set_exception(error)
        else:
            self.outcome.set_result(task.result())


class BackgroundLoop:
    """An event loop on a daemon thread, which runs until the process ends."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._serve, name="judgetree-loop", daemon=True)
        self._thread.start()

    def _serve(self) -> None:
        while True:
            # asyncio raises a task's SystemExit or KeyboardInterrupt in its waiter, and stops the loop as well.
            with contextlib.suppress(SystemExit, KeyboardInterrupt):
                self._loop.run_forever()

    @property
    def is_current(self) -> bool:
        """True on the loop's own thread."""
        return threading.current_thread() is self._thread

    def run(self, coroutine: Coroutine[object, object, T]) -> T:
        """Run a coroutine from another thread and return its result.

        Ctrl-C cancels the work, waits for its end (checkpoints written), then raises KeyboardInterrupt.

        Raises:
            LoopReentryError: Called on the loop's own thread, where it would wait for itself.
        """
        work = self._work(coroutine)
        try:
            work.start()
            return work.outcome.result()
        except KeyboardInterrupt:
            work.cancel()
            concurrent.futures.wait([work.outcome])
            raise

    async def arun(self, coroutine: Coroutine[object, object, T]) -> T:
        """Run a coroutine from any loop; cancelling the caller cancels the work and waits for its end."""
        if self.is_current:
            return await coroutine
        work = self._work(coroutine)
        try:
            work.start()
            return await asyncio.wrap_future(work.outcome)
        except asyncio.CancelledError:
            await work.cancel_and_wait()
            raise

    def iterate(self, items: AsyncIterator[T]) -> Iterator[T]:
        """Iterate from another thread; leaving early cancels the producer and waits for its end.

        Raises:
            LoopReentryError: Called on the loop's own thread.
        """
        received: queue.SimpleQueue[T | _End] = queue.SimpleQueue()
        work = self._work(_pump(items, received.put))
        try:
            work.start()
            while not isinstance(item := received.get(), _End):
                yield item
            work.outcome.result()
        finally:
            work.cancel()
            concurrent.futures.wait([work.outcome])

    async def aiterate(self, items: AsyncIterator[T]) -> AsyncIterator[T]:
        """Iterate from a coroutine on any loop; leaving early cancels the producer and waits for its end."""
        if self.is_current:
            async with _closing(items):
                async for own_item in items:
                    yield own_item
            return
        received: asyncio.Queue[T | _End] = asyncio.Queue()
        here = asyncio.get_running_loop()
        work = self._work(_pump(items, lambda item: here.call_soon_threadsafe(received.put_nowait, item)))
        try:
            work.start()
            while not isinstance(item := await received.get(), _End):
                yield item
            await asyncio.wrap_future(work.outcome)
        finally:
            await work.cancel_and_wait()

    def _work(self, coroutine: Coroutine[object, object, T]) -> _Work[T]:
        if self.is_current:
            coroutine.close()
            raise LoopReentryError(
                "A blocking call was made from judgetree's own event loop, where it would wait for itself. "
                "Inside nodes and callbacks use the async twin: ainvoke, astream, aget_state_history, aask."
            )
        return _Work(self._loop, coroutine)


@contextlib.asynccontextmanager
async def _closing(items: AsyncIterator[object]) -> AsyncIterator[None]:
    try:
        yield
    finally:
        if isinstance(items, AsyncGenerator):
            await items.aclose()


async def _pump(items: AsyncIterator[T], put: Callable[[T | _End], object]) -> None:
    try:
        async for item in items:
            put(item)
    finally:
        put(_END)


_shared: BackgroundLoop | None = None
_lock = threading.Lock()


def background_loop() -> BackgroundLoop:
    """Return the loop of the process, started at first use; a forked child starts its own."""
    global _shared  # noqa: PLW0603 - one per process is the point
    with _lock:
        if _shared is None or _shared.pid != os.getpid():
            _shared = BackgroundLoop()
        return _shared
