"""Server-sent events of models, as servers and gateways really write them."""

from __future__ import annotations

import asyncio
import itertools
import json
import threading
from collections.abc import AsyncIterator, Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgetree.modules.calls.completion import ReplyTooLong
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.errors import ModelCallError
from judgetree.modules.llm.wire.events import Event, events_in
from tests.cpu_time import cpu_time_below
from tests.modules.model_endpoints import Answer, RawEndpoint, Snapshots, ask, llm_at, stream_of, stream_reply

USED = {"choices": [], "usage": {"prompt_tokens": 7, "completion_tokens": 2}}


async def cut(data: bytes, cuts: list[int]) -> AsyncIterator[bytes]:
    borders = [0, *sorted(each for each in cuts if each < len(data)), len(data)]
    for start, end in itertools.pairwise(borders):
        yield data[start:end]


def read(data: bytes, cuts: list[int] | None = None, max_bytes: int = 10_000) -> list[Event]:
    async def collect() -> list[Event]:
        return [event async for event in events_in(cut(data, cuts or []), max_bytes=max_bytes)]

    return asyncio.run(collect())


@pytest.mark.parametrize("end", ["\n", "\r", "\r\n"])
@given(
    texts=st.lists(st.sampled_from(["六", "a\u2028b", "\x85", " x", "", "🤔 : y"]), max_size=5),
    cuts=st.lists(st.integers(0, 200), max_size=30),
)
def test_lines_end_by_any_sign_and_pieces_anywhere(end: str, texts: list[str], cuts: list[int]) -> None:
    """Other signs that Python calls ends of a line are text."""
    events = [f": kept open{end}event: note{end}data: {text}{end}data:{text}{end}id: 7{end}{end}" for text in texts]
    expected = [Event("note", f"{text}\n{text.removeprefix(' ')}") for text in texts]
    assert read("".join(events).encode(), cuts) == expected


def test_the_last_event_is_read_though_no_blank_line_follows() -> None:
    assert read(b"data: [DONE]") == [Event("", "[DONE]", is_ended=False)]
    assert read(b"data: a\n\nda") == [Event("", "a")]


def test_events_are_read_in_linear_time_and_not_without_end() -> None:
    lines = b"data: x\n" * 60_000
    with cpu_time_below(1):
        (event,) = read(lines + b"\n", list(range(0, len(lines), 7)), max_bytes=200_000)
    assert event.data == "\n".join("x" * 60_000)
    with pytest.raises(ReplyTooLong):
        read(lines, max_bytes=1_000)


def with_events(more: str, answer: Answer | None = None) -> Answer:
    """A stream with other events before, between and behind its own."""
    status, headers, body = answer or stream_reply({"content": "4"}, {"content": "2"})
    assert isinstance(body, str)
    return status, headers, more + body.replace("\n\n", f"\n\n{more}")


@pytest.mark.parametrize(
    "more",
    [
        "data:\n\n",
        "data: \n\n",
        "data\n\n",
        "retry: 3000\n\n",
        "id: 7\n\n",
        "event: ping\n\n",
        "event: ping\ndata:\n\n",
        "event: ping\ndata: {}\n\n",
        'event: ping\ndata: {"type": "ping"}\n\n',
        ": kept open\n\n",
        "\n\n\n",
        "id: 7\nretry: 10\nunknown: x\nunknown\n",
    ],
)
@pytest.mark.parametrize("streamed", [True, False])
def test_events_that_say_nothing_do_no_harm(raw: RawEndpoint, more: str, streamed: bool) -> None:
    """Gateways keep connections open by them; the reply is paid."""
    raw.will_send(with_events(more))
    heard = Snapshots()
    assert ask(llm_at(raw.base_url, retries=0), on_text=heard if streamed else None).text == "42"
    assert heard == (["4", "42"] if streamed else [])
    assert len(raw.bodies) == 1


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ('{"message": "overloaded", "type": "server_error"}', "overloaded"),
        ('{"error": {"message": "overloaded"}}', "overloaded"),
        ('{"error": "overloaded"}', "overloaded"),
        ('"overloaded"', "overloaded"),
        ("overloaded", "overloaded"),
        ("{}", "an error without words"),
    ],
)
@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("streamed", [True, False])
def test_an_event_of_an_error_is_one(raw: RawEndpoint, said: str, shown: str, begun: bool, streamed: bool) -> None:
    status, headers, body = stream_reply({"content": "4"})
    assert isinstance(body, str)
    first = body[: body.index("\n\n") + 2] if begun else ""
    raw.will_send((status, headers, f"{first}event: error\ndata: {said}\n\n"), stream_reply({"content": "42"}))
    assert ask(llm_at(raw.base_url, retries=1), on_text=Snapshots() if streamed else None).text == "42"
    assert len(raw.bodies) == 2
    raw.will_send((status, headers, f"{first}event: error\ndata: {said}\n\n"))
    with pytest.raises(ModelCallError, match=shown):
        ask(llm_at(raw.base_url, retries=0), on_text=Snapshots() if streamed else None)


@pytest.mark.parametrize(
    "line",
    [
        'data: {"detail": "overloaded"}\n\n',
        '{"error": {"message": "overloaded"}}\n',
        'error: {"code": 500, "message": "overloaded"}\n\n',
        '  {"error": {"message": "overloaded"}}\n',
        '{"code": 500, "message": "overloaded"}\n',
    ],
)
@pytest.mark.parametrize("begun", [False, True])
@pytest.mark.parametrize("streamed", [True, False])
def test_an_error_in_a_form_of_its_own_is_one(raw: RawEndpoint, line: str, begun: bool, streamed: bool) -> None:
    """vLLM, proxies and llama.cpp write these, and then that the stream is done."""
    status, headers, body = stream_reply({"content": "4"})
    assert isinstance(body, str)
    first = body[: body.index("\n\n") + 2] if begun else ""
    raw.will_send((status, headers, f"{first}{line}data: [DONE]\n\n"))
    with pytest.raises(ModelCallError, match="overloaded"):
        ask(llm_at(raw.base_url, retries=0), on_text=Snapshots() if streamed else None)


@pytest.mark.parametrize("kind", ["text/event-stream", "text/plain"])
@pytest.mark.parametrize("indent", [None, 2])
@pytest.mark.parametrize("streamed", [True, False])
def test_a_whole_reply_in_place_of_events_is_read(
    raw: RawEndpoint, kind: str, indent: int | None, streamed: bool
) -> None:
    choice = {"index": 0, "message": {"content": "54"}, "finish_reason": "stop"}
    reply = {"error": None, "choices": [choice], "usage": {"prompt_tokens": 7, "completion_tokens": 2}}
    raw.will_send((200, {"Content-Type": kind}, "\n  " + json.dumps(reply, indent=indent)))
    meter = CallMeter(node="generate")
    assert ask(llm_at(raw.base_url, retries=0), meter, on_text=Snapshots() if streamed else None).text == "54"
    assert meter.records[0]["prompt_tokens"] == 7
    raw.will_send((200, {"Content-Type": kind}, json.dumps({"error": {"message": "overloaded"}}, indent=indent)))
    with pytest.raises(ModelCallError, match="overloaded"):
        ask(llm_at(raw.base_url, retries=0), on_text=Snapshots() if streamed else None)


@pytest.mark.parametrize("more", ['{"status": "processing"}\n\n', "{\n", '{"error": null}\n'])
@pytest.mark.parametrize("streamed", [True, False])
def test_an_object_before_the_events_does_no_harm(raw: RawEndpoint, more: str, streamed: bool) -> None:
    status, headers, body = stream_reply({"content": "4"}, {"content": "2"})
    assert isinstance(body, str)
    raw.will_send((status, headers, more + body))
    assert ask(llm_at(raw.base_url, retries=0), on_text=Snapshots() if streamed else None).text == "42"


@pytest.mark.parametrize(
    "besides",
    [
        {"detail": "on host a"},
        {"message": "Success", "code": 200},
        {"message": "ok", "code": "Success"},
        {"message": "ok", "code": "0"},
        {"error": {"code": 0, "message": ""}},
        {"error": {}},
    ],
)
@pytest.mark.parametrize("streamed", [True, False])
def test_what_says_that_all_is_well_is_no_error(raw: RawEndpoint, besides: dict[str, object], streamed: bool) -> None:
    choice = {"index": 0, "message": {"content": "54"}, "delta": {"content": "54"}, "finish_reason": "stop"}
    reply = {"choices": [choice], **besides}
    last = {"choices": [], **besides}
    raw.will_send(stream_of(reply, last) if streamed else (200, {}, json.dumps(reply)))
    assert ask(llm_at(raw.base_url, retries=0), on_text=Snapshots() if streamed else None).text == "54"


@pytest.mark.parametrize("delta", [{"delta": None}, {"delta": {}}, {}])
@pytest.mark.parametrize("reason", ["length", "content_filter"])
def test_a_last_piece_without_text_says_how_the_reply_ended(
    raw: RawEndpoint, delta: dict[str, object], reason: str
) -> None:
    first = {"choices": [{"index": 0, "delta": {"content": "54"}, "finish_reason": None}]}
    last = {"choices": [{"index": 0, **delta, "finish_reason": reason}], "usage": USED["usage"]}
    raw.will_send(stream_of(first, last))
    meter = CallMeter(node="generate")
    assert ask(llm_at(raw.base_url, retries=0), meter, on_text=Snapshots()).finish_reason == reason
    assert (meter.records[0]["prompt_tokens"], meter.records[0]["estimated"]) == (7, False)


@pytest.mark.parametrize("thinking", [[{"type": "text", "text": "6·9"}], "6·9"])
def test_thinking_among_the_parts_of_a_content_is_thinking(raw: RawEndpoint, thinking: object) -> None:
    parts = [{"type": "thinking", "thinking": thinking}, {"type": "text", "text": "54"}]
    deltas = [{"content": parts[:1]}, {"content": parts[1:]}]
    pieces = [{"choices": [{"index": 0, "delta": delta, "finish_reason": None}]} for delta in deltas]
    raw.will_send(stream_of(*pieces, {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]}))
    found = ask(llm_at(raw.base_url, retries=0), on_text=Snapshots())
    assert (found.text, found.thinking) == ("54", "6·9")
    whole = {"choices": [{"index": 0, "message": {"content": parts}, "finish_reason": "stop"}]}
    raw.will_send((200, {"Content-Type": "application/json"}, json.dumps(whole)))
    found = ask(llm_at(raw.base_url, retries=0))
    assert (found.text, found.thinking) == ("54", "6·9")


def test_the_usage_of_groqs_streams_is_read(raw: RawEndpoint) -> None:
    first = {"choices": [{"index": 0, "delta": {"content": "54"}, "finish_reason": None}]}
    last = {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}], "x_groq": {"usage": USED["usage"]}}
    raw.will_send(stream_of(first, last))
    meter = CallMeter(node="generate")
    ask(llm_at(raw.base_url, retries=0), meter, on_text=Snapshots())
    assert (meter.records[0]["prompt_tokens"], meter.records[0]["estimated"]) == (7, False)


@pytest.mark.parametrize("streamed", [True, False])
@pytest.mark.parametrize(
    ("reason", "ended"),
    [
        *((each, "length") for each in ("length", "MAX_TOKENS", "max_tokens", "model_length", "max_output_tokens")),
        *((each, "length") for each in ("MaxTokens", "token limit", "truncated", "incomplete", "repetition")),
        *((each, "stop") for each in ("rate_limit", "MALFORMED_RESPONSE")),
        *((each, "stop") for each in ("insufficient_system_resource", "abort", "error", "timeout")),
        *((each, each) for each in ("stop", "eos", "end_turn", "COMPLETE")),
    ],
)
def test_a_reply_that_was_cut_or_broken_off_is_no_whole_one(
    raw: RawEndpoint, reason: str, ended: str, *, streamed: bool
) -> None:
    """What was broken off is asked for again, and is paid."""

    def reply(reason: str) -> Answer:
        if streamed:
            piece = {"choices": [{"index": 0, "delta": {"content": "must not be op"}, "finish_reason": reason}]}
            return stream_of(piece, USED)
        choice = {"index": 0, "message": {"content": "must not be op"}, "finish_reason": reason}
        return 200, {"Content-Type": "application/json"}, json.dumps({"choices": [choice], "usage": USED["usage"]})

    raw.will_send(reply(reason), reply("stop"))
    meter = CallMeter(node="generate")
    found = ask(llm_at(raw.base_url, retries=1), meter, on_text=Snapshots() if streamed else None)
    is_broken = ended != reason and ended == "stop"
    assert (found.finish_reason, found.is_cut_off) == (ended, ended == "length")
    assert [record["prompt_tokens"] for record in meter.records] == [7] * (1 + is_broken)
    assert [record["cut_off"] for record in meter.records][-1] == (ended == "length")


def test_an_error_is_told_though_its_stream_stays_open(raw: RawEndpoint) -> None:
    """Its usage may follow, and is waited for no longer than a moment."""
    gone = threading.Event()

    def left_open() -> Iterator[bytes]:
        yield b'event: error\ndata: {"message": "overloaded"}\n\n'
        gone.wait(60)

    raw.will_send((200, {"Content-Type": "text/event-stream"}, left_open()))
    try:
        with pytest.raises(ModelCallError, match="overloaded"):
            ask(llm_at(raw.base_url, retries=0, timeout_s=50), on_text=Snapshots())
    finally:
        gone.set()


@pytest.mark.parametrize("kind", ["text/event-stream", "application/json", "text/plain", "application/x-ndjson"])
@pytest.mark.parametrize("streamed", [True, False])
def test_events_in_place_of_a_whole_reply_are_read_and_counted(raw: RawEndpoint, kind: str, streamed: bool) -> None:
    """Some gateways stream whatever is asked for."""
    choices = [{"index": 0, "delta": {"content": text}, "finish_reason": None} for text in ("<think>6·9</think>", "54")]
    done = {"index": 0, "delta": {}, "finish_reason": "length"}
    pieces = [*({"choices": [choice]} for choice in choices), {"choices": [done]}, USED]
    status, _, body = stream_of(*pieces)
    raw.will_send((status, {"Content-Type": kind}, body))
    meter = CallMeter(node="generate")
    completion = ask(llm_at(raw.base_url, retries=0), meter, on_text=Snapshots() if streamed else None)
    assert (completion.text, completion.thinking, completion.finish_reason) == ("54", "6·9", "length")
    (record,) = meter.records
    assert (record["prompt_tokens"], record["completion_tokens"], record["estimated"]) == (7, 2, False)


def test_events_in_place_of_a_whole_reply_that_break_off_are_no_answer(raw: RawEndpoint) -> None:
    status, headers, body = stream_reply({"content": "4"}, {"content": "2"})
    assert isinstance(body, str)
    raw.will_send((status, headers, body[: body.index('"stop"')]), stream_reply({"content": "54"}))
    assert ask(llm_at(raw.base_url, retries=1)).text == "54"
    assert len(raw.bodies) == 2


def test_a_broken_event_is_told_and_counted(raw: RawEndpoint) -> None:
    raw.will_send((200, {"Content-Type": "text/event-stream"}, f"data: {{broken\n\ndata: {json.dumps(USED)}\n\n"))
    meter = CallMeter(node="generate")
    with pytest.raises(ModelCallError, match="JSON"):
        ask(llm_at(raw.base_url, retries=0), meter, on_text=Snapshots())
    assert meter.records[0]["prompt_tokens"] == 7
