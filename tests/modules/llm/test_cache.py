"""Answers that are kept: nothing is paid for twice, and a repeated run goes the same way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Iterator
from pathlib import Path
from typing import Any, TypeVar

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgetree.modules.background_loop import background_loop
from judgetree.modules.calls.budget import TreeBudget
from judgetree.modules.calls.completion import Completion, TokenLogprob
from judgetree.modules.calls.kept import CallResult
from judgetree.modules.calls.messages import PLAIN_TEXT, CallOptions
from judgetree.modules.calls.usage import CallMeter, total_usage
from judgetree.modules.config.models import CacheMode
from judgetree.modules.errors import BudgetSpent, CacheMiss, ModelCallError
from judgetree.modules.llm.cache import CachedLLM, CompletionCache, call_key
from tests.call_records import call_record
from tests.graphs.fakes import FakeLLM
from tests.modules.model_endpoints import Snapshots

T = TypeVar("T")
HERE, THERE = "127.0.0.1:8265/v1", "127.0.0.1:8266/v1"
QUESTION = [("user", "Which oil?")]
RECORD = call_record(chunk_id="c", prompt_tokens=3, estimated=True, attempts=2)


@pytest.fixture
def cache(tmp_path: Path) -> Iterator[CompletionCache]:
    with CompletionCache(tmp_path / "calls.sqlite") as opened:
        yield opened


def numbered() -> FakeLLM:
    """Says how many calls it has had, so that a kept answer is told from a new one."""
    llm = FakeLLM(lambda messages: str(len(llm.calls)))
    return llm


def cached_llm(
    inner: FakeLLM, cache: CompletionCache, *, endpoint: str = HERE, mode: CacheMode = "write", repeat: int = 0
) -> CachedLLM:
    return CachedLLM(inner, cache, endpoint=endpoint, mode=mode, repeat=repeat)


def run(work: Coroutine[object, object, T]) -> T:
    return background_loop().run(work)


def ask(llm: CachedLLM, meter: CallMeter | None = None, options: CallOptions = PLAIN_TEXT) -> str:
    return run(llm.complete(QUESTION, meter=meter or CallMeter(node="generate"), options=options)).text


def test_second_run_pays_nothing_and_says_the_same(cache: CompletionCache) -> None:
    paid, again = CallMeter(node="generate"), CallMeter(node="generate")
    assert ask(cached_llm(numbered(), cache), paid) == "1"
    later = numbered()
    assert ask(cached_llm(later, cache), again) == "1"
    assert later.calls == []
    assert total_usage(paid.records)["llm_calls"] == 1
    assert total_usage(again.records)["llm_calls"] == 0
    (first,), (kept,) = paid.records, again.records
    assert kept["cached"]
    cost = ("prompt_tokens", "completion_tokens", "estimated", "seconds")
    assert [kept[name] for name in cost] == [first[name] for name in cost], "what it took when it was made"


def test_model_of_the_same_name_at_another_endpoint_answers_itself(cache: CompletionCache) -> None:
    here, there = cached_llm(FakeLLM(lambda _: "A"), cache), cached_llm(FakeLLM(lambda _: "B"), cache, endpoint=THERE)
    assert [ask(here), ask(there), ask(here), ask(there)] == ["A", "B", "A", "B"]


def test_refreshing_asks_each_call_once_more_and_keeps_the_new_answer(cache: CompletionCache) -> None:
    ask(cached_llm(FakeLLM(lambda _: "old"), cache))
    inner = numbered()
    answers = [ask(cached_llm(inner, cache, mode="refresh")) for _ in range(2)]
    assert answers == ["1", "1"], "what was renewed is read again"
    assert ask(cached_llm(numbered(), cache, mode="read")) == "1"
    assert len(inner.calls) == 1


def test_kept_answer_outlives_the_process(tmp_path: Path) -> None:
    for _ in range(2):
        with CompletionCache(tmp_path / "calls.sqlite") as cache:
            assert ask(cached_llm(numbered(), cache)) == "1"


@pytest.mark.parametrize(
    "options",
    [
        CallOptions(max_tokens=5),
        CallOptions(temperature=0.7),
        CallOptions(top_logprobs=3),
        CallOptions(json_format="json_schema", json_schema={"type": "object"}),
    ],
)
def test_other_options_are_another_call(cache: CompletionCache, options: CallOptions) -> None:
    llm = cached_llm(numbered(), cache)
    assert [ask(llm), ask(llm, options=options), ask(llm)] == ["1", "2", "1"]


def test_each_repeat_has_answers_of_its_own(cache: CompletionCache) -> None:
    inner = numbered()
    answers = [ask(cached_llm(inner, cache, repeat=repeat)) for repeat in (0, 1, 0, 1)]
    assert answers == ["1", "2", "1", "2"]


@pytest.mark.parametrize(("mode", "answers"), [("off", ["1", "2"]), ("read", ["1", "2"]), ("write", ["1", "1"])])
def test_modes_keep_or_do_not(cache: CompletionCache, mode: CacheMode, answers: list[str]) -> None:
    llm = cached_llm(numbered(), cache, mode=mode)
    assert [ask(llm), ask(llm)] == answers


def test_reading_uses_what_another_run_has_kept(cache: CompletionCache) -> None:
    ask(cached_llm(numbered(), cache))
    llm = numbered()
    assert ask(cached_llm(llm, cache, mode="read")) == "1"
    assert llm.calls == []


def test_replay_refuses_what_is_not_kept(cache: CompletionCache) -> None:
    llm = numbered()
    with pytest.raises(CacheMiss, match=r"'fake'.*calls\.sqlite.*--cache write"):
        ask(cached_llm(llm, cache, mode="replay"))
    assert llm.calls == []


def test_same_calls_of_two_systems_at_once_are_paid_for_once(cache: CompletionCache) -> None:
    inner = numbered()

    async def at_once() -> list[Completion]:
        systems = [cached_llm(inner, cache), cached_llm(inner, cache)] * 3
        return await asyncio.gather(*(llm.complete(QUESTION, meter=CallMeter(node="judge")) for llm in systems))

    assert [completion.text for completion in run(at_once())] == ["1"] * 6
    assert len(inner.calls) == 1


def test_call_whose_first_try_failed_is_still_paid_for_once(cache: CompletionCache) -> None:
    entered: list[int] = []

    async def asked() -> list[object]:
        first_fails, second_answers = asyncio.Event(), asyncio.Event()

        class Slow(FakeLLM):
            async def complete(self, *args: Any, **kwargs: Any) -> Completion:
                entered.append(len(entered))
                if len(entered) == 1:
                    await first_fails.wait()
                    raise ModelCallError("down")
                await second_answers.wait()
                return await super().complete(*args, **kwargs)

        llm = cached_llm(Slow(lambda _: "54"), cache)

        def ask_it() -> asyncio.Task[Completion]:
            return asyncio.create_task(llm.complete(QUESTION, meter=CallMeter(node="judge")))

        waiting = [ask_it(), ask_it()]
        await until(lambda: len(entered) == 1)
        first_fails.set()
        await until(lambda: len(entered) == 2)
        late = ask_it()
        for _ in range(20):
            await asyncio.sleep(0)
        second_answers.set()
        return await asyncio.gather(*waiting, late, return_exceptions=True)

    failed, *answered = run(asked())
    assert isinstance(failed, ModelCallError)
    assert [getattr(completion, "text", "") for completion in answered] == ["54"] * 2
    assert len(entered) == 2


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(10):
        while not condition():  # noqa: ASYNC110 - what is waited for sets no event
            await asyncio.sleep(0)


def test_failed_call_is_not_kept(cache: CompletionCache) -> None:
    def fail(messages: object) -> str:
        raise ModelCallError("down")

    with pytest.raises(ModelCallError, match="down"):
        ask(cached_llm(FakeLLM(fail), cache))
    assert ask(cached_llm(numbered(), cache)) == "1"


def test_kept_answer_takes_its_place_in_the_budget(cache: CompletionCache) -> None:
    ask(cached_llm(numbered(), cache))
    budget = TreeBudget(limit=1)
    llm = cached_llm(numbered(), cache)
    assert ask(llm, CallMeter(node="judge", budget=budget)) == "1"
    with pytest.raises(BudgetSpent):
        ask(llm, CallMeter(node="judge", budget=budget))


@pytest.mark.parametrize("mode", ["off", "write"])
def test_listeners_hear_a_call_grow_and_a_kept_answer_at_once(cache: CompletionCache, mode: CacheMode) -> None:
    llm = cached_llm(FakeLLM(lambda _: "<think>hm</think>54"), cache, mode=mode)
    grown = (["5", "54"], ["h", "hm"])
    for expected in (grown, grown if mode == "off" else (["54"], ["hm"])):
        texts, thinking = Snapshots(), Snapshots()
        listeners = {"on_text": texts, "on_thinking": thinking}
        run(llm.complete(QUESTION, meter=CallMeter(node="generate"), **listeners))
        assert (texts, thinking) == expected


def test_two_processes_agree_on_what_was_kept_first(cache: CompletionCache, tmp_path: Path) -> None:
    one, two = (
        CallResult(completion=Completion(text=text, thinking="", finish_reason="stop"), record=RECORD)
        for text in ("one", "two")
    )
    with CompletionCache(tmp_path / "calls.sqlite") as other:
        assert cache.put(b"key", HERE, "m", one) == one
        assert other.put(b"key", HERE, "m", two) == one


texts = st.text(st.characters(codec="utf-8"), max_size=20)


@given(
    text=texts,
    thinking=texts,
    tokens=st.lists(st.builds(TokenLogprob, token=texts, logprob=st.floats(-50, 0)), max_size=3),
)
def test_completion_comes_back_as_it_was(
    tmp_path_factory: pytest.TempPathFactory, text: str, thinking: str, tokens: list[TokenLogprob]
) -> None:
    completion = Completion(text=text, thinking=thinking, finish_reason="stop", first_token=tuple(tokens))
    kept = CallResult(completion=completion, record=RECORD)
    with CompletionCache(tmp_path_factory.mktemp("cache") / "calls.sqlite") as cache:
        cache.put(b"key", HERE, "m", kept)
        assert cache.get(b"key") == kept


@given(st.lists(st.tuples(texts, texts), max_size=3), st.lists(st.tuples(texts, texts), max_size=3))
def test_key_tells_messages_apart(one: list[tuple[str, str]], two: list[tuple[str, str]]) -> None:
    assert (call_key(HERE, "m", one, PLAIN_TEXT) == call_key(HERE, "m", two, PLAIN_TEXT)) == (one == two)
    assert call_key(HERE, "m", one, PLAIN_TEXT) != call_key(HERE, "n", one, PLAIN_TEXT)


@pytest.mark.parametrize(
    "damaged", ["garbage", "{}", "[]", '{"completion":{"first_token":null},"record":{}}', '{"completion":7}']
)
def test_a_damaged_reply_is_asked_for_again(cache: CompletionCache, damaged: str) -> None:
    llm = cached_llm(numbered(), cache)
    assert ask(llm) == "1"
    cache.attempt(lambda file: file.execute("UPDATE kept_calls SET kept = ?", (damaged,)), otherwise=None)
    assert ask(llm) == "2"
    assert ask(llm) == "2"
