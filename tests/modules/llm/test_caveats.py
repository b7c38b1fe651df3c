"""What makes a reply worse than it looks: noted with the call, kept by journal and cache, and told once."""

from __future__ import annotations

import asyncio
import json
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import FakeMessagesListChatModel
from langchain_core.messages import AIMessage

from judgetree.modules.background_loop import background_loop
from judgetree.modules.calls.completion import Completion
from judgetree.modules.calls.journal import JOURNAL_TABLES, CallJournal, thread_calls
from judgetree.modules.calls.kept import KeptCall
from judgetree.modules.calls.messages import PLAIN_TEXT, CallOptions
from judgetree.modules.calls.record import caveats_of, count_caveats
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.caveats.kinds import CAVEAT_KINDS, CAVEATS
from judgetree.modules.errors import ModelCallError
from judgetree.modules.llm.cache import CachedLLM, CompletionCache
from judgetree.modules.llm.contract import ChatLLM
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
        ({"content": "4"}, "SAFETY", "4", ("filtered",)),
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
    assert asked(llm_at(raw.base_url), meter, streamed=streamed).text == text
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
        journal = CallJournal(lambda: SqliteDatabase(tmp_path / "journal.sqlite", JOURNAL_TABLES))
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
    kept = KeptCall.from_json(json.dumps({"completion": old, "record": record}))
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
