"""What calls cost: sums over records, and the laws of the budget that a search tree shares."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgetree.modules.calls.budget import TreeBudget
from judgetree.modules.calls.record import BudgetSource
from judgetree.modules.calls.usage import CallMeter, CallRecord, total_usage
from judgetree.modules.errors import BudgetSpent

THREADS = ("", "root", "child", "grandchild")
MOVES: dict[str, Callable[[TreeBudget, str], object]] = {
    "hold": lambda budget, thread: budget.reserve_answer(thread),
    "release": lambda budget, thread: budget.release(thread),
    "take": lambda budget, thread: budget.acquire(held_by=thread),
}
histories = st.lists(st.tuples(st.sampled_from(sorted(MOVES)), st.sampled_from(THREADS)), max_size=40)


def play(budget: TreeBudget, history: list[tuple[str, str]]) -> int:
    """Calls that were granted."""
    granted = 0
    for move, thread in history:
        try:
            MOVES[move](budget, thread)
        except BudgetSpent:
            continue
        granted += move == "take"
    return granted


# --- the budget ---


@given(limit=st.integers(0, 8), history=histories)
def test_budget_never_promises_more_than_its_limit(limit: int, history: list[tuple[str, str]]) -> None:
    budget = TreeBudget(limit=limit)
    for step in range(len(history)):
        used_before = budget.used
        granted = play(budget, history[step : step + 1])
        assert budget.used == used_before + granted
        assert budget.used + len(budget.reserved_for_answers) <= limit


@given(limit=st.integers(0, 8), history=histories, thread=st.sampled_from(THREADS[1:]))
def test_budget_has_the_call_that_a_thread_holds(limit: int, history: list[tuple[str, str]], thread: str) -> None:
    budget = TreeBudget(limit=limit)
    play(budget, history)
    if budget.reserve_answer(thread):
        play(budget, [(move, other) for move, other in history if other != thread])
        used_before = budget.used
        budget.acquire(held_by=thread)
        assert budget.used == used_before + 1
        assert thread not in budget.reserved_for_answers


@given(limit=st.integers(0, 8), history=histories, thread=st.sampled_from(THREADS))
def test_budget_holds_and_releases_once(limit: int, history: list[tuple[str, str]], thread: str) -> None:
    budget = TreeBudget(limit=limit)
    play(budget, history)
    first = budget.reserve_answer(thread)
    held = set(budget.reserved_for_answers)
    assert (budget.reserve_answer(thread), budget.reserved_for_answers) == (first, held)
    budget.release(thread)
    released = (budget.used, set(budget.reserved_for_answers))
    budget.release(thread)
    assert (budget.used, budget.reserved_for_answers) == released
    assert thread not in budget.reserved_for_answers


@given(limit=st.integers(0, 8), history=histories)
def test_budget_grants_its_whole_limit(limit: int, history: list[tuple[str, str]]) -> None:
    budget = TreeBudget(limit=limit)
    granted = play(budget, history)
    for thread in THREADS:
        budget.release(thread)
    for _ in range(limit - granted):
        budget.acquire()
    with pytest.raises(BudgetSpent, match=str(limit)):
        budget.acquire()


def test_budget_that_was_overdrawn_before_a_resume_grants_nothing() -> None:
    budget = TreeBudget(limit=2, used=5)
    assert not budget.reserve_answer("root")
    with pytest.raises(BudgetSpent):
        budget.acquire(held_by="root")


def test_an_answer_that_was_paid_for_counts_once_before_and_after_its_thread_comes_to_it() -> None:
    budget = TreeBudget(limit=10, used=3, replayable={"paid": BudgetSource(held_by="sub")})
    budget.restore("sub", calls=1)
    assert budget.committed == 4
    meter = CallMeter(node="generate", budget=budget, held_by="sub")
    meter.record(kind="chat", model="m", started=0.0)
    for _ in range(2):
        meter.replay({**meter.records[0], "call_id": "paid"})
        assert (budget.committed, budget.used, budget.reserved_for_answers) == (4, 4, set())


def test_a_judgement_that_was_paid_for_takes_the_place_of_one_that_is_set_aside() -> None:
    budget = TreeBudget(limit=4, replayable={"judged": BudgetSource(set_aside_for="sub")})
    assert budget.reserve("sub", calls=4)
    budget.count_replayed("judged", of="sub")
    assert (budget.committed, budget.used, budget.reserved_for_judges["sub"]) == (4, 1, 2)


def test_calls_that_were_paid_for_leave_no_room_for_others_before_their_threads_come_to_them() -> None:
    """A note of a map_reduce counted as the call that its thread holds for its answer, and others took its place."""
    answer, judged = BudgetSource(held_by="sub"), BudgetSource(set_aside_for="sub")
    budget = TreeBudget(limit=4, used=1, replayable={"answer": answer, "judged": judged})
    budget.acquire()
    with pytest.raises(BudgetSpent):
        budget.acquire()
    budget.restore("sub", calls=2)
    with pytest.raises(BudgetSpent):
        budget.acquire()
    for call_id in ("judged", "answer"):
        budget.count_replayed(call_id, of="sub")
    assert (budget.committed, budget.used) == (4, 4)


# --- the meter ---


def test_meter_uses_the_held_call_first_and_then_the_common_ones() -> None:
    budget = TreeBudget(limit=2)
    assert budget.reserve_answer("root")
    meter = CallMeter(node="generate", budget=budget, held_by="root")
    meter.reserve()
    assert (budget.used, budget.reserved_for_answers) == (1, set())
    meter.reserve()
    with pytest.raises(BudgetSpent):
        meter.reserve()


def test_meter_without_a_budget_reserves_for_ever() -> None:
    meter = CallMeter(node="judge")
    for _ in range(1000):
        meter.reserve()
    assert meter.records == []


def test_meter_records_what_it_was_told_and_where_it_stands() -> None:
    meter = CallMeter(node="judge", chunk_id="c1")
    started = time.perf_counter() - 1.5
    meter.record(kind="chat", model="m", started=started, prompt_tokens=7, completion_tokens=3, attempts=2, error="e")
    meter.record(kind="chat", model="m", started=started)
    first, second = meter.records
    assert first.pop("seconds") == pytest.approx(1.5, abs=1)
    assert first.pop("ended_at") == pytest.approx(time.time(), abs=60)
    assert first["call_id"] != second["call_id"]
    assert {key: value for key, value in first.items() if key != "call_id"} == {
        "kind": "chat",
        "node": "judge",
        "chunk_id": "c1",
        "model": "m",
        "prompt_tokens": 7,
        "completion_tokens": 3,
        "estimated": False,
        "cut_off": False,
        "attempts": 2,
        "cached": False,
        "error": "e",
    }


# --- sums ---


def record(**changes: object) -> CallRecord:
    meter = CallMeter(node="judge")
    meter.record(kind="chat", model="m", started=time.perf_counter(), prompt_tokens=10, completion_tokens=2)
    return {**meter.records[0], "seconds": 0.5, **changes}  # type: ignore[typeddict-item]


def test_totals_of_nothing_are_zero() -> None:
    assert total_usage([]) == {"llm_calls": 0, "prompt_tokens": 0, "completion_tokens": 0, "seconds": 0.0}


def test_totals_count_failed_but_no_cached_or_embedding_calls() -> None:
    records = [record(), record(error="HTTP 500"), record(cached=True), record(kind="embedding"), record(kind="rerank")]
    assert total_usage(records) == {"llm_calls": 2, "prompt_tokens": 20, "completion_tokens": 4, "seconds": 1.0}
