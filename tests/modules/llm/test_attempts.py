"""A model behind an endpoint: which calls are tried again, after how long, and how many run at once."""

from __future__ import annotations

import asyncio
import contextlib
import errno
import itertools
import json
import re
import socket
import socketserver
import threading
import time
from collections.abc import Callable, Iterator
from email.utils import formatdate
from pathlib import Path

import httpx
import httpx2
import openai
import pytest
import requests

from judgetree.app.scripted.answers import ChatReply
from judgetree.app.scripted.server import ScriptedServer
from judgetree.app.scripted.wire import ReceivedRequest
from judgetree.modules.background_loop import background_loop
from judgetree.modules.calls.completion import Completion
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.errors import ModelCallError, ModelRequestError, ModelSetupError
from judgetree.modules.llm.attempts import endpoint_failure, is_congestion, retry_after_s
from judgetree.modules.llm.call_gate import CallGate
from tests.modules.model_endpoints import (
    KEY,
    QUESTION,
    Answer,
    Clock,
    RawEndpoint,
    Snapshots,
    ask,
    chat_reply,
    llm_at,
    saying,
    serve_raw,
    serve_tls,
    stream_reply,
)

# --- what is tried again ---


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("fault", ["429", "500", "drop", "timeout", "empty"])
def test_failed_call_is_tried_again_and_counted(server: ScriptedServer, fault: str, streamed: bool) -> None:
    server.configure(faults={fault: 1.0}, fault_attempts=2)
    meter, clock = CallMeter(node="generate"), Clock()
    llm = llm_at(server.base_url, sleep=clock.sleep, timeout_s=0.5 if fault == "timeout" else 10.0)
    assert ask(llm, meter, on_text=(lambda _: None) if streamed else None).text == "42"
    *failed, record = meter.records
    assert (record["attempts"], record["error"], record["kind"], record["model"]) == (3, "", "chat", "m")
    may_be_billed = fault in ("drop", "timeout", "empty")
    assert [each["attempts"] for each in failed] == ([1, 2] if may_be_billed else [])
    assert all(each["prompt_tokens"] and each["error"] for each in failed)
    assert server.requests["other"] == 3
    assert len(clock.slept_s) == 2


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port: int = listener.getsockname()[1]
    return port


@pytest.mark.parametrize(
    ("base_url", "words"),
    [
        (lambda: f"http://127.0.0.1:{closed_port()}/v1", "the connection was refused .* start the server"),
        (lambda: "http://no-such-host.invalid/v1", "its host name is unknown .* correct the address"),
    ],
    ids=["refused", "unknown host"],
)
def test_endpoint_that_is_not_there_is_retried_and_named(base_url: Callable[[], str], words: str) -> None:
    meter, address = CallMeter(node="generate"), base_url()
    with pytest.raises(ModelSetupError, match=rf"(?s)'m' at {address} cannot be reached: .*{words}") as caught:
        ask(llm_at(address), meter)
    assert "timed out" not in str(caught.value)
    assert "attempt 3 of 3" in str(caught.value)
    assert caught.value.__cause__ is not None
    assert meter.records[0]["attempts"] == 3


@pytest.mark.parametrize("post", [httpx.post, httpx2.post, requests.post], ids=["httpx", "httpx2", "requests"])
def test_refused_connection_is_found_below_the_error_of_every_client(post: Callable[[str], object]) -> None:
    with pytest.raises((httpx.HTTPError, httpx2.HTTPError, requests.RequestException)) as caught:
        post(f"http://127.0.0.1:{closed_port()}/v1")
    assert endpoint_failure(caught.value).what == "the connection was refused"


def test_network_that_leads_nowhere_is_named_and_no_time_out() -> None:
    nowhere = httpx2.ConnectTimeout("as aiohttp's transport raises it")
    nowhere.__cause__ = OSError(errno.ENETUNREACH, "Connect call failed ('2001:db8::1', 9)")
    found = endpoint_failure(nowhere)
    assert (found.error_class, found.is_final) == (ModelSetupError, False)
    assert found.what == "no network leads to it"


def test_failure_while_another_was_handled_is_not_the_other_one() -> None:
    try:
        try:
            raise ConnectionRefusedError(111, "Connection refused")  # of another endpoint
        except ConnectionRefusedError:
            raise ValueError("the answer of the second model is empty")  # noqa: B904 - a context, and no cause
    except ValueError as error:
        assert (endpoint_failure(error).error_class, endpoint_failure(error).what) == (ModelCallError, "")


def test_error_that_is_its_own_cause_is_looked_at_once() -> None:
    error = ValueError("the answer is empty")
    error.__cause__ = error
    assert endpoint_failure(error).what == ""
    assert not is_congestion(error)


@pytest.mark.parametrize("is_tls", [False, True], ids=["speaks no TLS", "certificate not trusted"])
def test_tls_that_fails_is_named_and_not_tried_again(raw: RawEndpoint, tmp_path: Path, is_tls: bool) -> None:
    meter = CallMeter(node="generate")
    words = "certificate is not accepted" if is_tls else r"no TLS connection.*begins with https:// or http://"
    plain = contextlib.nullcontext(raw.base_url.replace("http://", "https://"))
    with serve_tls(tmp_path) if is_tls else plain as base_url, pytest.raises(ModelSetupError, match=words):
        ask(llm_at(base_url), meter)
    assert meter.records[0]["attempts"] == 1


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("location", "shown"),
    [
        ("{elsewhere}/chat/completions?key=sk-1", "{elsewhere}/chat/completions"),
        ("http://ada:secret@127.0.0.1:1/v1", "http://127.0.0.1:1/v1"),
        ("/v2/chat", "http://{host}/v2/chat"),
        ("http://host:port/", "another address"),
    ],
)
def test_redirect_is_named_and_not_followed(raw: RawEndpoint, location: str, shown: str, streamed: bool) -> None:
    meter = CallMeter(node="generate")
    with serve_raw() as elsewhere:
        names = {"elsewhere": elsewhere.base_url, "host": raw.base_url.split("/")[2]}
        raw.will_send((308, {"Location": location.format(**names)}, ""))
        words = (
            rf"cannot be reached: it redirects to {re.escape(shown.format(**names))}, where nothing is sent .* To do: "
        )
        with pytest.raises(ModelSetupError, match=words) as caught:
            ask(llm_at(raw.base_url), meter, on_text=(lambda _: None) if streamed else None)
        assert (elsewhere.bodies, len(raw.bodies), meter.records[0]["attempts"]) == ([], 1, 1)
    assert "secret" not in str(caught.value)
    assert "sk-1" not in str(caught.value)


@pytest.mark.parametrize("status", [302, 303, 307])
def test_redirect_for_a_while_is_tried_again_and_not_followed(raw: RawEndpoint, status: int) -> None:
    meter = CallMeter(node="generate")
    with serve_raw() as elsewhere:
        raw.will_send(*[(status, {"Location": f"{elsewhere.base_url}/sorry"}, "")] * 2, chat_reply("42"))
        assert ask(llm_at(raw.base_url), meter).text
        assert (elsewhere.bodies, meter.records[0]["attempts"]) == ([], 3)


def test_redirect_is_not_followed_on_a_loop_of_the_user_either(raw: RawEndpoint) -> None:
    with serve_raw() as elsewhere:
        raw.will_send((307, {"Location": f"{elsewhere.base_url}/chat/completions"}, ""))
        client = llm_at(raw.base_url)._chat
        with pytest.raises(openai.APIConnectionError) as caught:
            asyncio.run(client.ainvoke("a"))
        assert elsewhere.bodies == []
    assert endpoint_failure(caught.value).what.startswith("it redirects to")


@pytest.mark.parametrize(("status", "code"), [(429, "insufficient_quota"), (429, "Arrearage"), (400, "Arrearage")])
def test_spent_quota_is_not_waited_for(raw: RawEndpoint, status: int, code: str) -> None:
    raw.will_send((status, {}, json.dumps({"error": {"message": "no more", "code": code, "type": code}})))
    meter, clock = CallMeter(node="generate"), Clock()
    with pytest.raises(ModelSetupError, match="no more"):
        ask(llm_at(raw.base_url, sleep=clock.sleep), meter)
    assert (meter.records[0]["attempts"], clock.slept_s) == (1, [])


def test_last_attempt_that_fails_raises_and_leaves_a_record(server: ScriptedServer) -> None:
    server.configure(faults={"500": 1.0})
    meter, clock = CallMeter(node="generate"), Clock()
    with pytest.raises(ModelCallError, match="attempt 3 of 3") as caught:
        ask(llm_at(server.base_url, sleep=clock.sleep), meter)
    (record,) = meter.records
    assert record["attempts"] == 3
    assert record["error"] == str(caught.value)
    assert len(clock.slept_s) == 2, "nothing is waited for after the last attempt"


def test_waits_double_from_attempt_to_attempt(server: ScriptedServer) -> None:
    server.configure(faults={"500": 1.0})
    clock = Clock()
    with pytest.raises(ModelCallError):
        ask(llm_at(server.base_url, retries=4, sleep=clock.sleep))
    assert len(clock.slept_s) == 4
    for number, waited_s in enumerate(clock.slept_s):
        assert 0.25 * 2**number <= waited_s <= 0.75 * 2**number


@pytest.mark.parametrize(
    ("value", "least_s", "most_s"),
    [
        ("8", 8, 10),
        ("7.5", 7.5, 9.375),
        ("3600", 60, 75),
        ("inf", 60, 75),
        ("-5", 0.25, 0.75),
        ("0", 0.25, 0.75),
        ("nan", 0.25, 0.75),
        ("soon", 0.25, 0.75),
        ("Fri, 31 Dec 99999999999999999999 23:59:59 GMT", 0.25, 0.75),
        ("Thu, 31 Dec 2015 23:59:59 +99999999999999", 0.25, 0.75),
        ("", 0.25, 0.75),
        ("in 20 seconds", 17, 26),
        ("an hour ago", 0.25, 0.75),
    ],
)
def test_retry_after_is_honoured_up_to_a_minute(raw: RawEndpoint, value: str, least_s: float, most_s: float) -> None:
    date = {"in 20 seconds": time.time() + 20, "an hour ago": time.time() - 3600}.get(value)
    header = formatdate(date, usegmt=True) if date else value
    clock = Clock()
    raw.will_send((429, {"Retry-After": header}, "{}"), chat_reply("42"))
    assert ask(llm_at(raw.base_url, sleep=clock.sleep)).text == "42"
    (waited_s,) = clock.slept_s
    assert least_s <= waited_s <= most_s


@pytest.mark.parametrize("behind_s", [3600, 0, -3600])
def test_a_moment_to_retry_after_is_compared_with_the_endpoints_own_date(behind_s: float) -> None:
    theirs = time.time() - behind_s
    dates = {"Date": formatdate(theirs, usegmt=True), "Retry-After": formatdate(theirs + 20, usegmt=True)}
    request = httpx.Request("POST", "http://x")
    refused = httpx.HTTPStatusError("429", request=request, response=httpx.Response(429, headers=dates))
    assert retry_after_s(refused) == 20


@pytest.mark.parametrize(
    ("status", "remedy", "kind"),
    [
        (400, "check the request", ModelRequestError),
        (401, "check the API key", ModelSetupError),
        (402, "check the account's balance", ModelSetupError),
        (403, "check what the key may use", ModelSetupError),
        (404, "check the model's name", ModelSetupError),
        (422, "check the request", ModelRequestError),
    ],
)
def test_refusal_is_final_and_has_a_remedy(
    server: ScriptedServer, status: int, remedy: str, kind: type[ModelCallError]
) -> None:
    server.responses = saying(ChatReply(status=status, text="no such thing"))
    meter, clock = CallMeter(node="generate"), Clock()
    with pytest.raises(kind) as caught:
        ask(llm_at(server.base_url, sleep=clock.sleep), meter)
    for part in ("'m'", server.base_url, f"HTTP {status}", "no such thing", f"To do: {remedy}"):
        assert part in str(caught.value)
    assert caught.value.status == status
    assert (server.requests["other"], clock.slept_s) == (1, [])
    assert (meter.records[0]["attempts"], meter.records[0]["error"]) == (1, str(caught.value))


def test_thinking_that_used_up_all_tokens_is_not_paid_for_again(server: ScriptedServer) -> None:
    server.responses = saying(ChatReply(text="<think>six by", finish_reason="length"))
    meter = CallMeter(node="generate")
    with pytest.raises(ModelCallError, match=r"used up its tokens.*max_tokens"):
        ask(llm_at(server.base_url), meter, max_tokens=4)
    assert server.requests["other"] == 1
    assert meter.records[0]["completion_tokens"] == 4


MALFORMED = {
    "null": (200, {}, "null"),
    "list": (200, {}, "[]"),
    "no choices": (200, {}, "{}"),
    "null for choices": (200, {}, '{"choices": null}'),
    "empty choices": (200, {}, '{"choices": []}'),
    "empty choice": (200, {}, '{"choices": [{}]}'),
    "message without a role": (200, {}, '{"choices": [{"message": {}}]}'),
    "null content": chat_reply(None),
    "error with status 200": (200, {}, '{"error": {"message": "overloaded"}}'),
    "half of it": (200, {}, '{"choices": ['),
    "nothing": (200, {}, ""),
}
MALFORMED_STREAMS = {
    "nothing": (200, {"Content-Type": "text/event-stream"}, ""),
    "no answer": stream_reply({"role": "assistant"}),
    "no JSON": (200, {"Content-Type": "text/event-stream"}, "data: nonsense\n\n"),
    "null": (200, {"Content-Type": "text/event-stream"}, "data: null\n\n"),
    "null for choices": (200, {"Content-Type": "text/event-stream"}, 'data: {"choices": null}\n\n'),
    "null for delta": (200, {"Content-Type": "text/event-stream"}, 'data: {"choices": [{"delta": null}]}\n\n'),
    "error": (200, {"Content-Type": "text/event-stream"}, 'data: {"error": {"message": "overloaded"}}\n\n'),
}


@pytest.mark.parametrize(
    ("answer", "streamed"),
    [*((answer, False) for answer in MALFORMED.values()), *((answer, True) for answer in MALFORMED_STREAMS.values())],
    ids=[*MALFORMED, *(f"stream: {name}" for name in MALFORMED_STREAMS)],
)
def test_malformed_reply_is_tried_again(raw: RawEndpoint, answer: Answer, streamed: bool) -> None:
    on_text = Snapshots() if streamed else None
    raw.will_send(answer, stream_reply({"content": "42"}) if streamed else chat_reply("42"))
    assert ask(llm_at(raw.base_url), on_text=on_text).text == "42"
    raw.will_send(answer)
    with pytest.raises(ModelCallError, match="attempt 1 of 1"):
        ask(llm_at(raw.base_url, retries=0), on_text=on_text)


PAGES = {
    "a login page": (200, {"Content-Type": "text/html; charset=utf-8"}, "\n<!DOCTYPE html><html>log in</html>"),
    "XML": (200, {"Content-Type": "text/html"}, "<?xml version='1.0'?><a/>"),
}


@pytest.mark.parametrize("page", PAGES.values(), ids=PAGES)
@pytest.mark.parametrize("streamed", [False, True])
def test_a_page_in_place_of_a_reply_is_tried_again_and_not_booked(
    raw: RawEndpoint, page: Answer, streamed: bool
) -> None:
    raw.will_send(page, stream_reply({"content": "42"}) if streamed else chat_reply("42"))
    assert ask(llm_at(raw.base_url), on_text=Snapshots() if streamed else None).text == "42", (
        "a gateway's, for a moment"
    )
    raw.bodies.clear()
    raw.will_send(*[page] * 3)
    meter = CallMeter(node="generate")
    words = r"it is no chat completion \(text/html\): check the address, which usually ends in /v1"
    with pytest.raises(ModelSetupError, match=words):
        ask(llm_at(raw.base_url), meter, on_text=Snapshots() if streamed else None)
    (record,) = meter.records
    assert (record["prompt_tokens"], record["attempts"], len(raw.bodies)) == (0, 3, 3)


@pytest.mark.parametrize("streamed", [False, True])
def test_a_reply_that_is_called_a_page_is_read(raw: RawEndpoint, streamed: bool) -> None:
    status, _, body = stream_reply({"content": "42"}) if streamed else chat_reply("42")
    raw.will_send((status, {"Content-Type": "text/html"}, body))
    assert ask(llm_at(raw.base_url), on_text=Snapshots() if streamed else None).text == "42"


@contextlib.contextmanager
def closing_server() -> Iterator[str]:
    """The address of a server that reads a request and closes the connection."""

    class Handler(socketserver.BaseRequestHandler):
        def handle(self) -> None:
            self.request.recv(65_536)

    with socketserver.ThreadingTCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}/v1"
        server.shutdown()
        thread.join()


@pytest.mark.parametrize("streamed", [False, True])
def test_a_connection_that_is_closed_before_the_reply_is_no_time_out(streamed: bool) -> None:
    meter, clock, gate = CallMeter(node="generate"), Clock(), CallGate(4)
    words = "failed in attempt 3 of 3: the server closed the connection before its reply"
    with closing_server() as base_url, pytest.raises(ModelCallError, match=words) as caught:
        llm = llm_at(base_url, sleep=clock.sleep, gate=gate)
        ask(llm, meter, on_text=Snapshots() if streamed else None)
    assert not isinstance(caught.value, ModelSetupError)
    assert "TIMEOUT" not in str(caught.value)
    assert not is_congestion(caught.value)
    assert not is_congestion(caught.value.__cause__ or caught.value)
    (record,) = meter.records
    assert (record["prompt_tokens"], record["attempts"], len(clock.slept_s)) == (0, 3, 2)


@pytest.mark.parametrize("kind", [httpx.RemoteProtocolError, httpx2.RemoteProtocolError, ConnectionResetError])
def test_every_clients_word_for_a_closed_connection_is_known(kind: type[Exception]) -> None:
    error = openai.APIConnectionError(request=httpx2.Request("POST", "http://x"))
    error.__cause__ = kind("Server disconnected without sending a response.")
    assert endpoint_failure(error).what == "the server closed the connection before its reply"


PROMPTS = {
    "openrouter": (403, "Input was flagged", {"metadata": {"reasons": ["x"], "flagged_input": "?"}}, True),
    "xai": (403, "Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO", {}, True),
    "a code": (403, "Forbidden", {"code": "content_filter"}, True),
    "a policy": (403, "The prompt is against our policy", {}, True),
    "an account": (403, "Your account was flagged for a violation of our policies", {}, False),
    "a key": (403, "The key may not use this model", {}, False),
    "aws": (403, "User is not authorized: no identity-based policy allows this request", {}, False),
}


@pytest.mark.parametrize(("status", "message", "more", "is_one_prompt"), PROMPTS.values(), ids=PROMPTS)
def test_what_a_prompt_says_is_no_fault_of_the_key(
    raw: RawEndpoint, status: int, message: str, more: dict[str, object], is_one_prompt: bool
) -> None:
    raw.will_send((status, {}, json.dumps({"error": {"message": message, **more}})))
    with pytest.raises(ModelCallError) as caught:
        ask(llm_at(raw.base_url))
    assert type(caught.value) is (ModelRequestError if is_one_prompt else ModelSetupError)
    assert ("key may use" in str(caught.value)) == (not is_one_prompt)
    assert len(raw.bodies) == 1


@pytest.mark.parametrize("streamed", [False, True])
def test_error_in_place_of_a_reply_that_has_come_is_booked(raw: RawEndpoint, streamed: bool) -> None:
    raw.will_send(MALFORMED_STREAMS["error"] if streamed else MALFORMED["error with status 200"])
    meter = CallMeter(node="generate")
    with pytest.raises(ModelCallError, match="overloaded"):
        ask(llm_at(raw.base_url, retries=0), meter, on_text=Snapshots() if streamed else None)
    (record,) = meter.records
    assert record["prompt_tokens"] > 0


@pytest.mark.parametrize(
    ("sent", "repeated"), [(KEY, KEY), ("0123456789", "0123456789"), (KEY, "sk-another-one-of-its-owner")]
)
@pytest.mark.parametrize("status", [401, 500])
def test_key_that_an_endpoint_repeats_is_hidden(server: ScriptedServer, status: int, sent: str, repeated: str) -> None:
    server.responses = saying(ChatReply(status=status, text=f"Incorrect API key provided: {repeated}."))
    meter = CallMeter(node="generate")
    with pytest.raises(ModelCallError, match=r"provided: (sk-)?\*\*\*\.") as caught:
        ask(llm_at(server.base_url, api_key=sent), meter)
    assert repeated not in str(caught.value)
    assert repeated not in meter.records[0]["error"]


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (f"upstream failed for {KEY}", "its reply is no JSON .*, and begins 'upstream failed for [*]{3}'"),
        (f"{'-' * 70}{KEY}", "its reply is no JSON"),
        (" ", "its reply is empty"),
    ],
)
def test_reply_that_is_no_json_is_shown(raw: RawEndpoint, body: str, words: str) -> None:
    raw.will_send(*[(200, {}, body)] * 3)
    with pytest.raises(ModelCallError, match=words) as caught:
        ask(llm_at(raw.base_url))
    assert KEY[:6] not in str(caught.value)


def test_request_that_cannot_be_written_is_not_booked(server: ScriptedServer) -> None:
    meter = CallMeter(node="generate")
    with pytest.raises(ModelCallError):
        ask(llm_at(server.base_url, api_key="sk-é"), meter)
    assert [(each["prompt_tokens"], each["completion_tokens"]) for each in meter.records] == [(0, 0)]
    assert not server.requests


def test_password_in_the_address_stands_neither_in_message_nor_record(server: ScriptedServer) -> None:
    server.responses = saying(ChatReply(status=401, text="no"))
    meter = CallMeter(node="generate")
    with pytest.raises(ModelSetupError, match=r"http://127") as caught:
        ask(llm_at(server.base_url.replace("://", "://ada:lovelace@")), meter)
    assert "lovelace" not in str(caught.value) + meter.records[0]["error"]


# --- the gate ---


def test_gate_lets_as_many_calls_through_as_it_has_slots_and_no_more(server: ScriptedServer) -> None:
    pair = threading.Barrier(2, timeout=20)  # nobody is answered before another one asks

    def answer(_: ReceivedRequest) -> ChatReply:
        pair.wait()
        return ChatReply(text="42")

    async def six_calls() -> list[Completion]:
        gate = CallGate(2)
        models = itertools.cycle([llm_at(server.base_url, gate=gate), llm_at(server.base_url, gate=gate)])
        calls = [next(models).complete(QUESTION, meter=CallMeter(node="judge")) for _ in range(6)]
        return await asyncio.gather(*calls)

    server.responses = answer
    assert [completion.text for completion in background_loop().run(six_calls())] == ["42"] * 6
    assert server.peak_active == 2, "two models share the slots"


def test_gate_slot_is_free_while_a_call_waits_for_its_next_attempt(server: ScriptedServer) -> None:
    other_done = asyncio.Event()

    async def sleep(_: float) -> None:
        async with asyncio.timeout(20):
            await other_done.wait()

    async def both() -> list[str]:
        llm = llm_at(server.base_url, gate=CallGate(1), sleep=sleep)
        first = asyncio.ensure_future(llm.complete(QUESTION, meter=CallMeter(node="judge")))
        await asyncio.sleep(0)  # it takes the slot
        second = await llm.complete([("user", "Another question")], meter=CallMeter(node="judge"))
        other_done.set()
        return [(await first).text, second.text]

    server.responses = saying(ChatReply(status=500, text="busy"), ChatReply(text="second"), ChatReply(text="first"))
    assert background_loop().run(both()) == ["first", "second"]
    assert server.peak_active == 1


def test_gate_slot_is_free_after_a_failure_and_after_a_cancelled_call(server: ScriptedServer) -> None:
    async def cancel_one() -> None:
        call = asyncio.ensure_future(llm.complete(QUESTION, meter=CallMeter(node="judge")))
        await asyncio.to_thread(server.wait_for_active, 1)
        call.cancel()
        await asyncio.wait([call])

    llm = llm_at(server.base_url, gate=CallGate(1), retries=0)
    server.configure(faults={"timeout": 1.0}, fault_attempts=1)
    background_loop().run(cancel_one())
    server.configure(faults={"500": 1.0}, fault_attempts=2)
    with pytest.raises(ModelCallError):
        ask(llm)
    assert ask(llm).text == "42"


# --- waits for a rate limit ---

LIMITED = (429, {}, json.dumps({"error": {"message": "slow down", "code": "rate_limit_exceeded"}}))
LIMITED_A_MINUTE = (429, {"Retry-After": "60"}, "{}")


def test_waits_for_a_rate_limit_cost_no_attempts(raw: RawEndpoint) -> None:
    raw.will_send(*[LIMITED] * 8, (500, {}, "{}"), *[LIMITED] * 3, chat_reply("42"))
    meter, clock = CallMeter(node="generate"), Clock()
    assert ask(llm_at(raw.base_url, retries=1, sleep=clock.sleep), meter).text == "42"
    assert (meter.records[0]["attempts"], len(clock.slept_s)) == (13, 12)


@pytest.mark.parametrize("answer", [LIMITED, LIMITED_A_MINUTE], ids=["without a time", "a minute each"])
def test_waits_for_a_rate_limit_have_a_cap_in_all(raw: RawEndpoint, answer: Answer) -> None:
    raw.will_send(answer)
    meter, clock = CallMeter(node="generate"), Clock()
    with pytest.raises(ModelCallError, match=r"after \d{3} s of waiting for its rate limit") as caught:
        ask(llm_at(raw.base_url, retries=0, sleep=clock.sleep), meter)
    assert not isinstance(caught.value, ModelSetupError | ModelRequestError)
    assert 400 < sum(clock.slept_s) <= 600
    assert meter.records[0]["attempts"] == len(clock.slept_s) + 1


def test_those_who_were_asked_to_wait_together_come_back_apart(raw: RawEndpoint) -> None:
    raw.will_send(*[(429, {"Retry-After": "8"}, "{}")] * 6, chat_reply("42"))
    clock = Clock()

    async def together() -> None:
        llm = llm_at(raw.base_url, gate=CallGate(6), sleep=clock.sleep)
        await asyncio.gather(*(llm.complete(QUESTION, meter=CallMeter(node="judge")) for _ in range(6)))

    background_loop().run(together())
    assert len({*clock.slept_s}) == 6, clock.slept_s
    assert all(8 <= slept_s <= 10 for slept_s in clock.slept_s)


# --- pages ---

PAGE = "<html><head><title>Oh no</title><style>h1 {}</style></head><body><h1>{}</h1><hr>nginx</body></html>"


@pytest.mark.parametrize(
    ("body", "words"),
    [
        (PAGE.replace("{}", "Bad gateway"), r"attempt 1 of 1 \(HTTP 502\): Bad gateway nginx$"),
        (PAGE.replace("{}", "502 Bad gateway"), "attempt 1 of 1: 502 Bad gateway nginx$"),
        ("<html><title>Down for repairs</title><script>x</script></html>", r"\(HTTP 502\): Down for repairs$"),
        ("oops", r"attempt 1 of 1 \(HTTP 502\): oops$"),
    ],
)
def test_a_page_of_an_error_is_told_by_its_words_and_status(raw: RawEndpoint, body: str, words: str) -> None:
    raw.will_send((502, {"Content-Type": "text/html"}, body))
    with pytest.raises(ModelCallError, match=words):
        ask(llm_at(raw.base_url, retries=0))


def test_what_a_page_refuses_by_name_is_sent_otherwise(raw: RawEndpoint) -> None:
    page = PAGE.replace("{}", "Unsupported parameter: max_tokens. Use max_completion_tokens.")
    raw.will_send((400, {"Content-Type": "text/html"}, page), chat_reply("42"))
    assert ask(llm_at(raw.base_url, retries=0), max_tokens=5).text == "42"
    assert len(raw.bodies) == 2
