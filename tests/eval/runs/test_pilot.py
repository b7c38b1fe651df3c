"""What is left of a run, from hand-made rows: scaled sums, intervals, time under concurrency and limits a minute."""

from __future__ import annotations

import math
import random
from dataclasses import replace

import pytest

from judgetree.evaluation.rows.store import RunRow
from judgetree.evaluation.runs.pilot import Expected, SystemEstimate, estimate_system, rate_limit_s
from judgetree.modules.calls.prices import ModelUsage, Price, Prices
from judgetree.modules.errors import SettingsError
from judgetree.modules.settings import load_settings
from tests.eval.runs.test_spending import CHAT, ROW

PRICES = Prices({"chat": {"m": Price(prompt=1.0, completion=1.0)}})


def row(calls: int, *, seconds: float = 1.0, model: str = "m", kept: int = 0) -> RunRow:
    """One that made so many calls of a million tokens each, and took so many more from the cache."""
    million = 1_000_000
    usage = ModelUsage(
        model=model,
        kind="chat",
        calls=calls,
        prompt_tokens=calls * million,
        cached_calls=kept,
        cached_prompt_tokens=kept * million,
    )
    return replace(ROW, paid=(usage,), seconds=seconds)


def estimated(*rows: RunRow, left: int = 100, at_once: int = 1) -> SystemEstimate:
    return estimate_system("judge", rows, left, at_once, PRICES)


def test_means_are_scaled_to_the_questions_that_are_left() -> None:
    estimate = estimated(row(1, seconds=2), row(3, seconds=6), left=100, at_once=8)
    assert (estimate.answered, estimate.left) == (2, 100)
    assert (estimate.calls.value, estimate.tokens.value) == (200, 200_000_000)
    assert estimate.cost_usd is not None
    assert estimate.cost_usd.value == pytest.approx(200)
    assert estimate.seconds.value == pytest.approx(100 * 4 / 8), "eight questions are under way at once"
    wide = 12.7062 * math.sqrt(2) * math.sqrt(100 * (1 + 100 / 2))  # Student's t of two values
    assert (estimate.calls.low, estimate.calls.high) == pytest.approx((0, 200 + wide), rel=1e-4)


def test_interval_holds_what_few_questions_come_to_after_many() -> None:
    chance = random.Random(0)
    held = 0
    for _ in range(60):
        took = [chance.randint(1, 9) for _ in range(65)]
        calls = estimated(*map(row, took[:60]), left=5).calls
        assert calls.low is not None
        assert calls.high is not None
        held += calls.low <= sum(took[60:]) <= calls.high
    assert held >= 50, "95 % are meant; the interval of the mean alone holds two sums of five"


def test_one_answer_gives_no_interval_and_equal_ones_no_width() -> None:
    assert estimated(row(2)).calls == Expected(value=200, low=None, high=None)
    assert estimated(row(2), row(2), row(2)).calls == Expected(value=200, low=200, high=200)


def test_nothing_left_takes_nothing() -> None:
    estimate = estimated(row(1), row(3), left=0)
    assert (estimate.calls, estimate.seconds.value) == (Expected(value=0, low=0, high=0), 0)


def test_calls_that_the_cache_answered_are_estimated_as_to_be_paid() -> None:
    estimate = estimated(row(1, kept=2), left=10)
    assert (estimate.calls.value, estimate.known_usd.value) == (30, pytest.approx(30))


def test_unknown_price_of_one_answer_makes_the_money_unknown() -> None:
    estimate = estimated(row(1), row(1, model="x"), left=10)
    assert estimate.cost_usd is None
    assert estimate.known_usd.value == pytest.approx(5)


def test_no_answer_to_go_by_says_what_to_do() -> None:
    with pytest.raises(SettingsError, match=r"no answer of judge .* --pilot N"):
        estimated()


def test_total_adds_sums_and_bounds() -> None:
    known, single = estimated(row(1), row(3), left=10), estimated(row(2, model="x"), left=10)
    total = known + known
    assert (total.system, total.answered, total.left) == ("all", 4, 20)
    assert (total.calls.value, total.calls.high) == (40, pytest.approx(2 * (known.calls.high or 0)))
    assert (known + single).calls == Expected(value=40, low=None, high=None)
    assert (known + single).cost_usd is None


def test_limits_a_minute_ask_for_time_of_their_own_by_the_slowest_model() -> None:
    rows: dict[str, list[RunRow]] = {"naive": [row(1)], "judge": [row(4, model="x"), row(2, model="x")]}
    left: dict[str, int] = {"naive": 60, "judge": 10}
    assert rate_limit_s(rows, left, load_settings()) == 0
    by_requests = load_settings(requests_per_minute=20)
    assert rate_limit_s(rows, left, by_requests) == pytest.approx(60 * 60 / 20), "60 calls of m, 30 of x"
    by_tokens = load_settings(requests_per_minute=20, tokens_per_minute=1_000_000)
    assert rate_limit_s(rows, left, by_tokens) == pytest.approx(60 * 60)


def test_limits_a_minute_do_not_hold_for_a_model_in_this_process() -> None:
    rows: dict[str, list[RunRow]] = {"llm": [replace(ROW, paid=(replace(CHAT, model="local:qwen"),))]}
    assert rate_limit_s(rows, {"llm": 10}, load_settings(requests_per_minute=1)) == 0
