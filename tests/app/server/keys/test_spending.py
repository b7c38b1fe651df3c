"""Budgets of a day: reserved before a run, corrected after it, and never overspent by workers together."""

from __future__ import annotations

import asyncio
from concurrent.futures import ThreadPoolExecutor

import pytest

from judgetree.app.server.keys.key import NO_LIMITS, Budget
from judgetree.app.server.keys.spending import DailyBudgetExhausted, KeyLedger
from judgetree.app.server.serving.admission import KeyDay
from judgetree.app.server.serving.caller import Caller
from judgetree.modules.calls.prices import load_prices
from judgetree.modules.calls.record import Spend
from tests.app.server.keys.conftest import OpenTables

NOON = 1_790_000_000 // 86_400 * 86_400 + 43_200.0


def test_workers_together_reserve_no_more_than_the_budget(tables: OpenTables) -> None:
    workers = [KeyLedger(tables(), clock=lambda: NOON) for _ in range(4)]

    def reserve(number: int) -> bool:
        try:
            workers[number % 4].reserve("k1", Budget(usd=1.0), Budget(usd=0.1))
        except DailyBudgetExhausted:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        admitted = sum(pool.map(reserve, range(40)))
    assert admitted in {9, 10}  # ten tenths may add up to a little more than one
    assert workers[0].used("k1").usd == pytest.approx(admitted / 10)


def test_what_a_run_did_not_use_is_free_again(tables: OpenTables) -> None:
    ledger = KeyLedger(tables(), clock=lambda: NOON)
    day, question = Budget(tokens=1000, seconds=100), Budget(tokens=800, seconds=50)
    run = ledger.reserve("k1", day, question)
    with pytest.raises(
        DailyBudgetExhausted, match="800 of 1000 tokens are used or held for questions that are being answered"
    ):
        ledger.reserve("k1", day, question)
    ledger.reserve("k2", day, question)
    ledger.settle(run, Spend(usd=0.5, tokens=100, seconds=7.5))
    assert ledger.used("k1") == Spend(usd=0.5, tokens=100, seconds=7.5)
    ledger.reserve("k1", day, question)


@pytest.mark.parametrize("turn_id", ["", "t1"])
def test_a_spent_day_renews_at_midnight_and_a_held_one_soon(tables: OpenTables, turn_id: str) -> None:
    ledger = KeyLedger(tables(), clock=lambda: NOON)
    day, question = Budget(tokens=1000), Budget(tokens=800)
    run = ledger.reserve("k1", day, question)
    with pytest.raises(DailyBudgetExhausted) as held:
        ledger.reserve("k1", day, question)
    assert (held.value.is_held, held.value.renews_in_s < 60) == (True, True)
    ledger.settle(run, Spend(tokens=300), turn_id=turn_id)
    with pytest.raises(DailyBudgetExhausted, match=r"300 of 1000 tokens are used\. It renews at .*T00:00") as spent:
        ledger.reserve("k1", day, question)
    assert (spent.value.is_held, spent.value.renews_in_s) == (False, 43_200)


def test_a_new_day_renews_the_budget(tables: OpenTables) -> None:
    now = [NOON]
    ledger = KeyLedger(tables(), clock=lambda: now[0])
    ledger.settle(ledger.reserve("k1", Budget(tokens=10), NO_LIMITS), Spend(tokens=10))
    with pytest.raises(DailyBudgetExhausted):
        ledger.reserve("k1", Budget(tokens=10), NO_LIMITS)
    now[0] += 43_200
    ledger.reserve("k1", Budget(tokens=10), NO_LIMITS)
    now[0] += 40 * 86_400
    ledger.reserve("k1", Budget(tokens=10), NO_LIMITS)
    assert tables().read("SELECT COUNT(*) FROM key_use") == [(1,)]  # old days are forgotten


def test_a_turn_is_charged_once_over_all_its_runs(tables: OpenTables) -> None:
    ledger = KeyLedger(tables(), clock=lambda: NOON)
    for total in (300, 500, 500):  # cancelled, resumed, and asked for again
        run = ledger.reserve("k1", Budget(tokens=1000), NO_LIMITS)
        ledger.settle(run, Spend(usd=total / 1000, tokens=total, seconds=1), turn_id="t1")
    used = ledger.used("k1")
    assert (used.usd, used.tokens, used.seconds) == (pytest.approx(0.5), 500, 3)


def test_what_a_killed_run_reserved_ends_with_its_turn(tables: OpenTables) -> None:
    ledger = KeyLedger(tables(), clock=lambda: NOON)
    day, question = Budget(tokens=1000), Budget(tokens=400)
    killed, other = ledger.reserve("k1", day, question), ledger.reserve("k1", day, question)
    ledger.name_turn(killed, "t1", "k1/monday")
    ledger.name_turn(other, "t2", "k1/t1:tuesday")
    of_an_older_version = ledger.reserve("k1", Budget(tokens=2000), NO_LIMITS)
    tables().write(("UPDATE key_use SET turn_id = 'open:t0', tokens = 0 WHERE run_id = ?", (of_an_older_version,)))
    assert {(run.run_id, run.turn_id, run.conversation) for run in ledger.open_runs("k1")} == {
        (killed, "t1", "k1/monday"),
        (other, "t2", "k1/t1:tuesday"),
    }
    with pytest.raises(DailyBudgetExhausted) as held:
        ledger.reserve("k1", day, question)
    assert held.value.is_held
    ledger.settle(other, Spend(tokens=50), turn_id="t2")
    resumed = ledger.reserve("k1", day, question)
    ledger.name_turn(resumed, "t1", "k1/monday")
    for _ in range(2):  # by another worker and by its own
        ledger.settle(resumed, Spend(tokens=120), turn_id="t1")
    assert ledger.used("k1").tokens == 170
    assert tables().read("SELECT turn_id FROM key_use ORDER BY turn_id") == [("open:t0",), ("t1",), ("t2",)]


def test_an_unknown_price_costs_what_was_reserved(tables: OpenTables) -> None:
    ledger = KeyLedger(tables(), clock=lambda: NOON)
    ledger.settle(ledger.reserve("k1", Budget(usd=2.0), NO_LIMITS), Spend(unpriced=1, tokens=3))
    assert ledger.used("k1") == Spend(usd=pytest.approx(0.2), tokens=3)


def test_a_clock_that_goes_back_over_midnight_gives_no_second_budget(tables: OpenTables) -> None:
    now = [NOON + 43_200.0]
    ledger, other = (KeyLedger(tables(), clock=lambda: now[0]), KeyLedger(tables(), clock=lambda: now[0] - 60))
    ledger.settle(ledger.reserve("k1", Budget(tokens=10), NO_LIMITS), Spend(tokens=10))
    for behind in (other, ledger, other):
        with pytest.raises(DailyBudgetExhausted, match="10 of 10 tokens are used"):
            behind.reserve("k1", Budget(tokens=10), NO_LIMITS)
        assert behind.used("k1").tokens == 10
        now[0] -= 60
    now[0] = NOON + 86_400 * 1.5
    ledger.reserve("k1", Budget(tokens=10), NO_LIMITS)


@pytest.mark.parametrize("step_s", [-60.0, 60.0])
def test_a_question_that_a_jump_over_midnight_meets_takes_no_more_than_its_day(
    tables: OpenTables, step_s: float
) -> None:
    """After a clock had gone back, what was spent since then did not count for a question from before."""
    now = [NOON + 43_200.0 - step_s / 2]
    ledger, other = (KeyLedger(tables(), clock=lambda: now[0]) for _ in range(2))
    day = Budget(tokens=1000)
    run = ledger.reserve("k1", day, NO_LIMITS)
    now[0] += step_s
    other.settle(other.reserve("k1", day, NO_LIMITS), Spend(tokens=700))
    assert ledger.grow(run, day, Spend(tokens=300))
    assert not ledger.grow(run, day, Spend(tokens=301))
    ledger.settle(run, Spend(tokens=300))
    assert other.used("k1").tokens == (1000 if step_s < 0 else 700)


@pytest.mark.parametrize("days_ahead", [2, 400])
def test_a_clock_that_was_days_ahead_and_is_set_back_locks_no_key_out(tables: OpenTables, days_ahead: int) -> None:
    now = [NOON + days_ahead * 86_400]
    ledger = KeyLedger(tables(), clock=lambda: now[0])
    ledger.settle(ledger.reserve("k1", Budget(tokens=10), NO_LIMITS), Spend(tokens=4))
    now[0] = NOON
    ledger.settle(ledger.reserve("k1", Budget(tokens=10), NO_LIMITS), Spend(tokens=6))
    with pytest.raises(DailyBudgetExhausted, match="10 of 10 tokens are used"):
        ledger.reserve("k1", Budget(tokens=10), NO_LIMITS)
    now[0] += 86_400
    assert ledger.used("k1") == Spend()
    ledger.reserve("k1", Budget(tokens=10), NO_LIMITS)


@pytest.mark.parametrize(
    ("per_day", "per_question"),
    [
        (Budget(tokens=1_000), NO_LIMITS),
        (Budget(tokens=1_000, seconds=10_000.0), NO_LIMITS),
        (Budget(tokens=1_000, usd=1.0), Budget(usd=0.001)),
    ],
)
def test_calls_that_fit_into_what_is_reserved_reserve_nothing_more(
    tables: OpenTables, per_day: Budget, per_question: Budget
) -> None:
    ledger = KeyLedger(tables(), clock=lambda: NOON)
    caller = Caller(key_id="k1", per_day=per_day, per_question=per_question)
    run_id = ledger.reserve("k1", per_day, per_question)
    day = KeyDay(ledger, run_id, caller, per_question, load_prices())

    async def call(times: int) -> None:
        for _ in range(times):
            spent = Spend(calls=1, tokens=3, usd=0.0002)
            await day.settle(await day.reserve(spent, is_answer=False), spent)

    asyncio.run(call(20))
    assert ledger.used("k1").tokens == 100, "a tenth of the day"
    asyncio.run(call(20))
    assert ledger.used("k1").tokens == 200, "one step further"
