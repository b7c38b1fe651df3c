"""What a reply may take of time and memory, and what it may say that it used."""

from __future__ import annotations

import gc
import gzip
import itertools
import json
import threading
import tracemalloc
from collections.abc import Callable, Iterator

import pytest
from langchain_core.callbacks import BaseCallbackHandler

from judgetree.modules.addresses import LOCAL_ENDPOINT
from judgetree.modules.calls.growing_text import Delta
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.errors import ModelCallError
from tests.cpu_time import cpu_time_below
from tests.modules.model_endpoints import Answer, RawEndpoint, Snapshots, ask, chat_reply, llm_at, stream_reply

# --- what an attempt may take ---


def dripping(piece: bytes, gone: threading.Event) -> Iterator[bytes]:
    """Pieces without end, as fast as they are taken but for a rest after each."""
    while not gone.wait(0.01):
        yield piece


EVENT = stream_reply({"content": ""})[2].partition("\n\n")[0].encode() + b"\n\n"  # type: ignore[union-attr]
DRIPS = {"comments": (": ping\n\n", True), "empty events": (EVENT.decode(), True), "white space": (" ", False)}


@pytest.mark.parametrize(("piece", "streamed"), DRIPS.values(), ids=DRIPS)
def test_time_limit_is_that_of_the_whole_attempt(raw: RawEndpoint, piece: str, streamed: bool) -> None:
    gone = threading.Event()
    kind = "text/event-stream" if streamed else "application/json"
    raw.will_send((200, {"Content-Type": kind}, dripping(piece.encode(), gone)))
    try:
        with pytest.raises(ModelCallError, match=r"no whole reply came within 0\.2 s.*JUDGETREE_TIMEOUT_S"):
            ask(llm_at(raw.base_url, retries=0, timeout_s=0.2), on_text=Snapshots() if streamed else None)
    finally:
        gone.set()


def test_a_model_of_this_process_that_took_too_long_is_not_asked_again(raw: RawEndpoint) -> None:
    gone = threading.Event()
    raw.will_send((200, {"Content-Type": "application/json"}, dripping(b" ", gone)))
    try:
        with pytest.raises(ModelCallError, match=r"attempt 1 of 4: no whole reply came within 0\.2 s"):
            ask(llm_at(raw.base_url, endpoint=LOCAL_ENDPOINT, retries=3, timeout_s=0.2))
    finally:
        gone.set()


def test_stream_with_pauses_beyond_the_limit_is_honest(raw: RawEndpoint) -> None:
    _, headers, body = stream_reply(*({"content": piece} for piece in ("six ", "by ", "nine")))
    assert isinstance(body, str)
    raw.will_send((200, headers, (f"{event}\n\n".encode() for event in body.split("\n\n"))))
    assert ask(llm_at(raw.base_url, timeout_s=5), on_text=Snapshots()).text == "six by nine"


# --- how much a reply may hold ---


def endless(delta: dict[str, object]) -> Iterator[bytes]:
    event = stream_reply(delta)[2].partition("\n\n")[0].encode() + b"\n\n"  # type: ignore[union-attr]
    while True:
        yield event * 100


class Watched:
    """A body without end, and whether its connection was closed."""

    def __init__(self, events: Iterator[bytes]) -> None:
        self._events = events
        self.is_gone = threading.Event()

    def __iter__(self) -> Iterator[bytes]:
        try:
            yield from self._events
        finally:
            self.is_gone.set()


LONG = "six by nine " * 1000
TOO_MUCH: dict[str, tuple[bool, Callable[[], Answer]]] = {
    "text": (False, lambda: chat_reply(LONG)),
    "thinking": (False, lambda: chat_reply("42", reasoning_content=LONG)),
    "wire": (False, lambda: chat_reply("42", remark=LONG * 10)),
    "endless stream": (True, lambda: (200, {"Content-Type": "text/event-stream"}, endless({"content": "a"}))),
    "endless thinking": (True, lambda: (200, {"Content-Type": "text/event-stream"}, endless({"reasoning": "a"}))),
    "endless nothing": (True, lambda: (200, {"Content-Type": "text/event-stream"}, endless({"content": ""}))),
    "endless line": (True, lambda: (200, {"Content-Type": "text/event-stream"}, itertools.repeat(b"data: aaaa"))),
    "whole in place of a stream": (True, lambda: chat_reply(LONG)),
}


@pytest.mark.parametrize("heard_by", [[], [BaseCallbackHandler()]], ids=["unheard", "heard"])
@pytest.mark.parametrize("delta", [{"content": "a"}, {"reasoning": "a"}, {"content": ""}], ids=str)
def test_the_connection_of_a_reply_that_is_given_up_is_closed_at_once(
    raw: RawEndpoint, delta: dict[str, object], heard_by: list[BaseCallbackHandler]
) -> None:
    """Not when garbage is collected: the error of the call may be kept, and the stream with it."""
    raw.will_send((200, {"Content-Type": "text/event-stream"}, body := Watched(endless(delta))))
    llm = llm_at(raw.base_url, max_reply_bytes=1_000, retries=0)
    gc.disable()
    try:
        with pytest.raises(ModelCallError, match="longer than 1,000 bytes") as kept:
            ask(llm, on_text=Snapshots(), heard_by=heard_by)
        assert body.is_gone.wait(10), kept
    finally:
        gc.enable()


@pytest.mark.parametrize(("streamed", "answer"), TOO_MUCH.values(), ids=TOO_MUCH)
def test_too_long_a_reply_is_given_up_at_once(raw: RawEndpoint, streamed: bool, answer: Callable[[], Answer]) -> None:
    raw.will_send(answer(), chat_reply("42"))
    meter, llm = CallMeter(node="generate"), llm_at(raw.base_url, max_reply_bytes=10_000)
    with pytest.raises(ModelCallError, match=r"longer than 10,000 bytes\. To allow more: JUDGETREE_MAX_REPLY_BYTES"):
        ask(llm, meter, on_text=Snapshots() if streamed else None)
    assert meter.records[0]["attempts"] == 1
    assert ask(llm).text == "42"


def test_reply_that_is_nested_without_end_is_a_failed_attempt(raw: RawEndpoint) -> None:
    raw.will_send((200, {"Content-Type": "application/json"}, "[" * 50_000), chat_reply("42"))
    assert ask(llm_at(raw.base_url, retries=1)).text == "42"
    raw.will_send((200, {"Content-Type": "application/json"}, "[" * 50_000))
    with pytest.raises(ModelCallError, match="no chat completion"):
        ask(llm_at(raw.base_url, retries=0))


@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize("streamed", [False, True])
def test_packed_reply_is_not_unpacked(raw: RawEndpoint, streamed: bool, status: int) -> None:
    kind = {"Content-Type": "text/event-stream" if streamed else "application/json"}
    bomb = gzip.compress(b" " * 60_000_000)  # 58 kB
    raw.will_send((status, {**kind, "Content-Encoding": "gzip"}, iter([bomb])))
    tracemalloc.start()
    try:
        with pytest.raises(ModelCallError) as failure:
            ask(llm_at(raw.base_url, retries=0), on_text=Snapshots() if streamed else None)
        assert tracemalloc.get_traced_memory()[1] < 40_000_000  # imports take up to 20 MB
    finally:
        tracemalloc.stop()
    assert status == 500 or "its reply is packed (gzip)" in str(failure.value)


def test_body_of_an_error_is_not_read_to_its_end(raw: RawEndpoint) -> None:
    raw.will_send((500, {"Content-Type": "text/html"}, itertools.repeat(b"<p>down</p>" * 100)))
    with pytest.raises(ModelCallError, match="down"):
        ask(llm_at(raw.base_url, retries=0))


def test_stream_in_many_pieces_takes_a_time_linear_in_its_length(raw: RawEndpoint) -> None:
    raw.will_send(stream_reply(*[{"content": "stone "}] * 15_000))
    grown: list[Delta] = []
    with cpu_time_below(8):  # pieces cost about 0.15 ms each; all the text each time took 13 s
        answer = ask(llm_at(raw.base_url, timeout_s=60), on_text=grown.append).text
    assert "".join(delta.text for delta in grown) == answer
    assert sum(len(delta.text) for delta in grown) == len(answer)


# --- usage that an endpoint reports ---

WEIRD_NUMBERS = ["12", -1, 2**64, 1e30, 1.5, True, None, [], {"tokens": 3}]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("name", ["prompt_tokens", "completion_tokens"])
@pytest.mark.parametrize("number", WEIRD_NUMBERS, ids=repr)
def test_usage_that_cannot_be_is_unknown(raw: RawEndpoint, number: object, name: str, streamed: bool) -> None:
    usage = {"prompt_tokens": 3, "completion_tokens": 4, "total_tokens": 7, name: number}
    status, headers, body = stream_reply({"content": "42"}) if streamed else chat_reply("42")
    assert isinstance(body, str)
    if streamed:
        last = f"data: {json.dumps({'choices': [], 'usage': usage})}\n\ndata: [DONE]"
        body = body.replace("data: [DONE]", last)
    else:
        body = json.dumps({**json.loads(body), "usage": usage})
    raw.will_send((status, headers, body))
    meter = CallMeter(node="generate")
    assert ask(llm_at(raw.base_url, retries=0), meter, on_text=Snapshots() if streamed else None).text == "42"
    (record,) = meter.records
    assert record["prompt_tokens"] < 1000
    assert {type(record["prompt_tokens"]), type(record["completion_tokens"])} == {int}


@pytest.mark.parametrize("usage", ["12", 7, [1], {}, {"total_tokens": -1}], ids=repr)
def test_usage_of_another_kind_is_unknown(raw: RawEndpoint, usage: object) -> None:
    status, headers, body = chat_reply("42")
    assert isinstance(body, str)
    raw.will_send((status, headers, json.dumps({**json.loads(body), "usage": usage})))
    assert ask(llm_at(raw.base_url, retries=0)).text == "42"
