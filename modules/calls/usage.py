"""The accounting of model calls: one record a call, and the budget that a whole search tree shares."""

from __future__ import annotations

import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, MutableMapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from typing_extensions import TypedDict

from ..errors import BudgetSpent
from .record import CallKind, CallRecord

if TYPE_CHECKING:
    from .completion import Completion
    from .journal import CallSlot, ThreadCalls
    from .messages import CallOptions, Message

_MOST_TOKENS = 1_000_000_000
"""More than any model reads or writes; a larger count is an error of the endpoint."""


def keep_known_usage(reply: MutableMapping[str, object]) -> None:
    """Replace a reply's ``usage`` by its two counts and their sum, or by None where a count is impossible.

    Strings, negative numbers, fractions, 2**64 and 1e30 are impossible counts; the call's usage is then unknown.
    """
    if reply.get("usage") is None:
        return
    usage = reply["usage"]
    known = usage if isinstance(usage, dict) else {}
    prompt, completion = _count(known.get("prompt_tokens")), _count(known.get("completion_tokens"))
    if prompt is None or completion is None:
        reply["usage"] = None
    else:
        total = prompt + completion
        reply["usage"] = {"prompt_tokens": prompt, "completion_tokens": completion, "total_tokens": total}


def _count(value: object) -> int | None:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    if not is_number or not 0 <= value <= _MOST_TOKENS or value != int(value):  # type: ignore[operator, call-overload]
        return None
    return int(value)  # type: ignore[call-overload, no-any-return]


__all__ = ["CallBudget", "CallKind", "CallMeter", "CallRecord", "UsageTotals", "sum_usage", "total_usage"]


class UsageTotals(TypedDict):
    """Sums over call records; ``seconds`` adds up the calls' own times, which overlap when calls run in parallel."""

    llm_calls: int
    prompt_tokens: int
    completion_tokens: int
    seconds: float


def total_usage(records: Iterable[CallRecord]) -> UsageTotals:
    """Sum the chat calls that were made: failed ones count, cached ones do not."""
    totals = UsageTotals(llm_calls=0, prompt_tokens=0, completion_tokens=0, seconds=0.0)
    for record in records:
        if record["kind"] != "chat" or record["cached"]:
            continue
        totals["llm_calls"] += 1
        totals["prompt_tokens"] += record["prompt_tokens"]
        totals["completion_tokens"] += record["completion_tokens"]
        totals["seconds"] += record["seconds"]
    return totals


def sum_usage(parts: Iterable[UsageTotals]) -> UsageTotals:
    """Add up totals; without any, all sums are zero."""
    totals = total_usage(())
    for part in parts:
        totals["llm_calls"] += part["llm_calls"]
        totals["prompt_tokens"] += part["prompt_tokens"]
        totals["completion_tokens"] += part["completion_tokens"]
        totals["seconds"] += part["seconds"]
    return totals


@dataclass(kw_only=True)
class CallBudget:
    """The model calls that one search tree may still make, shared by all of its threads.

    A call is reserved before it is made. Every started run holds one call for its answer, so that a tree with a spent
    budget can still answer from its evidence. A sub-run has the calls of its judges set aside as well, so that what
    runs beside it takes none of them, and a tree does not depend on timing.
    """

    limit: int
    used: int = 0
    held: set[str] = field(default_factory=set)
    """Threads that hold a call for their answer."""
    set_aside: Counter[str] = field(default_factory=Counter)
    """Calls for the judges of threads, by thread id."""

    @property
    def committed(self) -> int:
        """Calls that were made, or are held or set aside."""
        return self.used + len(self.held) + self.set_aside.total()

    def reserve(self, thread_id: str, calls: int) -> bool:
        """Reserve the calls of a whole sub-run, one of which is for its answer; False if fewer are left."""
        if self.committed + calls > self.limit:
            return False
        self.restore(thread_id, calls)
        return True

    def restore(self, thread_id: str, calls: int) -> None:
        """Reserve the calls of a sub-run again that an earlier run reserved, even where fewer are left.

        The calls that it has made since then are counted as used, but will not be made again.
        """
        self.held.add(thread_id)
        self.set_aside[thread_id] = calls - 1

    def judged(self, thread_id: str) -> None:
        """Free the calls that are still set aside for the judges of a thread."""
        self.set_aside.pop(thread_id, None)

    def hold(self, thread_id: str) -> bool:
        """Set a call aside for the answer of ``thread_id``; False when none is left. A second hold has no effect."""
        if thread_id in self.held:
            return True
        if self.committed >= self.limit:
            return False
        self.held.add(thread_id)
        return True

    def release(self, thread_id: str) -> None:
        """Release all calls that are reserved for ``thread_id``."""
        self.held.discard(thread_id)
        self.judged(thread_id)

    def take(self, *, held_by: str = "", judged_in: str = "") -> None:
        """Reserve one call before it is made.

        It is the call held by ``held_by``, or one set aside for the judges of ``judged_in``, if there is one.

        Raises:
            BudgetSpent: No call is left.
        """
        if held_by in self.held:
            self.held.remove(held_by)
        elif self.set_aside.get(judged_in, 0):
            self.set_aside[judged_in] -= 1
        elif self.committed >= self.limit:
            raise BudgetSpent(f"The budget of {self.limit} model calls for this question is spent.")
        self.used += 1


@dataclass(kw_only=True)
class CallMeter:
    """The accounting of one graph node's model calls: reserves each in the budget and keeps its record.

    >>> meter = CallMeter(node="judge")
    >>> meter.reserve()  # raises BudgetSpent where the tree may make no more calls
    >>> meter.record(kind="chat", model="mine", started=0.0, prompt_tokens=7, completion_tokens=2)
    >>> meter.records[0]["prompt_tokens"]
    7
    """

    node: str
    chunk_id: str = ""
    budget: CallBudget | None = None
    held_by: str = ""
    """Thread whose held call the first call may use."""
    judged_in: str = ""
    """Thread whose judges the calls are of."""
    calls: ThreadCalls | None = None
    """The journal of the thread's calls; None without one."""
    records: list[CallRecord] = field(default_factory=list)
    claimed: Counter[bytes] = field(default_factory=Counter)
    """Number of calls made so far, by request."""
    begin: Callable[[], Awaitable[None]] | None = None
    """Journals the call; awaited once, before its first request. None without a journal."""

    def holds(self, request: Callable[[], bytes]) -> bool:
        """Return whether the journal has the reply to the next call of a request, which will then not be made.

        ``request`` computes its key, and is called only if the journal held calls when the run began.
        """
        if self.calls is None or not self.calls.known:
            return False
        key = request()
        return self.calls.slot(self.node, self.chunk_id, key, self.claimed[key]).call.kept is not None

    def claim(self, request: bytes) -> CallSlot | None:
        """Return the journal's entry for the next call of a request; None without a journal."""
        if self.calls is None:
            return None
        slot = self.calls.slot(self.node, self.chunk_id, request, self.claimed[request])
        self.claimed[request] += 1
        return slot

    async def about_to_send(self) -> None:
        """Journal the call, before the first of its attempts."""
        begin, self.begin = self.begin, None
        if begin is not None:
            await begin()

    def reserve(self) -> None:
        """Reserve the next call.

        Raises:
            BudgetSpent: The tree's budget is used up.
        """
        if self.budget is not None:
            self.budget.take(held_by=self.held_by, judged_in=self.judged_in)

    def record(
        self,
        *,
        kind: CallKind,
        model: str,
        started: float,
        prompt_tokens: int = 0,
        completion_tokens: int = 0,
        attempts: int = 1,
        cut_off: bool = False,
        error: str = "",
    ) -> None:
        """Append the record of a call that ended now; ``started`` is its ``time.perf_counter()``."""
        self.records.append(
            CallRecord(
                call_id=uuid.uuid4().hex,
                kind=kind,
                node=self.node,
                chunk_id=self.chunk_id,
                model=model,
                prompt_tokens=prompt_tokens,
                completion_tokens=completion_tokens,
                estimated=False,
                seconds=round(time.perf_counter() - started, 4),
                attempts=attempts,
                cached=False,
                cut_off=cut_off,
                error=error,
                ended_at=round(time.time(), 4),
            )
        )

    def transcribe(self, messages: Sequence[Message], options: CallOptions, reply: Completion | None) -> None:
        """Keep the texts of the newest record's call, where calls are recorded; a chat model calls it after ``record``.

        ``reply`` is None for a failed call. It returns at once.
        """
        if self.calls is not None and self.calls.transcripts is not None and self.records:
            self.calls.transcripts.keep(self.records[-1], messages, options, reply)

    def record_cached(self, paid: CallRecord) -> None:
        """Append the record of a call that the cache answered, with the usage in ``paid``."""
        own = {"call_id": uuid.uuid4().hex, "node": self.node, "chunk_id": self.chunk_id, "cached": True}
        own["ended_at"] = round(time.time(), 4)
        self.records.append(CallRecord(**{**paid, **own}))  # type: ignore[typeddict-item]
