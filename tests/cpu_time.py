"""Bounds of time that a busy machine does not break: the CPU time of this process, not the time on the clock."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager

_LOOP = 300_000
_USUAL_S = 0.007
"""CPU time of the loop on a fast core that no other process shares; one of 2 GHz takes .02 s."""


def slowness() -> float:
    """Return how many times longer than usual a loop takes now, at least 1: a shared core does less in a second."""
    started_s, total = time.thread_time(), 0
    for number in range(_LOOP):
        total += number
    return max(1.0, (time.thread_time() - started_s) / _USUAL_S)


@contextmanager
def cpu_time_below(limit_s: float) -> Iterator[None]:
    """Check that what is inside takes less CPU time than a limit on a usual core, all threads of this process counted.

    Raises:
        AssertionError: It took more.
    """
    started_s = time.process_time()
    yield
    taken_s = time.process_time() - started_s
    if taken_s >= limit_s:
        taken_s /= slowness()
    assert taken_s < limit_s, f"it took {taken_s:.3f} s of CPU time, {limit_s:g} s are allowed"
