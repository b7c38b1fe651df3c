"""One model call as plain data: its node, its usage, the reserved call whose place it took, and sums of calls."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Literal, NotRequired

from typing_extensions import TypedDict

from ..caveats.kinds import CAVEAT_KINDS, CaveatKind, counted

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
    """One model call as plain data, as it is saved in a thread's checkpoints.

    An attempt that failed and may be billed has a record of its own; attempts that were refused are only counted, in
    ``attempts`` of the next record.
    """

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
    """Wall time from the first attempt since the record before it, back-off included; for a cached call, that of the
    paid one."""
    attempts: int
    """Number of the attempt that it is about, from 1; refused attempts before it count."""
    cached: bool
    """True for a call that the cache answered: tokens and seconds are those of the paid call."""
    cut_off: bool
    """True where the endpoint ended the reply before the model did, for its length or by a filter."""
    error: str
    """``""`` for a call that succeeded."""
    ended_at: NotRequired[float]
    """Unix time at which the call ended, or the cache answered it; missing for an interrupted call."""
    caveats: NotRequired[list[CaveatKind]]
    """Why the reply is worse than it looks, besides ``cut_off``; missing where it is not. See ``caveats_of``."""
    refusal: NotRequired[str]
    """What a model that declined to answer gave as its reason, shortened; missing where it did not."""
    cached_prompt_tokens: NotRequired[int]
    """Prompt tokens that the endpoint says it read from its own cache; missing where it says none."""
    unreported_prompt_tokens: NotRequired[int]
    """Tokens that the prompt has at least beyond those that the endpoint reports; missing where it reports enough."""
    unreported_completion_tokens: NotRequired[int]
    """The same of the reply."""


def counted_tokens(record: CallRecord) -> tuple[int, int]:
    """Return the tokens of prompt and reply as limits count them: as reported, but no fewer than the texts have."""
    return (
        record["prompt_tokens"] + record.get("unreported_prompt_tokens", 0),
        record["completion_tokens"] + record.get("unreported_completion_tokens", 0),
    )


def caveats_of(record: CallRecord) -> tuple[CaveatKind, ...]:
    """Return why the reply of a call is worse than it looks, in the order of ``CAVEAT_KINDS``; empty where it is not.

    Records of older versions have ``cut_off`` alone.
    """
    found = set(record.get("caveats", ()))
    if record["cut_off"] and "filtered" not in found:
        found.add("reply_cut")
    return tuple(kind for kind in CAVEAT_KINDS if kind in found)


def count_caveats(records: Iterable[CallRecord]) -> dict[CaveatKind, int]:
    """Count the caveats of calls by kind, in the order of ``CAVEAT_KINDS``; empty where replies are as they look."""
    return counted(kind for record in records for kind in caveats_of(record))


def is_declined(answer: str, records: Iterable[CallRecord]) -> bool:
    """Return whether an answer is the reason of a model that declined to answer, by the records of its calls."""
    return any("refusal" in record and answer.startswith(record["refusal"]) for record in records)


@dataclass(frozen=True)
class BudgetSource:
    """A call that was taken from the budget, and whose it was; ``""`` for a call of all."""

    held_by: str = ""
    set_aside_for: str = ""


UNRESERVED = BudgetSource()
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


@dataclass(frozen=True, slots=True)
class Spend:
    """What calls use, or are expected to use: the unit of every limit.

    >>> Spend(calls=1, tokens=10, usd=0.5) + Spend(calls=1, tokens=2, usd=0.25)
    Spend(calls=2, tokens=12, usd=0.75, unpriced=0, seconds=0.0, estimated=0)
    """

    calls: int = 0
    """Chat calls, each attempt that may be billed by itself."""
    tokens: int = 0
    """Prompt and completion tokens of chat calls."""
    usd: float = 0.0
    """US dollars of all calls with a known price."""
    unpriced: int = 0
    """Calls that cost something unknown, which ``usd`` lacks."""
    seconds: float = 0.0
    """Run time; 0 where nothing measures it."""
    estimated: int = 0
    """Calls whose tokens are estimates and cost something."""

    def __add__(self, other: Spend) -> Spend:
        return Spend(
            self.calls + other.calls,
            self.tokens + other.tokens,
            self.usd + other.usd,
            self.unpriced + other.unpriced,
            self.seconds + other.seconds,
            self.estimated + other.estimated,
        )

    def __sub__(self, other: Spend) -> Spend:
        return Spend(
            self.calls - other.calls,
            self.tokens - other.tokens,
            self.usd - other.usd,
            self.unpriced - other.unpriced,
            self.seconds - other.seconds,
            self.estimated - other.estimated,
        )

    def at_least(self, other: Spend) -> Spend:
        """Return the larger of both in each respect."""
        return Spend(
            max(self.calls, other.calls),
            max(self.tokens, other.tokens),
            max(self.usd, other.usd),
            max(self.unpriced, other.unpriced),
            max(self.seconds, other.seconds),
            max(self.estimated, other.estimated),
        )

    def times(self, factor: float) -> Spend:
        """Return the amount of so many such things."""
        return Spend(
            round(self.calls * factor),
            round(self.tokens * factor),
            self.usd * factor,
            round(self.unpriced * factor),
            self.seconds * factor,
            round(self.estimated * factor),
        )


NOTHING = Spend()
