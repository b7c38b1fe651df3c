"""One model call as plain data: its node, its usage, and the reserved call whose place it took."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, NotRequired

from typing_extensions import TypedDict

CallKind = Literal["chat", "embedding", "rerank"]
_MOST_TOKENS = 1_000_000_000
"""More than any model reads or writes; a larger count is an error of the endpoint."""

INTERRUPTED = "the process ended before the reply was kept"
"""Error of a call that was in flight when its process was killed; it may have been billed."""


CANCELLED = "cancelled while it was made"
"""Error of a call that was cancelled after it had been sent; it may be billed."""


_STEP_S = 1e-4
"""Least distance of two readings: records are rounded to this."""
_CORRECTED_S = 600.0
"""A clock that goes back by more was wrong before, and is believed."""


class CallRecord(TypedDict):
    """One model call as plain data, as it is saved in a thread's checkpoints."""

    call_id: str
    kind: CallKind
    node: str
    """Graph node that made the call."""
    chunk_id: str
    """Chunk the call was about; ``""`` for none."""
    model: str
    prompt_tokens: int
    completion_tokens: int
    estimated: bool
    """True where the endpoint reported no tokens, so that both counts are estimates from the texts."""
    seconds: float
    """Wall time from the first attempt to the answer, back-off included; for a cached call, that of the paid one."""
    attempts: int
    """1 when the first attempt succeeded."""
    cached: bool
    """True for a call that the cache answered: tokens and seconds are those of the paid call."""
    cut_off: bool
    """True where the endpoint ended the reply before the model did, for its length or by a filter."""
    error: str
    """``""`` for a call that succeeded."""
    ended_at: NotRequired[float]
    """Unix time at which the call ended, or the cache answered it; missing for an interrupted call."""


@dataclass(frozen=True)
class Taken:
    """A call that was taken from the budget, and whose it was; ``""`` for a call of all."""

    held_by: str = ""
    set_aside_for: str = ""


TAKEN_FREELY = Taken()
"""A call for which nothing was reserved."""


def possible_count(value: object) -> int | None:
    """Return a number of tokens that a model may read or write; None for text, fractions, -1, NaN, 2**64 and 1e30.

    >>> possible_count(12.0), possible_count(-1), possible_count(10**30), possible_count(True)
    (12, None, None, None)
    """
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= _MOST_TOKENS or value != int(value):  # type: ignore[operator, call-overload]
        return None
    return int(value)  # type: ignore[call-overload, no-any-return]


class RisingClock:
    """Unix time in seconds, later at each reading, so that records of a process keep their order and stay distinct.

    Only a step back of over ten minutes is followed.

    >>> clock = RisingClock(iter([8000.0, 8000.0, 7940.0, 8001.0, 5000.0]).__next__)
    >>> [clock() for _ in range(5)]
    [8000.0, 8000.0001, 8000.0002, 8001.0, 5000.0]
    """

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        """Read ``clock``, which returns Unix time in seconds."""
        self._clock = clock
        self._last_s = 0.0
        self._lock = threading.Lock()

    def __call__(self) -> float:
        """Return the present time, rounded to 0.1 ms."""
        with self._lock:
            now_s, next_s = self._clock(), self._last_s + _STEP_S
            self._last_s = round(now_s if now_s < next_s - _CORRECTED_S else max(now_s, next_s), 4)
            return self._last_s


recorded_now = RisingClock()
"""The clock of the records of this process."""
