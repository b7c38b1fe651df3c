"""What a run has paid against what it may: limits on calls, tokens and money, and money that cannot be enforced."""

from __future__ import annotations

import asyncio
from contextlib import nullcontext
from dataclasses import replace
from pathlib import Path

import pytest
from langchain_core.language_models import FakeListChatModel

from judgetree.evaluation.rows.store import RunStore
from judgetree.evaluation.runs.experiment import Experiment
from judgetree.evaluation.runs.limits import Spending, check_priced, cost_of_row
from judgetree.modules.calls.completion import Completion
from judgetree.modules.calls.journal import JournaledCall
from judgetree.modules.calls.kept import CallResult
from judgetree.modules.calls.prices import ModelUsage, Price, Prices, load_prices
from judgetree.modules.calls.record import Spend
from judgetree.modules.errors import RunLimitReached, SettingsError
from judgetree.modules.parts import register_object
from judgetree.modules.settings import load_settings
from tests.call_records import call_record
from tests.eval.run_rows import run_row

PRICES = Prices({"chat": {"m": Price(prompt=1.0, completion=1.0)}, "embedding": {"e": Price(prompt=1.0)}})
CHAT = ModelUsage(model="m", kind="chat", calls=2, prompt_tokens=900_000, completion_tokens=100_000)
"""A dollar."""
EMBEDDING = ModelUsage(model="e", kind="embedding", calls=1, uncounted_calls=1)
ROW = run_row(system="naive", question="?", prediction="!", paid=(CHAT,))


def limited(**limits: float | str) -> Experiment:
    return Experiment.model_validate({"dataset": "standards:x", "systems": ["llm"], **limits})


@pytest.mark.parametrize(
    ("limits", "stopped_by"),
    [
        ({"max_calls": 4}, "max_calls=4"),
        ({"max_tokens": 2_000_000}, "max_tokens=2000000"),
        ({"max_cost": 1.5}, "max_cost=1.5"),
        ({"max_cost": 2}, "max_cost=2"),
        ({}, ""),
    ],
)
def test_limit_is_reached_by_what_was_paid_before_and_now(limits: dict[str, float], stopped_by: str) -> None:
    spending = Spending(limited(**limits), [ROW], prices=PRICES)
    assert spending.exhausted == ""
    spending.add(ROW)
    assert spending.exhausted == stopped_by
    assert spending.cost.usd == pytest.approx(2.0)


def test_embeddings_whose_tokens_nobody_tells_leave_the_limit_in_force() -> None:
    spending = Spending(limited(max_cost=2), [replace(ROW, paid=(CHAT, EMBEDDING))], prices=PRICES)
    assert (spending.exhausted, str(spending.cost)) == ("", "at least $1.00")
    spending.add(ROW)
    assert spending.exhausted == "max_cost=2"


def of(tokens: int) -> Spend:
    return Spend(calls=1, tokens=tokens, usd=tokens / 1_000_000)


@pytest.mark.parametrize("limits", [{"max_calls": 5}, {"max_tokens": 500_000}, {"max_cost": 0.5}])
def test_calls_at_once_are_reserved_within_the_limit(limits: dict[str, float]) -> None:
    """Each is expected to take 100,000 tokens and takes 60,000: those that wait fill up what is given back."""
    spending = Spending(limited(**limits), prices=PRICES)
    made = 0

    async def call() -> None:
        nonlocal made
        place = await spending.reserve(of(100_000))
        made += 1
        await asyncio.sleep(0)
        await spending.settle(place, of(60_000))

    async def at_once() -> list[BaseException | None]:
        return await asyncio.gather(*(call() for _ in range(32)), return_exceptions=True)

    refused = [error for error in asyncio.run(at_once()) if error]
    assert all(isinstance(error, RunLimitReached) for error in refused)
    assert (made, len(refused)) == ((5, 27) if "max_calls" in limits else (7, 25))
    assert spending.exhausted == "{}={:g}".format(*next(iter(limits.items())))


def test_row_takes_the_place_of_what_was_known_of_its_calls() -> None:
    spending = Spending(limited(max_calls=10), prices=PRICES)
    record = call_record(prompt_tokens=100_000, completion_tokens=0)
    kept = CallResult(completion=Completion(text="", thinking="", finish_reason="stop"), record=record)
    spending.recover([JournaledCall(kept=kept, account="t"), JournaledCall(kept=kept, account="other")])
    assert spending.cost.usd == pytest.approx(0.2), "what was paid before the kill"
    spending.add(replace(ROW, paid=(CHAT,)))
    assert spending.cost.usd == pytest.approx(1.1)


def test_row_of_an_older_version_leaves_the_cost_unknown() -> None:
    assert Spending(limited(), [replace(ROW, paid=None)], prices=PRICES).cost.usd is None


def test_question_that_failed_before_it_paid_does_not_stop_the_run() -> None:
    failed = replace(ROW, status="failed", tree=None, paid=None)
    assert Spending(limited(max_cost=1), [failed], prices=PRICES).exhausted == ""
    assert cost_of_row(failed, PRICES).usd is None


def test_row_keeps_what_was_paid_and_one_without_still_loads(tmp_path: Path) -> None:
    store = RunStore(tmp_path)
    store.append(replace(ROW, paid=(CHAT, EMBEDDING)))
    line = store.rows_file.read_text(encoding="utf-8")
    older = line[: line.index(',"paid":')] + "}\n"
    store.rows_file.write_text(line + older, encoding="utf-8")
    new, old = store.read_attempts()
    assert new.paid == (CHAT, EMBEDDING)
    assert (old.paid, replace(old, paid=new.paid)) == (None, new)


@pytest.mark.parametrize(
    ("settings", "experiment", "unpriced"),
    [
        ({"llm": "http://h/v1#x"}, {}, "chat model 'http://h/v1#x'"),
        ({"llm": "local:", "judge_llm": "openai:y"}, {"systems": ["judge"]}, "chat model 'openai:y'"),
        ({"llm": "local:", "embeddings": "http://h/v1#z"}, {"systems": ["naive"]}, "embedding model 'http://h/v1#z'"),
        (
            {"llm": "local:"},
            {"systems": ["naive"], "ranker_type": "model", "ranker_params": {"model": "dashscope:r"}},
            "rerank model 'dashscope:r'",
        ),
        ({"llm": "local:"}, {"systems": ["llm", "naive", "judge"]}, ""),
        ({"llm": "openai:gpt-4o-mini-2024-07-18", "judge_llm": "dashscope:qwen-plus"}, {"systems": ["judge"]}, ""),
        ({"llm": "local:", "judge_llm": "openai:y"}, {"systems": ["naive"]}, ""),
        ({"llm": "local:", "embeddings": "http://h/v1#z"}, {"systems": ["naive"], "search_type": "sparse"}, ""),
    ],
)
def test_limit_on_money_needs_all_prices(
    settings: dict[str, str], experiment: dict[str, object], unpriced: str, tmp_path: Path
) -> None:
    chosen, limit = load_settings(home=tmp_path, **settings), limited(max_cost=1.0, **experiment)  # type: ignore[arg-type]
    check_priced(limit.model_copy(update={"max_cost": None}), chosen, load_prices())
    refused = pytest.raises(SettingsError, match=rf"{unpriced} is unknown.*prices\.toml") if unpriced else nullcontext()
    with refused:
        check_priced(limit, chosen, load_prices())


class Named(FakeListChatModel):
    """A model of one's own."""

    model_name: str


def test_a_model_of_ones_own_has_the_price_of_the_name_in_its_records(tmp_path: Path) -> None:
    spec = register_object(Named(model_name="m", responses=["Vellin"]))
    settings = load_settings(home=tmp_path, llm=spec)
    check_priced(limited(max_cost=1.0), settings, PRICES)
    with pytest.raises(SettingsError, match="price of the chat model 'm' is unknown"):
        check_priced(limited(max_cost=1.0), settings, Prices({"chat": {spec: Price(prompt=1.0, completion=1.0)}}))
