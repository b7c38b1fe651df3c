"""What makes a reply worse than it looks: noted with the call, kept by journal and cache, and told once."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage
from langchain_core.outputs import ChatGeneration, ChatResult

from judgetree.modules.background_loop import background_loop
from judgetree.modules.calls.completion import Completion
from judgetree.modules.calls.journal import thread_calls
from judgetree.modules.calls.kept import CallResult
from judgetree.modules.calls.ledger import SpendLimits
from judgetree.modules.calls.messages import PLAIN_TEXT, CallOptions
from judgetree.modules.calls.prices import Price, Prices, usage_by_model
from judgetree.modules.calls.record import CallRecord, caveats_of, count_caveats
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.caveats.kinds import CAVEAT_KINDS, CAVEATS
from judgetree.modules.caveats.prompt_cuts import least_tokens
from judgetree.modules.errors import ModelCallError, ModelRequestError, ModelSetupError
from judgetree.modules.journals.sql import JOURNAL_TABLES, SqlJournal
from judgetree.modules.llm.cache import CachedLLM, CompletionCache
from judgetree.modules.llm.contract import ChatLLM
from judgetree.modules.llm.json_reply import JsonChat
from judgetree.modules.llm.langchain_chat import LangChainChat
from judgetree.modules.storage.sqlite import SqliteDatabase
from tests.call_records import call_record
from tests.modules.model_endpoints import Answer, RawEndpoint, ask, chat_reply, llm_at, stream_of

LONG = [("user", "Which oil does the pump need? " * 2000)]
REASON = "I'm sorry, but I can't help with that."


def reply(message: dict[str, object], *, streamed: bool, ended: str = "stop", **usage: object) -> Answer:
    """A reply, whole or as a stream with a piece for each half of each text."""
    used = {"usage": {"prompt_tokens": 7, "completion_tokens": 2, **usage}}
    if not streamed:
        choice = {"index": 0, "finish_reason": ended, "message": {"role": "assistant", "content": None, **message}}
        return 200, {}, json.dumps({"id": "1", "object": "chat.completion", "choices": [choice], **used})
    texts = [(name, text) for name, text in message.items() if isinstance(text, str)]
    deltas = [{name: half} for name, text in texts for half in (text[: len(text) // 2], text[len(text) // 2 :])]
    pieces = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    pieces.append({"choices": [{"index": 0, "delta": {}, "finish_reason": ended}]})
    return stream_of(*pieces, {"choices": [], **used})


def asked(llm: ChatLLM, meter: CallMeter, *, streamed: bool = False, options: CallOptions = PLAIN_TEXT) -> Completion:
    listeners: dict[str, Any] = {"on_text": lambda delta: None} if streamed else {}
    call = llm.complete(LONG, meter=meter, options=options, **listeners)
    return background_loop().run(asyncio.wait_for(call, 30))


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("message", "ended", "text", "caveats"),
    [
        ({"content": "42"}, "stop", "42", ()),
        ({"content": "4"}, "length", "4", ("reply_cut",)),
        ({"content": "4"}, "content_filter", "4", ("filtered",)),
        *(({"content": "4"}, ended, "4", ("filtered",)) for ended in ("SAFETY", "content_filter: RECITATION")),
        *(({"content": "4"}, ended, "4", ("filtered",)) for ended in ("IMAGE_SAFETY", "ContentFilter", "MODEL_ARMOR")),
        ({"refusal": REASON}, "stop", REASON, ("declined",)),
        ({"content": "", "refusal": REASON}, "content_filter", REASON, ("filtered", "declined")),
        ({"content": "4", "refusal": REASON}, "stop", "4", ("declined",)),
        ({"reasoning_content": "thoughts", "refusal": REASON}, "stop", REASON, ("declined",)),
        ({"reasoning_content": "42"}, "stop", "42", ("only_thinking",)),
        ({"reasoning": "<think>six</think>42", "content": ""}, "stop", "42", ("only_thinking",)),
        ({"reasoning_content": "six by nine", "content": "42"}, "stop", "42", ()),
        ({"content": "<think>six by nine</think>42"}, "stop", "42", ()),
    ],
)
def test_what_a_reply_shows_is_noted_with_its_call(
    raw: RawEndpoint, message: dict[str, object], ended: str, text: str, caveats: tuple[str, ...], streamed: bool
) -> None:
    raw.will_send(reply(message, streamed=streamed, ended=ended))
    meter = CallMeter(node="generate")
    completion = asked(llm_at(raw.base_url), meter, streamed=streamed)
    assert completion.text == text
    assert completion.written == ("" if {"filtered", "declined"} & {*caveats} else text), "as material of other calls"
    (record,) = meter.records
    assert caveats_of(record) == caveats
    assert record.get("refusal", "") == (REASON if "declined" in caveats else "")
    assert ("caveats" in record) == bool(set(caveats) - {"reply_cut"}), "records of usual calls stay as they were"


@pytest.mark.parametrize("streamed", [False, True])
def test_an_answer_that_a_filter_withheld_fails_at_once_and_says_so(raw: RawEndpoint, streamed: bool) -> None:
    raw.will_send(reply({"content": ""}, streamed=streamed, ended="content_filter"))
    meter = CallMeter(node="generate")
    with pytest.raises(ModelCallError, match="a content filter of the endpoint withheld the answer"):
        asked(llm_at(raw.base_url), meter, streamed=streamed)
    assert len(raw.bodies) == 1
    assert count_caveats(meter.records) == {"filtered": 1}


@pytest.mark.parametrize("choice", [{}, {"message": None}, {"delta": {}}])
@pytest.mark.parametrize("streamed", [False, True])
def test_a_choice_without_a_message_says_why(raw: RawEndpoint, choice: dict[str, object], streamed: bool) -> None:
    """So Gemini ends what it withholds."""
    told = {"choices": [{"index": 0, **choice, "finish_reason": "content_filter: PROHIBITED_CONTENT"}]}
    raw.will_send(stream_of(told) if streamed else (200, {}, json.dumps(told)))
    with pytest.raises(ModelCallError, match="a content filter of the endpoint withheld the answer"):
        asked(llm_at(raw.base_url), CallMeter(node="generate"), streamed=streamed)
    assert len(raw.bodies) == 1


FILTERS: dict[str, dict[str, object]] = {
    "openai": {"error": {"code": "content_filter", "message": "The response was filtered."}},
    "dashscope": {"error": {"code": "data_inspection_failed", "message": "Output data may be unfit.", "type": "x"}},
    "dashscope, bare": {"code": "DataInspectionFailed", "message": "Input data may hold what is unfit."},
    "openrouter": {"error": {"code": 403, "message": "Your input was flagged.", "metadata": {"reasons": ["x"]}}},
    "zhipu": {"error": {"code": "1301", "message": "系统检测到输入或生成内容可能包含不安全或敏感内容"}},
    "minimax": {"choices": None, "base_resp": {"status_code": 1026, "status_msg": "input new_sensitive"}},
    "a text": {"error": "The prompt violates our content policy."},
}


@pytest.mark.parametrize("after", ["", "4"], ids=["at once", "after text"])
@pytest.mark.parametrize("door", ["whole", "stream", "whole for a stream"])
@pytest.mark.parametrize("name", FILTERS)
def test_a_filter_that_is_told_in_a_reply_is_final(raw: RawEndpoint, name: str, door: str, after: str) -> None:
    """It was tried again like a reply that cannot be used, each attempt paid for."""
    told = FILTERS[name]
    pieces = [{"choices": [{"index": 0, "delta": {"content": after}, "finish_reason": None}]}] if after else []
    if door != "stream" and after:
        told = {"choices": [{"index": 0, "finish_reason": "error", "message": {"content": after}, **told}]}
        if "error" not in FILTERS[name]:
            pytest.skip("a choice has an error of its own by that name alone")
    raw.will_send(stream_of(*pieces, told) if door == "stream" else (200, {}, json.dumps(told)))
    meter = CallMeter(node="generate")
    with pytest.raises(ModelRequestError, match=r"refused the call in its reply: .* ask in other words"):
        asked(llm_at(raw.base_url), meter, streamed=door != "whole")
    assert (len(raw.bodies), [each["attempts"] for each in meter.records]) == (1, [1])
    assert count_caveats(meter.records) == {"filtered": 1}


@pytest.mark.parametrize("status", [200, 400])
def test_a_filter_says_nothing_of_the_format_of_replies(raw: RawEndpoint, status: int) -> None:
    """Each weaker format was asked for, and paid for, as if the endpoint had refused the format."""
    raw.will_send((status, {}, json.dumps(FILTERS["openai"])), chat_reply("{}"))
    chat, meter = JsonChat(llm_at(raw.base_url), max_tokens=9), CallMeter(node="judge")

    def reply_to(text: str) -> Completion:
        return background_loop().run(asyncio.wait_for(chat.complete([("user", text)], {}, meter=meter), 30))

    with pytest.raises(ModelRequestError):
        reply_to("In JSON: ?")
    assert reply_to("In JSON: !").text == "{}"
    assert [each["response_format"]["type"] for each in raw.bodies] == ["json_schema"] * 2


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("told", "kind"),
    [
        ({"error": {"code": "invalid_api_key", "message": "Wrong key."}}, ModelSetupError),
        ({"error": {"code": 401, "message": "Wrong key."}}, ModelSetupError),
        ({"error": {"code": "402", "message": "No credit is left."}}, ModelSetupError),
        ({"error": {"code": 400, "message": "The prompt is too long."}}, ModelRequestError),
        ({"object": "error", "code": 404, "message": "There is no such model."}, ModelSetupError),
    ],
)
def test_what_is_final_is_so_within_a_reply_too(
    raw: RawEndpoint, told: dict[str, object], kind: type[ModelCallError], streamed: bool
) -> None:
    raw.will_send(stream_of(told) if streamed else (200, {}, json.dumps(told)))
    meter = CallMeter(node="generate")
    with pytest.raises(kind, match="refused the call in its reply"):
        asked(llm_at(raw.base_url), meter, streamed=streamed)
    assert (len(raw.bodies), count_caveats(meter.records)) == (1, {})


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("told", [{"code": 502, "message": "Overloaded."}, {"code": 429}, "Overloaded.", {"code": "x"}])
def test_what_may_pass_is_tried_again_within_a_reply_too(raw: RawEndpoint, told: object, streamed: bool) -> None:
    error = {"error": told}
    raw.will_send(
        stream_of(error) if streamed else (200, {}, json.dumps(error)), reply({"content": "4"}, streamed=streamed)
    )
    assert asked(llm_at(raw.base_url), CallMeter(node="generate"), streamed=streamed).text == "4"
    assert len(raw.bodies) == 2


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("usage", "is_cut"),
    [
        ({"prompt_tokens": 4096}, True),
        ({"prompt_tokens": 2050}, True),
        ({"prompt_tokens": 14_000}, False),
        ({"prompt_tokens": 700}, False),
        ({"prompt_tokens": 4096, "prompt_tokens_details": {"cached_tokens": 9_900}}, False),
        ({"prompt_tokens": 4096, "prompt_tokens_details": {"cached_tokens": "many"}}, True),
        ({"prompt_tokens": 4096, "prompt_tokens_details": None}, True),
    ],
)
def test_a_prompt_that_the_server_cut_is_noted(
    raw: RawEndpoint, usage: dict[str, object], is_cut: bool, streamed: bool
) -> None:
    raw.will_send(reply({"content": "42"}, streamed=streamed, **usage))
    meter = CallMeter(node="generate")
    asked(llm_at(raw.base_url), meter, streamed=streamed)
    assert caveats_of(meter.records[0]) == (("prompt_cut",) if is_cut else ())
    assert meter.records[0]["prompt_tokens"] == usage["prompt_tokens"]


@pytest.mark.parametrize("streamed", [False, True])
def test_limits_count_what_the_texts_have_at_least_where_far_too_little_is_reported(
    raw: RawEndpoint, streamed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    said = "forty-two words " * 100
    raw.will_send(*[reply({"content": said}, streamed=streamed, prompt_tokens=1, completion_tokens=1)] * 2)
    meter, llm = CallMeter(node="generate"), llm_at(raw.base_url)
    for _ in range(2):
        asked(llm, meter, streamed=streamed)
    prices = Prices({"chat": {"m": Price(prompt=1.0, completion=1.0)}})
    for record in meter.records:
        assert (record["prompt_tokens"], record["completion_tokens"]) == (1, 1), "the record has what was reported"
        least = least_tokens([text for _, text in LONG]) + least_tokens([said])
        spend = prices.spend_of(CallRecord(**{**record, "model": "m"}))
        assert (spend.tokens, round(spend.usd * 1_000_000)) == (least, least)
        assert SpendLimits(max_tree_tokens=9).of_record(record).tokens == least
    (usage,) = usage_by_model(meter.records)
    assert (usage.tokens, usage.as_counted().tokens) == (4, 2 * least)
    (warned,) = [each.getMessage() for each in caplog.records if "limits count" in each.getMessage()]
    assert f"reports 2 tokens for a call whose texts have at least {least}" in warned


@pytest.mark.parametrize(
    ("metadata", "extra", "caveats"),
    [
        ({"stop_reason": "refusal"}, {}, ("filtered",)),
        ({"finish_reason": "SAFETY"}, {}, ("filtered",)),
        ({"finish_reason": "stop"}, {"refusal": REASON}, ("declined",)),
        ({"stop_reason": "end_turn"}, {}, ()),
    ],
)
def test_a_model_of_langchain_has_the_same_caveats(
    metadata: dict[str, object], extra: dict[str, object], caveats: tuple[str, ...]
) -> None:
    said = AIMessage(content="" if extra else "42", response_metadata=metadata, additional_kwargs=extra)
    meter = CallMeter(node="generate")
    asked(LangChainChat(FakeMessagesListChatModel(responses=[said])), meter)
    assert caveats_of(meter.records[0]) == caveats


@pytest.mark.parametrize(
    ("ended", "error", "kind"),
    [
        ("SAFETY", None, ModelCallError),
        ("stop", ValueError({"code": "content_filter", "message": "It was filtered."}), ModelRequestError),
    ],
)
def test_a_filter_that_leaves_no_text_to_a_model_of_langchain_is_told_as_one(
    ended: str, error: Exception | None, kind: type[ModelCallError]
) -> None:
    class Filtered(FakeMessagesListChatModel):
        def _call(self, *_: object, **__: object) -> Any:
            if error is not None:
                raise error
            return AIMessage(content="", response_metadata={"finish_reason": ended})

        def _generate(self, *_: object, **__: object) -> Any:
            return ChatResult(generations=[ChatGeneration(message=self._call())])

    meter = CallMeter(node="generate")
    with pytest.raises(kind, match="filter"):
        asked(LangChainChat(Filtered(responses=[])), meter)
    assert count_caveats(meter.records) == {"filtered": 1}


def test_the_cache_keeps_caveats_and_the_reason(raw: RawEndpoint, tmp_path: Path) -> None:
    raw.will_send(reply({"refusal": REASON}, streamed=False, prompt_tokens=4096))
    inner = llm_at(raw.base_url)
    with CompletionCache(tmp_path / "calls.sqlite") as cache:
        llm = CachedLLM(inner, cache, endpoint=inner.endpoint)
        first, second = CallMeter(node="generate"), CallMeter(node="judge")
        assert asked(llm, first) == asked(llm, second)
    assert len(raw.bodies) == 1
    (paid,), (cached,) = first.records, second.records
    assert cached["cached"]
    assert caveats_of(paid) == caveats_of(cached) == ("prompt_cut", "declined")
    assert cached["refusal"] == REASON


def test_a_resumed_call_has_its_caveats_once(raw: RawEndpoint, tmp_path: Path) -> None:
    raw.will_send(reply({"reasoning_content": "42"}, streamed=False, prompt_tokens=4096))
    llm = llm_at(raw.base_url)

    async def life() -> CallMeter:
        journal = SqlJournal(lambda: SqliteDatabase(tmp_path / "journal.sqlite", JOURNAL_TABLES))
        meter = CallMeter(node="generate", calls=await thread_calls(journal, "t"))
        completion = await llm.complete(LONG, meter=meter, options=CallOptions(is_shortened=True))
        assert completion.is_from_thinking
        await journal.aclose()
        return meter

    made, replayed = (background_loop().run(life()) for _ in range(2))
    assert len(raw.bodies) == 1
    assert made.records == replayed.records
    assert count_caveats(replayed.records) == {"prompt_cut": 1, "prompt_shortened": 1, "only_thinking": 1}


def test_replies_and_records_of_older_versions_have_none() -> None:
    record = call_record(cut_off=True)
    old = {"text": "4", "thinking": "", "finish_reason": "length", "first_token": []}
    kept = CallResult.from_json(json.dumps({"completion": old, "record": record}))
    assert (kept.completion.refusal, kept.completion.is_from_thinking) == ("", False)
    assert caveats_of(kept.record) == ("reply_cut",)


def test_each_kind_has_its_words() -> None:
    assert tuple(CAVEATS) == CAVEAT_KINDS
    for caveat in CAVEATS.values():
        assert caveat.sentence.endswith(".")
        assert caveat.remedy.endswith(".")


def test_a_usual_reply_of_this_endpoint_is_unmarked(raw: RawEndpoint) -> None:
    raw.will_send(chat_reply("42"))
    meter = CallMeter(node="generate")
    ask(llm_at(raw.base_url), meter)
    assert count_caveats(meter.records) == {}
