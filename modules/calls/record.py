"""One model call as plain data: its node, its usage, and the reserved call whose place it took."""

from __future__ import annotations

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
