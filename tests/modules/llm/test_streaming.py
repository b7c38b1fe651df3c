"""A model behind an endpoint that streams, or does not: what is shown of thinking and answer meanwhile."""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import AsyncIterator
from dataclasses import dataclass, field

import httpx2
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgetree.modules.calls.completion import Completion
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.errors import ModelCallError, ModelRequestError, ModelSetupError
from judgetree.modules.llm.call_gate import CallGate
from judgetree.modules.llm.endpoint import EndpointLLM
from judgetree.modules.llm.openai_client import ReasoningChatOpenAI
from tests.modules.model_endpoints import KEY, Answer, RawEndpoint, Snapshots, ask, chat_reply, llm_at, stream_reply


@dataclass
class Shown:
    """What the listeners of calls have been told, in order."""

    texts: Snapshots = field(default_factory=Snapshots)
    thinking: Snapshots = field(default_factory=Snapshots)

    def ask(self, llm: EndpointLLM, meter: CallMeter | None = None) -> Completion:
        return ask(llm, meter, on_text=self.texts, on_thinking=self.thinking)

    @property
    def last(self) -> tuple[str, str]:
        return (self.texts or [""])[-1], (self.thinking or [""])[-1]


def in_pieces(answer: Answer, cuts: list[int]) -> Answer:
    status, headers, body = answer
    assert isinstance(body, str)
    data = body.encode()
    borders = itertools.pairwise([0, *sorted(cut for cut in cuts if cut < len(data)), len(data)])
    return status, headers, [data[start:end] for start, end in borders]


def counted(answer: Answer, tokens: int) -> Answer:
    status, headers, body = answer
    assert isinstance(body, str)
    usage = {"prompt_tokens": tokens, "completion_tokens": tokens, "total_tokens": 2 * tokens}
    return status, headers, json.dumps({**json.loads(body), "usage": usage})


def without_finish(answer: Answer, *, end: str) -> Answer:
    """A stream none of whose pieces tells why it ends, and what stands at its end."""
    status, headers, body = answer
    assert isinstance(body, str)
    return status, headers, body.replace('"finish_reason": "stop"', '"finish_reason": null').replace("[DONE]", end)


def refusal(status: int) -> Answer:
    return status, {}, json.dumps({"error": {"message": "no such thing"}})


# --- streams ---


def events(deltas: list[dict[str, object]]) -> Answer:
    """A stream whose text stands in it as UTF-8, so that a cut may go through a character."""
    status, headers, body = stream_reply(*deltas)
    assert isinstance(body, str)
    lines = [line.removeprefix("data: ") for line in body.split("\n\n") if line.startswith("data: {")]
    plain = [json.dumps(json.loads(line), ensure_ascii=False) for line in lines]
    return status, headers, "".join(f"data: {line}\n\n" for line in [*plain, "[DONE]"])


words = st.lists(st.sampled_from(["六乘九", "🤔", "six ", "by\n", " 9", "42", "é"]), max_size=4).map("".join)


@settings(max_examples=40)
@given(
    blocks=st.lists(st.tuples(words, words), min_size=1, max_size=2),
    is_opened=st.booleans(),
    reasoning=words,
    size=st.integers(1, 9),
    cuts=st.lists(st.integers(0, 3000), max_size=20),
)
def test_stream_cut_at_any_byte_shows_what_the_whole_reply_says(
    started_raw: RawEndpoint, blocks: list[tuple[str, str]], is_opened: bool, reasoning: str, size: int, cuts: list[int]
) -> None:
    content = "\n".join(f"<think>{thinking}</think>{answer}" for thinking, answer in blocks) + "54"
    content = content if is_opened else content.removeprefix("<think>")
    deltas = [
        {key: text[start : start + size]}
        for key, text in (("reasoning_content", reasoning), ("content", content))
        for start in range(0, len(text), size)
    ]
    started_raw.will_send(chat_reply(content, reasoning_content=reasoning), in_pieces(events(deltas), cuts))
    llm, shown = llm_at(started_raw.base_url, retries=0), Shown()
    whole = ask(llm)
    assert shown.ask(llm) == whole
    assert shown.last == (whole.text, whole.thinking)
    assert not any("<" in text for text in shown.texts + shown.thinking)


class _ByteByByte(httpx2.AsyncByteStream):
    def __init__(self, data: bytes) -> None:
        self._data = data

    async def __aiter__(self) -> AsyncIterator[bytes]:
        for byte in self._data:
            yield bytes([byte])


@pytest.mark.parametrize("mark", ["", "\ufeff"])
def test_stream_that_is_read_byte_by_byte_is_understood(mark: str) -> None:
    """Loopback may join what was sent apart."""
    deltas = [{"content": piece} for piece in ("<thi", "nk>六乘九</th", "ink>四十", "二🤔")]
    _, headers, body = events(deltas)
    assert isinstance(body, str)
    response = httpx2.Response(200, headers=headers, stream=_ByteByByte(f"{mark}{body}".encode()))
    client = httpx2.AsyncClient(transport=httpx2.MockTransport(lambda _: response))
    chat = ReasoningChatOpenAI(model="m", api_key=KEY, http_async_client=client, max_retries=0)
    shown = Shown()
    completion = shown.ask(EndpointLLM(chat, gate=CallGate(1), retries=0))
    assert completion == Completion(text="四十二🤔", thinking="六乘九", finish_reason="stop")
    assert shown == Shown(texts=["四十", "四十二🤔"], thinking=["六乘九"])


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("answer", [chat_reply("42"), stream_reply({"content": "42"})], ids=["whole", "events"])
def test_reply_behind_a_byte_order_mark_is_read(raw: RawEndpoint, answer: Answer, streamed: bool) -> None:
    status, headers, body = answer
    raw.will_send((status, headers, f"\ufeff{body}"))
    assert ask(llm_at(raw.base_url, retries=0), on_text=Snapshots() if streamed else None).text == "42"


def test_answer_starts_over_when_it_turns_out_to_have_been_thinking(raw: RawEndpoint) -> None:
    raw.will_send(stream_reply(*({"content": piece} for piece in ("six ", "by nine</thi", "nk>", "\n42"))))
    shown = Shown()
    shown.ask(llm_at(raw.base_url))
    assert shown == Shown(texts=["six", "six by nine", "", "42"], thinking=["six by nine"])


def test_thinking_starts_over_when_reasoning_turns_out_to_be_the_answer(raw: RawEndpoint) -> None:
    raw.will_send(stream_reply({"reasoning": "4"}, {"reasoning": "2"}))
    shown = Shown()
    assert shown.ask(llm_at(raw.base_url)).text == "42"
    assert shown == Shown(texts=["42"], thinking=["4", "42", ""])


def test_thinking_alone_can_be_listened_to(raw: RawEndpoint) -> None:
    raw.will_send(stream_reply({"reasoning_content": "six "}, {"reasoning_content": "by nine"}, {"content": "42"}))
    thinking = Snapshots()
    ask(llm_at(raw.base_url), on_thinking=thinking)
    assert thinking == ["six", "six by nine"]
    assert raw.bodies[0]["stream"]


def test_what_a_broken_attempt_has_shown_is_withdrawn(raw: RawEndpoint) -> None:
    broken = stream_reply({"content": "<think>five</think>"})
    raw.will_send(broken, stream_reply({"content": "42"}))
    shown = Shown()
    assert shown.ask(llm_at(raw.base_url)) == Completion(text="42", thinking="", finish_reason="stop")
    assert shown == Shown(texts=["42"], thinking=["five", ""])


def test_stream_that_breaks_off_is_no_answer(raw: RawEndpoint) -> None:
    status, headers, body = stream_reply({"content": "4 mill"})
    broken_off = body.partition("\n\n")[0] + "\n\n"
    raw.will_send((status, headers, broken_off), stream_reply({"content": "4 millimetres"}))
    assert Shown().ask(llm_at(raw.base_url)).text == "4 millimetres"


def test_repeated_reason_of_an_end_is_that_reason(raw: RawEndpoint) -> None:
    status, headers, body = stream_reply({"content": "42"})
    *events, done, _ = body.split("\n\n")
    raw.will_send((status, headers, "\n\n".join([*events, events[-1], done, ""])))
    assert Shown().ask(llm_at(raw.base_url)).finish_reason == "stop"


def test_events_that_call_themselves_json_are_still_a_stream(raw: RawEndpoint) -> None:
    _, _, body = stream_reply({"content": "4"}, {"content": "2"})
    raw.will_send((200, {"Content-Type": "application/json"}, body))
    shown = Shown()
    shown.ask(llm_at(raw.base_url))
    assert shown.texts == ["4", "42"]


# --- endpoints that do not stream ---


@pytest.mark.parametrize("status", [400, 404, 405, 422, 501])
def test_endpoint_that_refuses_streams_is_asked_whole(
    raw: RawEndpoint, status: int, caplog: pytest.LogCaptureFixture
) -> None:
    raw.will_send(refusal(status), counted(chat_reply("42", reasoning="six by nine"), 7))
    llm, shown, meter = llm_at(raw.base_url), Shown(), CallMeter(node="generate")
    with caplog.at_level(logging.INFO, logger="judgetree.modules.llm.sending"):
        assert shown.ask(llm, meter) == Completion(text="42", thinking="six by nine", finish_reason="stop")
        assert shown == Shown(texts=["42"], thinking=["six by nine"])
        assert shown.ask(llm, meter).text == "42"
    assert [body["stream"] for body in raw.bodies] == [True, False, False]
    assert [(record["attempts"], record["completion_tokens"]) for record in meter.records] == [(1, 7), (1, 7)]
    (told,) = caplog.records
    assert (told.levelname, raw.base_url in told.message) == ("INFO", True)
    assert shown == Shown(texts=["42", "42"], thinking=["six by nine", "six by nine"])


@pytest.mark.parametrize("status", [400, 404, 405, 422])
def test_call_that_is_refused_whole_too_was_not_refused_for_the_stream(raw: RawEndpoint, status: int) -> None:
    llm, shown = llm_at(raw.base_url), Shown()
    raw.will_send(refusal(status))
    meter = CallMeter(node="generate")
    with pytest.raises((ModelSetupError, ModelRequestError), match="no such thing") as caught:
        shown.ask(llm, meter)
    assert (caught.value.status, meter.records[0]["attempts"]) == (status, 1)
    assert [body["stream"] for body in raw.bodies] == [True, False]
    raw.will_send(stream_reply({"content": "4"}, {"content": "2"}))
    shown.ask(llm)
    assert shown.texts == ["4", "42"], "it was not the stream that was refused"


@pytest.mark.parametrize("status", [401, 403, 413, 415])
def test_refusal_that_is_not_the_streams_is_told_at_once(raw: RawEndpoint, status: int) -> None:
    raw.will_send(refusal(status), chat_reply("42"))
    with pytest.raises((ModelSetupError, ModelRequestError)):
        Shown().ask(llm_at(raw.base_url))
    assert len(raw.bodies) == 1


def test_whole_call_that_fails_in_passing_is_tried_again(raw: RawEndpoint) -> None:
    raw.will_send(refusal(400), refusal(503), refusal(400), chat_reply("42"))
    meter, shown = CallMeter(node="generate"), Shown()
    assert shown.ask(llm_at(raw.base_url), meter).text == "42"
    assert (meter.records[0]["attempts"], shown.texts) == (2, ["42"])


def test_completion_instead_of_a_stream_is_paid_for_once(raw: RawEndpoint, caplog: pytest.LogCaptureFixture) -> None:
    raw.will_send(counted(chat_reply(None, reasoning_content="six</think>42"), 7))
    llm, shown, meter = llm_at(raw.base_url), Shown(), CallMeter(node="generate")
    with caplog.at_level(logging.INFO, logger="judgetree.modules.llm.sending"):
        assert shown.ask(llm, meter) == Completion(
            text="42", thinking="six", finish_reason="stop", is_from_thinking=True
        )
        assert shown == Shown(texts=["42"], thinking=["six"])
        shown.ask(llm, meter)
    assert [body["stream"] for body in raw.bodies] == [True, False]
    assert [record["prompt_tokens"] for record in meter.records] == [7, 7]
    assert len(caplog.records) == 1


@pytest.mark.parametrize("body", ['{"error": {"message": "overloaded"}}', "{}", "null", '{"choices": ['])
def test_reply_that_is_neither_stream_nor_completion_is_tried_again(raw: RawEndpoint, body: str) -> None:
    raw.will_send((200, {}, body), stream_reply({"content": "42"}))
    assert Shown().ask(llm_at(raw.base_url)).text == "42"
    assert [body["stream"] for body in raw.bodies] == [True, True]


@pytest.mark.parametrize("body", ["", ": ping\n\n", "data: [DONE]\n\n"])
def test_a_stream_without_an_event_is_told_so(raw: RawEndpoint, body: str) -> None:
    raw.will_send(*[(200, {"Content-Type": "text/event-stream"}, body)] * 3)
    with pytest.raises(ModelCallError, match="attempt 3 of 3: its stream has no piece of an answer"):
        Shown().ask(llm_at(raw.base_url))


@pytest.mark.parametrize("cuts", [[], [5], list(range(1, 2000))], ids=["whole", "cut", "bytes"])
def test_a_stream_that_says_it_is_done_is_whole_without_a_finish_reason(raw: RawEndpoint, cuts: list[int]) -> None:
    answer = stream_reply({"content": "5"}, {"content": "4"})
    raw.will_send(in_pieces(without_finish(answer, end="[DONE]"), cuts))
    assert Shown().ask(llm_at(raw.base_url, retries=0)).text == "54"
    assert len(raw.bodies) == 1
    raw.will_send(in_pieces(without_finish(answer, end='{"choices": []}'), cuts))
    with pytest.raises(ModelCallError, match="the stream broke off before the answer's end"):
        Shown().ask(llm_at(raw.base_url, retries=0))
