"""The event loop of the process on its own thread, which owns all async clients: savers, HTTP connections, graphs.

A client works only on the loop that made it, and in a notebook each ``asyncio.run`` is a new loop. All async work
therefore runs here, whether started from scripts, notebook cells, threads or other event loops.

A public verb is written once, as a coroutine, and called in two ways: blocking, or awaited from any event loop.

>>> import asyncio
>>> class Oven:
...     @blocking
...     async def bake(self, minutes: int) -> str:
...         '''Bake a cake.'''
...         return f"baked for {minutes} minutes"
...
...     abake = async_twin(bake)
>>> Oven().bake(40)
'baked for 40 minutes'
>>> asyncio.run(Oven().abake(40))
'baked for 40 minutes'
>>> Oven.abake.__doc__
'Async twin of ``bake``.'

On judgetree's own loop work calls the async twins of other verbs, which run in place.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import functools
import inspect
import os
import queue
import socket
import sys
import threading
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Iterator
from types import GenericAlias
from typing import Any, Final, Generic, ParamSpec, TypeVar, overload

from .background.closing import closing
from .background.threads import SpareThreads
from .background.waiting import NOTICED_S, next_item
from .errors import LoopReentryError, SessionError

T = TypeVar("T")


class _End:
    """The end of a stream on its queue."""


_END: Final = _End()


_STUCK_AFTER_S = 3.0
"""Seconds without a turn after which the loop is taken for stuck while something waits for the end of its work."""


class _Work(Generic[T]):
    """A coroutine on the loop; ``outcome`` is set when it has ended, also after a cancel.

    Call ``start`` inside the ``try`` that cancels: Ctrl-C may arrive before it has returned.
    """

    def __init__(self, loop: _Loop, coroutine: Coroutine[object, object, T]) -> None:
        self.outcome: concurrent.futures.Future[T] = concurrent.futures.Future()
        self.outcome.set_running_or_notify_cancel()  # a waiter that is cancelled cannot cancel it any more
        self._loop = loop
        self._coroutine = coroutine
        self._task: asyncio.Task[T] | None = None

    def start(self) -> None:
        self._loop.call_soon_threadsafe(self._start)

    def cancel(self) -> None:
        self._loop.call_soon_threadsafe(self._cancel)

    def result(self) -> T:
        """Wait in the caller's thread for the end of the work, and return its result."""
        while not self.outcome.done():
            with contextlib.suppress(TimeoutError):  # the work's own is raised below
                return self.outcome.result(NOTICED_S)
        return self.outcome.result()

    async def cancel_and_wait(self) -> None:
        """Cancel, and wait on the caller's own loop for the end of the work, unless judgetree's loop is stuck."""
        self.cancel()
        ending = asyncio.wrap_future(self.outcome)
        ending.add_done_callback(lambda end: end.cancelled() or end.exception())  # a caller who has left reads it not
        while not (await asyncio.wait([ending], timeout=_STUCK_AFTER_S))[0]:
            if not await asyncio.to_thread(self._turns):
                return

    def cancel_and_join(self) -> None:
        """Cancel, and wait in the caller's thread for the end of the work, unless the loop is stuck."""
        self.cancel()
        while not concurrent.futures.wait([self.outcome], _STUCK_AFTER_S).done and self._turns():
            pass

    def _turns(self) -> bool:
        """Return whether the loop serves its callbacks; a part that blocks it for good can only be left behind."""
        turned = threading.Event()
        self._loop.call_soon_threadsafe(turned.set)
        self._loop.is_stuck = not turned.wait(_STUCK_AFTER_S)
        return not self._loop.is_stuck

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


_LOOKUPS_AT_ONCE = 4


class _Loop(asyncio.SelectorEventLoop if sys.platform != "win32" else asyncio.ProactorEventLoop):  # type: ignore[misc]
    """An event loop that looks host names up in threads of its own.

    Blocking calls made in the loop's default threads wait for connections that this loop makes. Lookups in the same
    threads would wait for those calls to end.
    """

    is_stuck = False
    """True once a part has blocked it while something waited for the end of its work."""

    def __init__(self) -> None:
        super().__init__()
        self.set_default_executor(SpareThreads(name="judgetree-work"))
        self._lookups = SpareThreads(_LOOKUPS_AT_ONCE, name="judgetree-lookup")

    async def getaddrinfo(  # type: ignore[no-untyped-def]
        self, host, port, *, family=0, type=0, proto=0, flags=0
    ):
        arguments = (host, port, family, type, proto, flags)
        return await self.run_in_executor(self._lookups, socket.getaddrinfo, *arguments)


class BackgroundLoop:
    """An event loop on a daemon thread, which runs until the process ends."""

    def __init__(self) -> None:
        self.pid = os.getpid()
        self._loop = _Loop()
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

        Ctrl-C, or what another signal's handler raises, cancels the work, waits for its end (checkpoints written), and
        is then raised. Of an ``OSError``, ``TimeoutError`` included, that is not certain: asyncio drops one that is
        raised while it wakes its loop, in the first microseconds. Let handlers raise another class.

        Raises:
            LoopReentryError: Called on the loop's own thread, where it would wait for itself.
            SessionError: Python is exiting, and the loop with it.
        """
        work = self._work(coroutine)
        try:
            work.start()
            return work.result()
        except BaseException:  # the work's own error too, after which there is nothing to cancel
            work.cancel_and_join()
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

        A thread other than the one that iterated, such as a garbage collector's, cancels it and does not wait.

        Raises:
            LoopReentryError: Called on the loop's own thread.
            SessionError: Python is exiting, and the loop with it.
        """
        received: queue.SimpleQueue[T | _End] = queue.SimpleQueue()
        work = self._work(_pump(items, received.put))
        consumer = threading.current_thread()
        try:
            work.start()
            while not isinstance(item := next_item(received), _End):
                yield item
                consumer = threading.current_thread()
            work.outcome.result()
        finally:
            # An abandoned stream is collected on any thread, the loop's own or one that its producer's end needs
            # included, and in forked children, where no loop runs: to wait there is to wait for ever.
            is_ours = threading.current_thread() is consumer and self.pid == os.getpid()
            (work.cancel_and_join if is_ours else work.cancel)()

    async def aiterate(self, items: AsyncIterator[T]) -> AsyncGenerator[T]:
        """Iterate from a coroutine on any loop; leaving early cancels the producer and waits for its end."""
        if self.is_current:
            async with closing(items):
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
        if sys.is_finalizing():  # the loop's thread has been stopped
            coroutine.close()
            raise SessionError("Python is exiting: make this call before, for instance in a with block.")
        if self._loop.is_stuck:
            coroutine.close()
            raise SessionError("A part blocks judgetree's event loop, where no more can be done. End the process.")
        return _Work(self._loop, coroutine)


async def _pump(items: AsyncIterator[T], put: Callable[[T | _End], object]) -> None:
    try:
        async with closing(items):  # put raises once the consumer's loop is closed
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


P = ParamSpec("P")


@overload
def blocking(work: Callable[P, Coroutine[Any, Any, T]]) -> Callable[P, T]: ...
@overload
def blocking(work: Callable[P, AsyncIterator[T]]) -> Callable[P, Iterator[T]]: ...
def blocking(work: Callable[P, Any]) -> Callable[P, Any]:
    """Make a blocking verb of an ``async def``, or of a function that returns an asynchronous iterator.

    The verb has the name, the parameters and the docstring of ``work``. It returns the result, or yields the items. On
    judgetree's own loop it raises ``LoopReentryError``.
    """
    if inspect.iscoroutinefunction(work):

        @functools.wraps(work)
        def run(*args: P.args, **kwargs: P.kwargs) -> object:
            return background_loop().run(work(*args, **kwargs))

        return run

    @functools.wraps(work)
    def iterate(*args: P.args, **kwargs: P.kwargs) -> Iterator[object]:
        return background_loop().iterate(work(*args, **kwargs))

    item = str(work.__annotations__["return"]).partition("[")[2].removesuffix("]")
    iterate.__annotations__ = work.__annotations__ | {"return": GenericAlias(Iterator, (item,))}
    signature = inspect.signature(work).replace(return_annotation=f"Iterator[{item}]")
    vars(iterate)["__signature__"] = signature
    return iterate


@overload
def async_twin(verb: Callable[P, Iterator[T]]) -> Callable[P, AsyncIterator[T]]: ...  # type: ignore[overload-overlap]
@overload
def async_twin(verb: Callable[P, T]) -> Callable[P, Coroutine[Any, Any, T]]: ...
def async_twin(verb: Callable[P, Any]) -> Callable[P, Any]:
    """Make the async twin of a ``blocking`` verb, to be bound to the name ``a<verb>``.

    It is a coroutine function or an asynchronous generator function. Cancelling it cancels the work and waits until the
    work has ended.
    """
    work: Callable[P, Any] = vars(verb)["__wrapped__"]
    if inspect.iscoroutinefunction(work):

        async def arun(*args: P.args, **kwargs: P.kwargs) -> object:
            loop = background_loop()
            return await (work(*args, **kwargs) if loop.is_current else loop.arun(work(*args, **kwargs)))

        return _as_twin_of(work, arun)

    async def aiterate(*args: P.args, **kwargs: P.kwargs) -> AsyncIterator[object]:
        items = background_loop().aiterate(work(*args, **kwargs))
        async with closing(items):
            async for item in items:
                yield item

    return _as_twin_of(work, aiterate)


def _as_twin_of(work: Callable[P, Any], twin: Callable[P, Any]) -> Callable[P, Any]:
    functools.update_wrapper(twin, work)
    twin.__qualname__ = f"{work.__qualname__.removesuffix(work.__name__)}a{work.__name__}"
    twin.__name__ = f"a{work.__name__}"
    twin.__doc__ = f"Async twin of ``{work.__name__}``."
    return twin
