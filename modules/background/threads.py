"""Threads for blocking work of event loops, where a call that hangs holds neither other calls nor the process's end.

The threads of ``concurrent.futures`` are joined when Python exits, and a call that hangs holds its place for as long as
it lasts: six searches of a database that answers nothing would keep all other blocking work of a small machine waiting.
"""

from __future__ import annotations

import atexit
import os
import threading
import time
import weakref
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future, ThreadPoolExecutor
from typing import Any, ParamSpec, TypeVar

T = TypeVar("T")
P = ParamSpec("P")

HANGS_AFTER_S = 2.0
"""Seconds after which a call no longer counts among those that run at once, so that others run beside it."""
MOST_THREADS = 500
"""Most threads of a pool, those with calls that hang included."""
_IDLE_S = 30.0
LAST_WORDS_S = 2.0
"""Seconds that calls still have when Python exits."""


class SpareThreads(ThreadPoolExecutor):
    """A pool of daemon threads, for ``loop.set_default_executor`` and ``run_in_executor``.

    As many calls run at once as in a pool of ``concurrent.futures``. A call that takes longer than ``hangs_after_s`` is
    given a substitute. Python's end waits two seconds for calls that run.

    >>> SpareThreads().submit(lambda: threading.current_thread().daemon).result()
    True
    """

    def __init__(
        self, at_once: int | None = None, *, name: str = "spare", hangs_after_s: float = HANGS_AFTER_S
    ) -> None:
        """``at_once`` is the number of calls that run at the same time, by default as asyncio's own pool has it."""
        self._at_once = at_once or min(32, (os.cpu_count() or 1) + 4)
        super().__init__(self._at_once, name)  # which starts no thread before its own ``submit``
        self._name = name
        self._hangs_after_s = hangs_after_s
        self._waiting: deque[Callable[[], None]] = deque()
        self._running: dict[threading.Thread, float] = {}
        self._idle = 0
        self._threads_now = 0
        self._looks_again = False
        self._is_closed = False
        self._lock = threading.Lock()
        self._called = threading.Condition(self._lock)
        self._ended = threading.Condition(self._lock)
        _POOLS.add(self)

    def submit(self, call: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> Future[T]:
        """Run a call in a thread, as soon as one is free.

        Raises:
            RuntimeError: The pool was shut down.
        """
        outcome: Future[T] = Future()
        with self._lock:
            if self._is_closed:
                raise RuntimeError("cannot schedule new futures after shutdown")
            self._waiting.append(lambda: _settle(outcome, lambda: call(*args, **kwargs)))
            self._supply()
            self._called.notify()
        return outcome

    def shutdown(self, wait: bool = True, *, cancel_futures: bool = False) -> None:
        """Take no more calls; what runs is not waited for, since it may hang."""
        with self._lock:
            self._is_closed = True
            if cancel_futures:
                self._waiting.clear()
            self._called.notify_all()

    def wait_until_idle(self, timeout_s: float) -> bool:
        """Wait until no call runs or waits; False if one does after ``timeout_s`` seconds."""
        with self._lock:
            return self._ended.wait_for(lambda: not self._running and not self._waiting, timeout_s)

    def _supply(self) -> None:
        """Start a thread if a call waits for one and another may run; the lock is held."""
        if len(self._waiting) <= self._idle:
            return
        now = time.monotonic()
        counted = sum(now - began < self._hangs_after_s for began in self._running.values()) + self._idle
        if counted < self._at_once and self._threads_now < MOST_THREADS:
            self._threads_now += 1
            self._idle += 1
            threading.Thread(target=self._serve, name=f"{self._name}-{self._threads_now}", daemon=True).start()
        elif not self._looks_again:
            self._looks_again = True
            later = threading.Timer(self._hangs_after_s, self._look_again)
            later.daemon = True
            later.start()

    def _look_again(self) -> None:
        with self._lock:
            self._looks_again = False
            before = -1
            while before != self._threads_now:  # one more for each call that may run
                before = self._threads_now
                self._supply()

    def _serve(self) -> None:
        me = threading.current_thread()
        while (work := self._next(me)) is not None:
            work()
            del work  # its arguments and result may be large
            with self._lock:
                del self._running[me]
                self._idle += 1
                self._ended.notify_all()

    def _next(self, me: threading.Thread) -> Callable[[], None] | None:
        with self._lock:
            self._called.wait_for(lambda: self._waiting or self._is_closed, _IDLE_S)
            self._idle -= 1
            if not self._waiting:
                self._threads_now -= 1
                return None
            self._running[me] = time.monotonic()
            return self._waiting.popleft()


def _settle(outcome: Future[Any], call: Callable[[], Any]) -> None:
    if not outcome.set_running_or_notify_cancel():
        return
    try:
        try:
            result = call()
        except StopIteration as error:  # an asyncio future takes none, so that who awaits it would wait for ever
            raise RuntimeError(f"a function raised {error!r}") from error
    except BaseException as error:  # noqa: BLE001 - it is raised where the outcome is awaited
        outcome.set_exception(error)
        del outcome, call  # the error's traceback has this frame: together they would be a cycle
    else:
        outcome.set_result(result)


_POOLS: weakref.WeakSet[SpareThreads] = weakref.WeakSet()
_PID = os.getpid()


@atexit.register
def _wait_for_calls() -> None:
    """Let calls that run come to their end, which is short unless they hang."""
    if os.getpid() != _PID:  # a forked child has no threads of its parent
        return
    until = time.monotonic() + LAST_WORDS_S
    for pool in list(_POOLS):
        pool.wait_until_idle(max(until - time.monotonic(), 0.0))
