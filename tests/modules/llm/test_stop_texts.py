"""Stop texts: where they are sent, and that no answer goes beyond one, whatever the endpoint does with them."""

from __future__ import annotations

import json
import logging
from typing import Any

import pytest
from langchain_core.messages import AIMessage

from judgetree import from_langchain
from judgetree.app.scripted.answers import ChatReply
from judgetree.app.scripted.server import ScriptedServer
from judgetree.modules.calls.messages import PLAIN_TEXT, CallOptions, call_key
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.errors import ModelCallError, ModelRequestError
from tests.modules.llm.test_langchain_chat import Answering, openai_at
from tests.modules.llm.test_langchain_chat import ask as ask_langchain
from tests.modules.model_endpoints import (
    QUESTION,
    Answer,
    RawEndpoint,
    Snapshots,
    ask,
    chat_reply,
    llm_at,
    saying,
    stream_reply,
)

STOP = ("Observation:",)
REPLY = "Action: Search[KS-1]\nObservation: Delta"
ACTION = "Action: Search[KS-1]"
REFUSED = 400, {}, json.dumps({"error": {"message": "Unsupported parameter: 'stop' is not supported with this model."}})


def sent_stops(raw: RawEndpoint) -> list[Any]:
    return [body.get("stop") for body in raw.bodies]


def test_key_of_a_call_without_stop_texts_is_what_it_was() -> None:
    key = call_key("e", "m", QUESTION, PLAIN_TEXT)
    assert key.hex() == "b1a2fb8894a4ca7b77b5ed20ac296dc092222a657aad782947a0d7bb9d4d95e2"
    assert call_key("e", "m", QUESTION, CallOptions(stop=STOP)) != key


@pytest.mark.parametrize("behaviour", ["honoured", "ignored", "refused"])
@pytest.mark.parametrize("streamed", [False, True])
def test_answer_ends_before_a_stop_text_whatever_the_endpoint_does(
    server: ScriptedServer, behaviour: str, streamed: bool
) -> None:
    server.configure(stops=behaviour)
    server.responses = saying(ChatReply(text=REPLY, reasoning="Not yet an Observation: of mine"))
    heard, meter = Snapshots() if streamed else None, CallMeter(node="act")
    llm = llm_at(server.base_url)
    completion = ask(llm, meter, stop=STOP, on_text=heard)
    assert (completion.text, completion.finish_reason) == (ACTION, "stop")
    assert completion.thinking == "Not yet an Observation: of mine"
    assert ask(llm, stop=STOP, on_text=heard).text == ACTION
    assert heard is None or all(ACTION.startswith(text) for text in heard)
    assert [record["attempts"] for record in meter.records] == [2 if behaviour == "refused" else 1]
    assert ask(llm).text == REPLY, "other calls are whole"


@pytest.mark.parametrize("streamed", [False, True])
def test_refused_stop_texts_are_left_out_from_then_on(
    raw: RawEndpoint, streamed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    raw.will_send(REFUSED, stream_reply({"content": REPLY}) if streamed else chat_reply(REPLY))
    llm, heard = llm_at(raw.base_url), Snapshots() if streamed else None
    with caplog.at_level(logging.INFO):
        assert [ask(llm, stop=STOP, on_text=heard).text for _ in range(2)] == [ACTION, ACTION]
    assert sent_stops(raw) == [list(STOP), None, None]
    assert caplog.text.count("refuses stop (left out)") == 1


def test_refusal_with_another_cause_stays_what_it_is(raw: RawEndpoint) -> None:
    too_long = 400, {}, json.dumps({"error": {"message": "maximum context length exceeded"}})
    raw.will_send(too_long, too_long, chat_reply(REPLY))
    llm = llm_at(raw.base_url)
    with pytest.raises(ModelRequestError, match="maximum context length"):
        ask(llm, stop=STOP)
    assert ask(llm, stop=STOP).text == ACTION
    assert sent_stops(raw) == [list(STOP), None, list(STOP)], "they are still sent"


@pytest.mark.parametrize(
    "cut", [chat_reply("<think>I await the"), chat_reply("", reasoning_content="I await the"), chat_reply("")]
)
def test_reply_without_an_answer_is_asked_for_again_without_stop_texts(raw: RawEndpoint, cut: Answer) -> None:
    raw.will_send(cut, chat_reply(f"<think>I await the Observation: soon</think>{REPLY}"))
    llm, heard = llm_at(raw.base_url), Snapshots()
    assert ask(llm, stop=STOP).text == ACTION
    raw.will_send(cut, chat_reply("Observation: mine", reasoning_content="I know"))
    assert ask(llm_at(raw.base_url), stop=STOP, on_text=heard).text == "", "the answer begins with a stop text"
    assert sent_stops(raw) == [list(STOP), None]
    raw.will_send(chat_reply(""))
    with pytest.raises(ModelCallError, match="the answer is empty"):
        ask(llm, stop=STOP)


def test_openai_takes_four_stop_texts(raw: RawEndpoint) -> None:
    raw.will_send(chat_reply("one e two"))
    assert ask(llm_at(raw.base_url), stop=tuple("ABCDe")).text == "on"
    assert sent_stops(raw) == [list("ABCD")]


class InvalidArgument(Exception):
    code = 400


class Choosy(Answering):
    """Refuses stop texts."""

    refusal: Any = None

    def _generate(self, messages: Any, stop: list[str] | None = None, *_: Any, **__: Any) -> Any:
        if stop:
            raise self.refusal
        return super()._generate(messages)


@pytest.mark.parametrize("streamed", [False, True])
def test_langchain_models_get_stop_texts_and_are_cut(server: ScriptedServer, streamed: bool) -> None:
    server.responses = saying(ChatReply(text=REPLY))
    for behaviour in ("honoured", "refused", "ignored"):
        server.configure(stops=behaviour)
        heard = Snapshots() if streamed else None
        llm = from_langchain(openai_at(server.base_url))
        assert [ask_langchain(llm, heard=heard, stop=STOP).text for _ in range(2)] == [ACTION, ACTION], behaviour
        assert heard is None or not any("Obs" in text for text in heard)
    for refusal in (ValueError("stop is not permitted"), InvalidArgument("no stop here")):
        assert ask_langchain(from_langchain(Choosy(says=AIMessage(REPLY), refusal=refusal)), stop=STOP).text == ACTION
