"""What a resumed tree counts of the calls that earlier runs have made."""

from __future__ import annotations

from types import SimpleNamespace

import pytest

from judgetree.graphs.threads.amounts import SavedCall, count_earlier, expected_share
from judgetree.modules.calls.budget import TreeBudget
from judgetree.modules.calls.completion import Completion
from judgetree.modules.calls.kept import CallResult
from judgetree.modules.calls.ledger import ExpectedSpend, SpendLimits
from judgetree.modules.calls.record import INTERRUPTED, BudgetSource, CallRecord, Spend
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.errors import BudgetSpent
from tests.graphs.bushy import bushy_context

TOKENS = 40
"""Tokens of each call."""


def record(node: str, call_id: str, *, error: str = "", chunk_id: str = "") -> CallRecord:
    meter = CallMeter(node=node, chunk_id=chunk_id)
    meter.record(kind="chat", model="m", started=0.0, prompt_tokens=TOKENS, error=error)
    return {**meter.records[0], "call_id": call_id}


def kept(node: str, call_id: str, taken: BudgetSource) -> CallResult:
    completion = Completion(text="", thinking="", finish_reason="stop")
    return CallResult(completion=completion, record=record(node, call_id), taken=taken)


def counted(*saved: tuple[str, CallRecord], journaled: tuple[CallResult, ...] = ()) -> TreeBudget:
    """Count records by the status of their thread."""
    budget = TreeBudget(limit=10)
    calls = [SavedCall(each, "sub", status != "finished") for status, each in saved]
    count_earlier(journaled, calls, budget)
    return budget


def test_an_answer_of_an_unfinished_thread_is_the_call_that_the_thread_holds() -> None:
    """It was counted besides, so that a round after a break granted less than without one."""
    lost = record("judge", "4", error=INTERRUPTED)
    budget = counted(
        *(("finished", record("judge", "1")), ("finished", record("generate", "2"))),
        *(("open", record("generate", "3")), ("open", lost)),
    )
    budget.restore("sub", calls=1)
    assert (budget.used, budget.replayable, budget.committed) == (2, {"3": BudgetSource(held_by="sub")}, 3)


def test_judgements_that_an_unfinished_thread_has_are_not_set_aside_again() -> None:
    """They counted twice until all its chunks were judged, so that a chunk beyond those reserved was refused."""
    budget = counted(("open", record("judge", "1")), ("open", record("judge", "2")))
    budget.restore("sub", calls=4)
    assert (budget.used, budget.reserved_for_judges["sub"], budget.committed) == (2, 1, 4)
    budget.restore("sub", calls=2)
    assert budget.reserved_for_judges["sub"] == 0


def test_a_round_decides_on_a_started_sub_run_without_the_call_that_it_holds() -> None:
    """Its own call took room from it, where it had started and its grant was not saved."""
    budget = TreeBudget(limit=4, used=1)
    budget.restore("sub", calls=1)
    assert budget.reserve("sub", 3)
    assert budget.committed == 4


def test_of_the_notes_and_the_answer_of_an_unfinished_thread_one_is_the_call_that_it_holds() -> None:
    budget = counted(*(("open", record("generate", call_id)) for call_id in "123"))
    assert (budget.used, budget.replayable) == (2, {"3": BudgetSource(held_by="sub")})


def test_a_note_that_was_taken_freely_is_used() -> None:
    """It was taken for the answer of its thread, which had none yet, so that one call too many was left."""
    note = kept("generate", "1", BudgetSource())
    assert counted(("open", note.record), journaled=(note,)).used == 1


def test_an_answer_that_failed_below_an_unfinished_thread_is_used() -> None:
    """The records of a failed answer are in the chunk that asked for it, whose thread does not make it again."""
    failed = record("generate", "1", error="the model failed", chunk_id="c")
    noted = record("generate", "2", chunk_id="c")
    assert counted(("open", failed), ("open", noted)).used == 2


def test_calls_that_only_the_journal_has_count_once_their_threads_come_to_them() -> None:
    judged, note, answer = BudgetSource(set_aside_for="sub"), BudgetSource(), BudgetSource(held_by="sub")
    journaled = (kept("judge", "1", judged), kept("generate", "2", note), kept("generate", "3", answer))
    budget = counted(("finished", record("judge", "1")), journaled=journaled)
    assert (budget.used, budget.replayable) == (2, {"3": answer})


def test_calls_that_a_search_does_not_come_to_again_count_against_its_limit() -> None:
    """Killed with durability=exit, a search took another way once it was resumed, and exceeded its limit by a third."""
    budget = counted(journaled=tuple(kept("judge", str(each), BudgetSource(set_aside_for="left")) for each in range(8)))
    budget.reserve_answer("root")
    assert not budget.reserve("other", 2)
    assert budget.reserve("left", 2)
    budget.restore("granted before", 3)
    with pytest.raises(BudgetSpent):
        budget.acquire(judged_in="granted before")


def test_an_answer_is_kept_for_a_sub_run_of_which_judgements_alone_are_journaled() -> None:
    """Notes of another sub-run took its call, so that the limit was exceeded by one."""
    budget = counted(
        journaled=tuple(kept("judge", str(each), BudgetSource(set_aside_for="begun")) for each in range(8))
    )
    budget.reserve_answer("root")
    with pytest.raises(BudgetSpent):
        budget.acquire()


def test_tokens_that_were_paid_for_count_once_before_and_after_their_thread_comes_to_them() -> None:
    """They counted besides the share that is planned for the thread, so that a round granted less."""
    budget = TreeBudget(limit=10, ledger=SpendLimits(max_tree_tokens=1000))
    ledger = budget.ledger
    journaled = (
        kept("judge", "1", BudgetSource(set_aside_for="sub")),
        kept("generate", "2", BudgetSource(held_by="sub")),
    )
    count_earlier(journaled, (), budget)
    assert ledger.committed.tokens == 0
    budget.restore("sub", calls=2, share=ExpectedSpend(Spend(tokens=100), Spend(tokens=50)))
    for call_id, committed in (("1", 100), ("2", 100), ("2", 100)):
        budget.count_replayed(call_id, of="sub")
        assert ledger.committed.tokens == committed
    budget.release("sub")
    assert ledger.committed.tokens == 2 * TOKENS


def test_a_sub_run_is_expected_to_use_the_same_after_a_break() -> None:
    """The estimate of an interrupted judgement counted into the mean, so that a resumed round granted less."""
    services = bushy_context("breadth", max_tree_tokens=1000)
    budget = TreeBudget(limit=10, ledger=SpendLimits(max_tree_tokens=1000))
    context = SimpleNamespace(budget=budget, services=services)
    interrupted = {**record("judge", "2", error=INTERRUPTED), "completion_tokens": 256}
    shares = [
        expected_share({"query": "q", "usage": usage}, context, calls=3)  # type: ignore[typeddict-item, arg-type]
        for usage in ([record("judge", "1")], [record("judge", "1"), interrupted])
    ]
    assert shares[0] == shares[1]
