"""What a resumed tree counts of the calls that earlier runs have made."""

from __future__ import annotations

from types import SimpleNamespace

from judgetree.graphs.threads.amounts import count_earlier
from judgetree.modules.calls.record import INTERRUPTED, CallRecord
from judgetree.modules.calls.usage import CallBudget, CallMeter


def record(node: str, call_id: str, error: str = "") -> CallRecord:
    meter = CallMeter(node=node)
    meter.record(kind="chat", model="m", started=0.0, error=error)
    return {**meter.records[0], "call_id": call_id}


def test_an_answer_of_an_unfinished_thread_is_the_call_that_the_thread_holds() -> None:
    """It was counted besides, so that a round after a break granted less than without one."""
    budget = CallBudget(limit=10)
    judged, answered, paid = record("judge", "1"), record("generate", "2"), record("generate", "3")
    lost = record("judge", "4", error=INTERRUPTED)
    count_earlier([judged, answered, paid, paid, lost], [answered], SimpleNamespace(budget=budget))  # type: ignore[arg-type]
    budget.restore("unfinished", calls=1)
    assert (budget.used, budget.awaited, budget.committed) == (2, {"3"}, 3)
