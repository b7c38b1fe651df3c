"""What model calls cost: one record a call, and the budget that a whole search tree shares."""

from __future__ import annotations

import time
import uuid
from collections.abc import Iterable
from dataclasses import dataclass, field
from typing import Literal, TypedDict

from .errors import BudgetSpent

CallKind = Literal["chat", "embedding", "rerank"]


class CallRecord(TypedDict):
    """One model call as plain data, as it is saved in a thread's checkpoints."""

    call_id: str
    kind: CallKind
    node: str
    """Graph node that made the call."""
    chunk_id: str
    """Chunk the call was about; ``""`` where it was about none."""
    model: str
    prompt_tokens: int
    completion_tokens: int
    seconds: float
    """Wall time from the first attempt to the answer, back-off included."""
    attempts: int
    """1 when the first attempt succeeded."""
    cached: bool
    error: str
    """``""`` for a call that succeeded."""


class UsageTotals(TypedDict):
    """Sums over call records; ``seconds`` adds up the calls' own times, which overlap when calls run in parallel."""

    llm_calls: int
    prompt_tokens: int
    completion_tokens: int
    seconds: float


def total_usage(records: Iterable[CallRecord]) -> UsageTotals:
    """Sum chat calls that were really made: failed ones count, cached ones do not."""
    totals = UsageTotals(llm_calls=0, prompt_tokens=0, completion_tokens=0, seconds=0.0)
    for record in records:
        if record["kind"] != "chat" or record["cached"]:
            continue
        totals["llm_calls"] += 1
        totals["prompt_tokens"] += record["prompt_tokens"]
        totals["completion_tokens"] += record["completion_tokens"]
        totals["seconds"] += record["seconds"]
    return totals


@dataclass(kw_only=True)
class CallBudget:
    """Model calls that one search tree may still make; shared by all of its threads.

    A call is reserved before it is made. ``hold`` sets calls aside for later (the answer of every open run), so that
    a tree whose budget is spent can still answer from what it has.
    """

    limit: int
    used: int = 0
    held: int = 0
    refused: int = 0
    """How often a reservation was refused; above 0 the tree was cut short."""

    def hold(self) -> bool:
        """Set one call aside; False, and nothing set aside, when none is left."""
        if self.used + self.held >= self.limit:
            self.refused += 1
            return False
        self.held += 1
        return True

    def release(self) -> None:
        """Give a held call back unused."""
        self.held -= 1

    def take(self, *, from_hold: bool = False) -> None:
        """Reserve one call that is about to be made.

        Raises:
            BudgetSpent: None is left.
        """
        if from_hold and self.held:
            self.held -= 1
        elif self.used + self.held >= self.limit:
            self.refused += 1
            raise BudgetSpent(f"The budget of {self.limit} model calls for this question is spent.")
        self.used += 1


@dataclass(kw_only=True)
class CallMeter:
    """Stands between one graph node and the models: asks the budget before each call and keeps its record."""

    node: str
    chunk_id: str = ""
    budget: CallBudget | None = None
    from_hold: bool = False
    """Take the first call from the calls held for it."""
    records: list[CallRecord] = field(default_factory=list)

    def reserve(self) -> None:
        """Reserve the next call.

        Raises:
            BudgetSpent: The tree's budget is used up.
        """
        if self.budget is not None:
            self.budget.take(from_hold=self.from_hold)
            self.from_hold = False

    def record(
        self,
        *,
        kind: CallKind,
        model: str,
        started: float,
        prompt_tokens: int = 0,
        completion_tokens: int = 0,
        attempts: int = 1,
        cached: bool = False,
        error: str = "",
    ) -> None:
        """Keep the record of a call that ended now; ``started`` is its ``time.perf_counter()``."""
        self.records.append(
            CallRecord(
                call_id=uuid.uuid4().hex,
                kind=kind,
                node=self.node,
                chunk_id=self.chunk_id,
                model=model,
                prompt_tokens=prompt_tokens,
                completion_tokens=completion_tokens,
                seconds=round(time.perf_counter() - started, 4),
                attempts=attempts,
                cached=cached,
                error=error,
            )
        )
