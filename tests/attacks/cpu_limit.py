"""A limit of CPU time, which ends a call that would run for ever, such as that of a pattern."""

from __future__ import annotations

import gc
import signal
import time
from collections.abc import Callable
from types import FrameType

from tests.cpu_time import as_usual


class TookTooLong(Exception):
    """A call took more CPU time than it may."""


def _end(_signal: int, _frame: FrameType | None) -> None:
    raise TookTooLong


def cpu_seconds(call: Callable[[], object], *, at_most_s: float) -> float:
    """Return the CPU time of a call, or ``at_most_s`` where it was ended, which the engine of patterns allows.

    Other threads, and the collection of what other tests have left, do not count.

    Raises:
        Exception: What the call raises.
    """
    before = signal.signal(signal.SIGVTALRM, _end)
    gc.collect(0)
    gc.disable()
    start = time.thread_time()
    try:
        signal.setitimer(signal.ITIMER_VIRTUAL, at_most_s)
        call()
    except TookTooLong:
        return at_most_s
    finally:
        signal.setitimer(signal.ITIMER_VIRTUAL, 0)
        signal.signal(signal.SIGVTALRM, before)
        gc.enable()
    return time.thread_time() - start


def least_cpu_seconds(call: Callable[[], object], *, allowed_s: float) -> float:
    """Return the CPU time of a call: where it is over ``allowed_s``, the least of five, less what a slow core adds."""
    for _ in range(5):
        took = cpu_seconds(call, at_most_s=100 * allowed_s)
        if took > allowed_s:
            took = as_usual(took)
        if took <= allowed_s:
            break
    return took
