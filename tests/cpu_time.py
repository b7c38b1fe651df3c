"""Bounds of time that a busy machine does not break: the CPU time of this process, not the time on the clock."""

from __future__ import annotations

import time
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def cpu_time_below(limit_s: float) -> Iterator[None]:
    """Check that what is inside takes less CPU time than a limit, all threads of this process counted.

    Raises:
        AssertionError: It took more.
    """
    started_s = time.process_time()
    yield
    taken_s = time.process_time() - started_s
    assert taken_s < limit_s, f"it took {taken_s:.3f} s of CPU time, {limit_s:g} s are allowed"
