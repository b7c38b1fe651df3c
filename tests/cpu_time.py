"""Bounds of CPU time for any machine: one that is busy breaks none, and a slow one gets more in the same measure."""

from __future__ import annotations

import io
import os
import time
import tokenize
from collections.abc import Iterator
from contextlib import contextmanager

_SOURCE = "def scaled(values, by=1):\n    return [value * by for value in values if value > 0]\n" * 60
_USUAL_S = 0.0021
"""CPU time in which Python 3.11 tokenizes the source where the bounds were set (Intel Xeon; 0.0022 beside 4 loops)."""


@contextmanager
def cpu_time_below(limit_s: float, *, of_programs: bool = False) -> Iterator[None]:
    """Check that what is inside takes less CPU time than a limit, all threads of this process counted.

    Args:
        limit_s: The limit on the core where the bounds were set.
        of_programs: True to count the programs that were run inside and ended, too.

    Raises:
        AssertionError: It took more, and would have there.
    """
    started_s = _used_s(of_programs)
    yield
    taken_s = as_usual(_used_s(of_programs) - started_s)
    assert taken_s < limit_s, f"it took {taken_s:.3f} s of CPU time, {limit_s:g} s are allowed"


def as_usual(taken_s: float) -> float:
    """Return what a CPU time would have been where the bounds were set, if this core is slower just now."""
    slowness = min(_tokenizing_s() for _ in range(3)) / _USUAL_S
    return taken_s / max(1.0, slowness)


def _used_s(of_programs: bool) -> float:
    used = os.times()
    return used.user + used.system + ((used.children_user + used.children_system) if of_programs else 0.0)


def _tokenizing_s() -> float:
    started_s = time.thread_time()
    for _ in tokenize.generate_tokens(io.StringIO(_SOURCE).readline):
        pass
    return time.thread_time() - started_s
