"""What a run has paid against what it may: limits on calls, tokens and money, and money that cannot be watched."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest

from judgetree.evaluation.metrics.tree import TreeFigures
from judgetree.evaluation.runs.experiment import Experiment
from judgetree.evaluation.runs.spending import Spending, cost_of_row, refuse_unpriced
from judgetree.evaluation.runs.store import RunRow, RunStore
from judgetree.modules.errors import SettingsError
from judgetree.modules.prices import ModelUsage, Price, Prices, load_prices
from judgetree.modules.settings import load_settings

PRICES = Prices({"chat": {"m": Price(prompt=1.0, completion=1.0)}, "embedding": {"e": Price(prompt=1.0)}})
FIGURES = TreeFigures(
    sub_runs=0,
    depth=0,
    chunks=0,
    duplicate_chunks=0,
    verdicts_2=0,
    verdicts_1=0,
    verdicts_0=0,
    unknown_verdicts=0,
    cancelled_verdicts=0,
    pending_verdicts=0,
    refused_sub_answers=0,
    chat_calls=2,
    cached_chat_calls=0,
    prompt_tokens=90,
    completion_tokens=10,
)
CHAT = ModelUsage(model="m", kind="chat", calls=2, prompt_tokens=900_000, completion_tokens=100_000)
"""A dollar."""
EMBEDDING = ModelUsage(model="e", kind="embedding", calls=1, uncounted_calls=1)
ROW = RunRow(
    system="naive",
    question_id="q",
    repeat=0,
    attempt=0,
    question="?",
    prediction="!",
    status="answered",
    error="",
    thread_id="t",
    seconds=1.0,
    tree=FIGURES,
    chunks=(),
    paid=(CHAT,),
)


def limited(**limits: float | str) -> Experiment:
    return Experiment.model_validate({"dataset": "standards:x", "systems": ["llm"], **limits})


@pytest.mark.parametrize(
    ("limits", "stopped_by"),
    [
        ({"max_calls": 4}, "max_calls=4"),
        ({"max_tokens": 200}, "max_tokens=200"),
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


@pytest.mark.parametrize(
    "row",
    [replace(ROW, paid=None), replace(ROW, paid=(replace(CHAT, uncounted_calls=1),))],
    ids=["row of an older version", "endpoint that counts no tokens"],
)
def test_money_that_cannot_be_watched_stops_a_limited_run_only(row: RunRow) -> None:
    assert "told no tokens" in Spending(limited(max_cost=100), [row], prices=PRICES).exhausted
    unlimited = Spending(limited(), [row], prices=PRICES)
    assert (unlimited.exhausted, unlimited.cost.usd) == ("", None)


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
    ("settings", "experiment", "named"),
    [
        ({"llm": "http://h/v1#x"}, {}, "chat model 'http://h/v1#x'"),
        ({"llm": "local:", "judge_llm": "openai:y"}, {"systems": ["judge"]}, "chat model 'openai:y'"),
        ({"llm": "local:", "embeddings": "http://h/v1#z"}, {"systems": ["naive"]}, "embedding model 'http://h/v1#z'"),
        (
            {"llm": "local:"},
            {"systems": ["naive"], "ranker_type": "model", "ranker_params": {"model": "dashscope:r"}},
            "rerank model 'dashscope:r'",
        ),
    ],
)
def test_limit_on_money_is_refused_where_a_price_is_unknown(
    settings: dict[str, str], experiment: dict[str, object], named: str, tmp_path: Path
) -> None:
    chosen = load_settings(home=tmp_path, **settings)
    wanted = limited(**experiment)  # type: ignore[arg-type]
    refuse_unpriced(wanted, chosen, load_prices())
    with pytest.raises(SettingsError, match=r"prices\.toml") as caught:
        refuse_unpriced(wanted.model_copy(update={"max_cost": 1.0}), chosen, load_prices())
    assert named in str(caught.value)


@pytest.mark.parametrize(
    ("settings", "experiment"),
    [
        ({"llm": "local:"}, {"systems": ["llm", "naive", "judge"]}),
        ({"llm": "openai:gpt-4o-mini-2024-07-18", "judge_llm": "dashscope:qwen-plus"}, {"systems": ["judge"]}),
        ({"llm": "local:", "judge_llm": "openai:y"}, {"systems": ["naive"]}),
        ({"llm": "local:", "embeddings": "http://h/v1#z"}, {"systems": ["naive"], "search_type": "sparse"}),
    ],
)
def test_limit_on_money_is_taken_where_all_that_is_used_has_a_price(
    settings: dict[str, str], experiment: dict[str, object]
) -> None:
    wanted = limited(max_cost=1.0, **experiment)  # type: ignore[arg-type]
    refuse_unpriced(wanted, load_settings(**settings), load_prices())
