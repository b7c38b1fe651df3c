"""What calls cost: prices by name, sums that do not hide what is unknown, a user's own table."""

from __future__ import annotations

import tomllib
from importlib.resources import files
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgetree.modules.calls.prices import FREE, UNKNOWN, Cost, ModelUsage, Price, Prices, load_prices, usage_by_model
from judgetree.modules.calls.record import INTERRUPTED
from judgetree.modules.calls.usage import CallKind, CallMeter, CallRecord
from judgetree.modules.errors import SettingsError

TABLE = Prices(
    {
        "chat": {"m": Price(prompt=1.0, completion=10.0), "m-2024-05-13": Price(prompt=5.0, completion=5.0)},
        "embedding": {"e": Price(prompt=2.0)},
    }
)


def used(model: str, kind: CallKind = "chat", *, calls: int = 1, **counts: float) -> ModelUsage:
    return ModelUsage(model=model, kind=kind, calls=calls, **counts)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("model", "prompt_usd"),
    [
        ("m", 1.0),
        ("m-2024-07-18", 1.0),
        ("m-2024-05-13", 5.0),
        ("openai:m", 1.0),
        ("dashscope:m-2024-05-13", 5.0),
        ("http://127.0.0.1:8000/v1#m", 1.0),
        ("local:any", 0.0),
    ],
)
def test_price_is_that_of_the_name_without_service_then_without_date(model: str, prompt_usd: float) -> None:
    price = TABLE.of(model)
    assert price is not None
    assert price.prompt == prompt_usd


@pytest.mark.parametrize("model", ["m-mini", "m-0718", "m-2024-07-18-preview", "ft:m:org", "M", "", "e"])
def test_name_that_only_looks_alike_has_no_price(model: str) -> None:
    assert TABLE.of(model) is None


def test_tokens_cost_what_the_table_says() -> None:
    usage = [
        used("m", prompt_tokens=2_000_000, completion_tokens=100_000),
        used("openai:e", "embedding", prompt_tokens=1_000_000),
    ]
    assert TABLE.cost_of(usage) == Cost(known_usd=2.0 + 1.0 + 2.0)
    assert TABLE.cost_of([]) == FREE


@pytest.mark.parametrize(
    "unknown",
    [used("x", prompt_tokens=1), used("e", "rerank", prompt_tokens=1), used("m", uncounted_calls=1)],
    ids=["no price", "no price of this kind", "tokens that were not told"],
)
def test_unknown_part_makes_the_sum_unknown_and_never_0(unknown: ModelUsage) -> None:
    assert TABLE.cost_of([unknown]).usd is None
    assert str(TABLE.cost_of([unknown])) == "unknown"
    partly = TABLE.cost_of([unknown, used("m", prompt_tokens=3_000_000)])
    assert (partly.usd, str(partly)) == (None, "at least $3.00")


def test_what_runs_here_costs_nothing_even_without_counted_tokens() -> None:
    usage = [used("local:minilm", "embedding", uncounted_calls=1), used("local:qwen", prompt_tokens=10**9)]
    assert TABLE.cost_of(usage) == FREE
    assert str(TABLE.cost_of(usage)) == "$0.00"


def test_model_that_only_the_cache_answered_cost_nothing() -> None:
    cached = used("x", calls=0, cached_calls=2, cached_prompt_tokens=10)
    assert TABLE.cost_of([cached]) == FREE
    assert TABLE.cost_of([cached.as_if_uncached()]) == UNKNOWN


@given(st.lists(st.tuples(st.floats(0, 1e6), st.booleans()), max_size=8))
def test_sum_is_whole_if_every_part_is_and_never_below_what_is_known(parts: list[tuple[float, bool]]) -> None:
    total = sum((Cost(known_usd=usd, is_whole=whole) for usd, whole in parts), FREE)
    assert total.is_whole == all(whole for _, whole in parts)
    assert total.known_usd == pytest.approx(sum(usd for usd, _ in parts))
    assert (total.usd is None) is not total.is_whole


def test_records_are_summed_by_model_and_kind_with_cached_ones_apart() -> None:
    meter = CallMeter(node="n")
    meter.record(kind="chat", model="m", started=0.0, prompt_tokens=10, completion_tokens=2)
    meter.record_cached({**meter.records[0], "prompt_tokens": 7, "completion_tokens": 1})
    meter.record(kind="chat", model="m", started=0.0, error="HTTP 500")
    meter.record(kind="chat", model="n", started=0.0)
    meter.record(kind="embedding", model="m", started=0.0)
    timed = [CallRecord(**{**record, "seconds": float(at)}) for at, record in enumerate(meter.records)]
    chat, other, embedding = usage_by_model(timed)
    assert chat == ModelUsage(
        model="m",
        kind="chat",
        calls=2,
        prompt_tokens=10,
        completion_tokens=2,
        seconds=2.0,
        cached_calls=1,
        cached_prompt_tokens=7,
        cached_completion_tokens=1,
        cached_seconds=1.0,
    )
    assert chat.as_if_uncached() == used("m", calls=3, prompt_tokens=17, completion_tokens=3, seconds=3.0)
    assert other == used("n", uncounted_calls=1, seconds=3.0), "an answer takes a token at least, so none were told"
    assert embedding == used("m", "embedding", uncounted_calls=1, seconds=4.0)


def test_a_call_cut_off_by_a_kill_is_paid_for_beside_the_answer() -> None:
    meter = CallMeter(node="n")
    meter.record(kind="chat", model="m", started=0.0, prompt_tokens=10, completion_tokens=2)
    lost = CallRecord(**{**meter.records[0], "estimated": True, "seconds": 0.0, "error": INTERRUPTED})
    (usage,) = usage_by_model([lost, *meter.records])
    assert (usage.calls, usage.tokens, usage.estimated_calls) == (2, 24, 1)
    whole = usage.as_if_uncached()
    assert (whole.calls, whole.tokens, whole.estimated_calls) == (1, 12, 0)


def test_estimated_tokens_are_marked_in_sums_and_in_what_they_cost() -> None:
    meter = CallMeter(node="n")
    meter.record(kind="chat", model="m", started=0.0, prompt_tokens=1_000_000)
    meter.records[0]["estimated"] = True
    meter.record_cached(meter.records[0])
    (usage,) = usage_by_model(meter.records)
    assert (usage.estimated_calls, usage.as_if_uncached().estimated_calls) == (1, 2)
    cost = Prices({"chat": {"m": Price(prompt=1.0, completion=1.0)}}).cost_of([usage])
    assert (str(cost), str(cost + FREE), cost.usd) == ("about $1.00", "about $1.00", 1.0)


def test_table_that_comes_along_names_a_source_and_a_date_for_every_price() -> None:
    table = tomllib.loads((files("judgetree.modules.calls") / "prices.toml").read_text(encoding="utf-8"))
    prices = load_prices()
    for kind, models in table.items():
        for model in models:
            price = prices.of(model, kind)
            assert price is not None, model
            assert price.source, model
            assert price.date is not None, model
    assert prices.of("gpt-4o-mini-2024-07-18") == prices.of("gpt-4o-mini")
    assert prices.of("gpt-4o-2024-05-13") != prices.of("gpt-4o")


def test_own_table_adds_and_overrides(tmp_path: Path) -> None:
    before = load_prices(tmp_path)
    own = '[chat.scripted]\nprompt = 1\ncompletion = 2\n[chat."gpt-4o-mini"]\nprompt = 9\ncompletion = 9\n'
    (tmp_path / "prices.toml").write_text(own, encoding="utf-8")
    prices = load_prices(tmp_path)
    assert before.of("scripted") is None
    own_prices = [prices.of("scripted"), prices.of("gpt-4o-mini")]
    assert [(price.prompt, price.completion) for price in own_prices if price] == [(1, 2), (9, 9)]
    assert prices.of("qwen-plus") == before.of("qwen-plus") is not None


@pytest.mark.parametrize(
    ("text", "named"),
    [
        ("[chat.m]\nprompt = 1\n", "chat.m.completion: Field required"),
        ("[chat.m]\nprompt = -1\ncompletion = 1\n", "chat.m.prompt"),
        ("[chat.m]\nprompt = 1\ncompletion = 1\ncompletions = 2\n", "chat.m.completions"),
        ("[chats.m]\nprompt = 1\ncompletion = 1\n", "chats"),
        ("[chat.m\n", "not valid TOML"),
    ],
)
def test_faulty_table_is_refused_with_what_to_write(tmp_path: Path, text: str, named: str) -> None:
    (tmp_path / "prices.toml").write_text(text, encoding="utf-8")
    with pytest.raises(SettingsError, match=r"prices\.toml") as caught:
        load_prices(tmp_path)
    assert named in str(caught.value)
    assert '[chat."MODEL"]' in str(caught.value)
