"""What hosts refuse by name is sent otherwise from then on: the call is answered, with a warning and a request more."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import logging
import threading
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any

import httpx2
import openai
import pytest
from langchain_core.documents import Document
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from judgetree import CallGate, ChatLLM, create_llm, from_langchain, load_settings
from judgetree.app.scripted.answers import ChatReply
from judgetree.app.scripted.endpoints import Outgoing
from judgetree.app.scripted.server import ScriptedServer
from judgetree.modules.background_loop import background_loop
from judgetree.modules.calls.completion import Completion
from judgetree.modules.calls.messages import CallOptions, Message
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.errors import ModelCallError, ModelRequestError, ModelSetupError
from judgetree.modules.judge.contract import Verdict
from judgetree.modules.judge.factory import create_judge
from judgetree.modules.llm.attempts import endpoint_failure
from judgetree.modules.llm.wire.adaptations import Adaptations, told_adaptations
from judgetree.modules.llm.wire.refusals import noting_refusals, refused_by, refused_in
from tests.modules.llm.refusal_rows import (
    ASKED_ALL,
    IMAGINED,
    LOGPROB_ROWS,
    ROWS,
    TOLD,
    TOLD_KINDS,
    Row,
    error,
    has,
    left_out,
    limit,
    system,
    temperature,
)
from tests.modules.model_endpoints import PATIENCE_S, QUESTION, saying

VERDICT = '{"reason": "It names it.", "score": 2, "next_query": ""}'
CHAT, TEXT = "", "completion:"
GASKET = "What temperature must a gasket take?"
IN_JSON = [("user", "What is six by nine? Answer in JSON.")]
_OF_CHATS = ("system", "developer", "roles", "role", "message", "with user", "thinking", "whole", "non-streaming")


class Host:
    """A scripted server that refuses as a row says, and keeps all requests."""

    def __init__(self, server: ScriptedServer) -> None:
        self.server = server
        self.sent: list[dict[str, Any]] = []
        self.rows: tuple[Row, ...] = ()
        posts = server._endpoints._posts
        for path in ("/v1/chat/completions", "/v1/completions"):
            posts[path] = self._refusing(posts[path])
        server.responses = saying(ChatReply(text=VERDICT))

    def _refusing(self, answer: Any) -> Any:
        def post(raw: bytes) -> Outgoing:
            self.sent.append(json.loads(raw))
            for row in self.rows:
                if row.refuses(self.sent[-1]):
                    return Outgoing(status=row.status, body=row.body.encode())
            answered: Outgoing = answer(raw)
            return answered

        return post

    def llm(self, prefix: str = CHAT, model: str = IMAGINED, retries: int = 2) -> ChatLLM:
        return create_llm(f"{prefix}{self.server.base_url}#{model}", load_settings(retries=retries), CallGate(64))


@contextmanager
def hosting(*rows: Row) -> Iterator[Host]:
    with ScriptedServer() as server:
        host = Host(server)
        host.rows = rows
        yield host


def ask(llm: ChatLLM, row: Row, meter: CallMeter | None = None) -> Completion:
    options: dict[str, Any] = dict(row.asks)
    system = [("system", options.pop("system"))] if "system" in options else []
    asked = [("user", row.question)] if row.question else QUESTION
    messages: list[Message] = [*system, *(IN_JSON if "json_format" in options else asked)]
    listeners: Mapping[str, Any] = {"on_text": lambda _: None} if row.streams else {}
    meter = meter or CallMeter(node="generate")
    call = llm.complete(messages, meter=meter, options=CallOptions(**options), **listeners)
    return background_loop().run(asyncio.wait_for(call, PATIENCE_S))


def warnings_in(caplog: pytest.LogCaptureFixture) -> list[str]:
    return [each.getMessage() for each in caplog.records if each.levelno >= logging.WARNING]


@pytest.mark.parametrize("name", ROWS)
@pytest.mark.parametrize("door", [CHAT, TEXT], ids=["chat", "text"])
def test_a_part_that_is_refused_by_name_is_sent_otherwise(
    door: str, name: str, caplog: pytest.LogCaptureFixture
) -> None:
    row = ROWS[name]
    if door == TEXT and name.endswith(_OF_CHATS):
        pytest.skip("a completed text has neither roles nor thinking")
    with hosting(row) as host:
        meter = CallMeter(node="generate")
        assert ask(host.llm(door, row.model), row, meter).text == VERDICT
        assert (len(host.sent), meter.records[-1]["attempts"]) == (1 + row.more, 1 + row.more)
        assert door == TEXT or row.then(host.sent[-1]), host.sent[-1]
        assert not row.refuses(host.sent[-1])
        assert ask(host.llm(door, row.model), row).text == VERDICT, "another model object of the process knows"
        assert len(host.sent) == 2 + row.more
        (warned,) = warnings_in(caplog)
        assert (row.model in warned, list(told_adaptations().values()) != []) == (True, True)


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    "name", [each for each in ROWS if not ROWS[each].streams and not each.endswith(("whole", "non-streaming"))]
)
def test_it_is_the_same_where_a_stream_was_asked_for(name: str, streamed: bool) -> None:
    row = dataclasses.replace(ROWS[name], streams=streamed)
    with hosting(row) as host:
        assert ask(host.llm(model=row.model), row).text == VERDICT
        assert len(host.sent) == 1 + row.more
        assert {each["stream"] for each in host.sent} == {streamed}


def judged(host: Host, kind: str = "generated", llm: ChatLLM | None = None) -> Verdict:
    judge = create_judge(kind, llm or host.llm(), spec="x", settings=load_settings())
    meter = CallMeter(node="judge")
    verdict: Any = judge.judge("Who?", Document("Ada.", metadata={"chunk_id": "c"}), meter=meter)  # type: ignore[union-attr]
    found: Verdict = background_loop().run(asyncio.wait_for(verdict, PATIENCE_S))
    return found


JUDGED = [
    name for name, row in ROWS.items() if name.split()[-1] in ("max_tokens", "temperature", "json_schema", "system")
]


@pytest.mark.parametrize("name", JUDGED)
def test_judges_go_on(name: str, caplog: pytest.LogCaptureFixture) -> None:
    with hosting(ROWS[name]) as host:
        assert [judged(host).score, judged(host).score] == [2, 2]
        assert len(warnings_in(caplog)) == 1


@pytest.mark.parametrize("name", LOGPROB_ROWS)
def test_a_judge_without_log_probabilities_asks_for_written_verdicts(
    name: str, caplog: pytest.LogCaptureFixture
) -> None:
    row = LOGPROB_ROWS[name]
    with hosting(row) as host:
        verdict = judged(host, "logprob")
        assert (verdict.status, verdict.score, len(host.sent)) == ("judged", 2, 2), verdict.problem
        assert "key" not in caplog.text
        assert len(warnings_in(caplog)) == 1
        with pytest.raises(ModelRequestError, match="generated"):
            ask(host.llm(), row)
        assert len(host.sent) == 2, "what was refused once is not asked again"


UNNAMED: dict[str, Row] = {
    "a key": temperature(error("Incorrect API key provided: temperature", code="invalid_api_key"), status=401),
    "a quota": temperature(error("temperature is not supported", code="insufficient_quota"), status=429),
    "nothing": temperature(error("Bad request")),
    "a length": limit(
        error(
            "'max_tokens' or 'max_completion_tokens' is too large: 50. This model's maximum context length is 40.",
            param="max_tokens",
        )
    ),
    "a context": temperature(
        error(
            "This model's maximum context length is 40 tokens. Please reduce the messages.",
            param="messages",
        )
    ),
    "what was not sent": temperature(error("Unsupported parameter: 'seed' is not supported.", param="seed")),
    "another clause": temperature(error("Please try again with a lower temperature, or write to us")),
    "its own name": temperature(error("The model 'temperature' does not exist or is not supported"), status=404),
    "a filter": temperature(error("The prompt was filtered.", param="prompt", code="content_filter")),
    "a policy": temperature(
        error(f'The text "{GASKET}" is not allowed by our policy.', code="content_policy_violation"), question=GASKET
    ),
    "openrouter": temperature(
        {
            "error": {
                "message": 'This model requires moderation and your input was flagged for "harassment".',
                "code": 403,
                "metadata": {"reasons": ["harassment"], "flagged_input": GASKET, "provider_name": "OpenAI"},
            }
        },
        status=403,
        question=GASKET,
    ),
    "in an error": temperature(
        {
            "error": {
                "message": "Provider returned error",
                "metadata": {"raw": json.dumps(error(f"'{GASKET}' is not allowed", code="content_filter"))},
            }
        },
        question=GASKET,
    ),
    "dashscope": temperature(
        error(f"Input data may hold what is not permitted: {GASKET}", code="data_inspection_failed"), question=GASKET
    ),
    "azure": temperature(
        error(
            f"The prompt '{GASKET}' is invalid and not accepted.",
            code="bad",
            innererror={"code": "ResponsibleAIPolicyViolation", "content_filter_result": {"jailbreak": {}}},
        ),
        question=GASKET,
    ),
    "a quotation": temperature(error(f"Unsupported language: “{GASKET[:30]}…”"), question=GASKET),
    "a quotation in a quotation": temperature(
        error('Invalid text: "Which "maximum temperature" holds?"'), question='Which "maximum temperature" holds?'
    ),
    "a whole question": temperature(error(f"Invalid text: {GASKET} (is it English?)"), question=GASKET),
    "pydantic's input": temperature(
        {"detail": [{"loc": ["body", "messages", 0, "content"], "msg": "Invalid", "input": f"no {GASKET}"}]},
        status=422,
        question=GASKET,
    ),
    "a jailbreak": system(error("Invalid system prompt detected: jailbreak not allowed")),
    "an end": Row(
        refuses=has("model"),
        says=error("internal error: stream disconnected unexpected EOF"),
        status=500,
        streams=True,
    ),
    "an end that is refused": Row(
        refuses=has("model"), says=error("stream disconnected: unexpected EOF"), status=403, streams=True
    ),
    "a repeated request": temperature(error("Invalid request: {'temperature': 0.0, 'messages': [{'role': 'system'}]}")),
    "a repeated request in braces": temperature(error('Bad body: {"temperature": 0.0}, which is invalid')),
    "parameters of a crash": limit(
        error("CUDA error: device-side assert, SamplingParams(n=1, temperature=0.0, max_tokens=50) unexpected"),
        status=500,
    ),
    "a length in German": limit(error("max_tokens oder max_completion_tokens ist zu groß: 50, erlaubt sind 40")),
    "a value in German": limit(error("max_tokens: 50 ist zu viel", param="max_tokens")),
    "two in German": Row(
        refuses=has("temperature"),
        says=error("Dieses Modell kennt temperature neben thinking nicht. Bitte anpassen.", code="unsupported_value"),
        asks={"thinking": False},
    ),
    "a quotation in German": temperature(error(f"Unzulässig: „{GASKET}“", code="unsupported_value"), question=GASKET),
    "a crash at a quotation": Row(
        refuses=has("response_format"),
        says=error("worker died at 'Which grammar has a response_format? In JSON.'", type="server_error"),
        asks={"json_format": "json_object", "system": "Which grammar has a response_format? In JSON."},
        status=500,
    ),
    "a crash that lists": Row(
        refuses=has("response_format"),
        says=error("CUDA error, GuidedParams(response_format=Format(type), backend=x)"),
        asks={"json_format": "json_object"},
        status=500,
    ),
    "a crash at a parameter": temperature(error("worker died", param="temperature"), status=500),
    "a crash": temperature(error("unknown failure while the temperature was set, worker unavailable"), status=500),
}


@pytest.mark.parametrize("name", UNNAMED)
def test_what_is_not_named_is_not_changed(name: str) -> None:
    row = UNNAMED[name]
    with hosting(row) as host:
        meter = CallMeter(node="generate")
        llm = host.llm(model="temperature" if name == "its own name" else IMAGINED, retries=0)
        with pytest.raises(ModelCallError) as caught:
            ask(llm, row, meter)
        assert isinstance(caught.value, ModelSetupError | ModelRequestError) == (row.status < 500)
        assert (len(host.sent), len(meter.records), told_adaptations()) == (1, 1, {})
        assert caught.value.status == row.status


def test_a_host_that_refuses_for_ever_is_asked_once_a_part() -> None:
    rows = [
        dataclasses.replace(ROWS[name], refuses=lambda body: True) for name in ("openai temperature", "openai stop")
    ]
    with hosting(*rows) as host:
        meter = CallMeter(node="generate")
        with pytest.raises(ModelRequestError, match="temperature"):
            ask(host.llm(), rows[1], meter)
        assert (len(host.sent), told_adaptations()) == (2, {})
        assert [(each["prompt_tokens"], bool(each["error"])) for each in meter.records] == [(0, True)]


def test_many_calls_in_flight_warn_once_and_are_all_answered(caplog: pytest.LogCaptureFixture) -> None:
    row = ROWS["openai temperature"]
    with hosting(row) as host:
        llm = host.llm()

        async def all_at_once() -> list[str]:
            calls = [llm.complete([("user", f"{number}?")], meter=CallMeter(node="n")) for number in range(50)]
            return [each.text for each in await asyncio.gather(*calls)]

        assert background_loop().run(all_at_once()) == [VERDICT] * 50
        assert len(warnings_in(caplog)) == 1
        assert len(host.sent) <= 100


def test_answers_of_other_calls_confirm_no_change() -> None:
    """A misread refusal of one question took the temperature from all others."""
    misread = error("temperature is not supported")
    with hosting() as host:
        post, answered = host.server._endpoints._posts["/v1/chat/completions"], threading.Event()
        repeated = threading.Event()

        def refusing(raw: bytes) -> Outgoing:
            asks_first = json.loads(raw)["messages"][0]["content"] == "first"
            if asks_first and "temperature" not in json.loads(raw):
                repeated.set()
                assert answered.wait(PATIENCE_S)
            outgoing = post(raw)
            return Outgoing(status=400, body=json.dumps(misread).encode()) if asks_first else outgoing

        host.server._endpoints._posts["/v1/chat/completions"] = refusing
        llm = host.llm()

        async def both() -> None:
            first = asyncio.ensure_future(llm.complete([("user", "first")], meter=CallMeter(node="n")))
            assert await asyncio.to_thread(repeated.wait, PATIENCE_S)
            for _ in range(3):
                await llm.complete([("user", "second")], meter=CallMeter(node="n"))
            answered.set()
            with pytest.raises(ModelRequestError):
                await first
            await llm.complete([("user", "third")], meter=CallMeter(node="n"))

        background_loop().run(asyncio.wait_for(both(), PATIENCE_S))
        others = [each for each in host.sent if each["messages"][0]["content"] != "first"]
        assert [each["temperature"] for each in others] == [0.0] * 4
        assert told_adaptations() == {}


def test_openais_own_name_of_the_limit_is_exchanged_too() -> None:
    """Hosts of an older protocol, or a proxy before one."""
    says = "property 'max_completion_tokens' is unsupported, did you mean 'max_tokens'?"
    body = {"model": "m", "max_completion_tokens": 5}
    known = Adaptations()
    known.answered("m", refused_in(says, body))
    assert known.applied(body) == {"model": "m", "max_tokens": 5}
    known.answered("m", refused_in("Unsupported parameter: 'max_tokens'", {"max_tokens": 5}))
    assert (
        known.applied({"max_tokens": 5}) == {"max_completion_tokens": 5} == known.applied({"max_completion_tokens": 5})
    )


@pytest.mark.parametrize("name", ["top_p", "seed", "n", "presence_penalty", "frequency_penalty", "guided_json"])
def test_any_parameter_that_is_sent_may_be_refused(name: str) -> None:
    body = {"model": "m", "messages": [], "stream": False, name: 1}
    said = (
        f"Unsupported parameter: '{name}'",
        f"Extra inputs are not permitted, field: '{name}'",
        f"`{name}` must be 2",
    )
    for says in said:
        assert refused_in(f"Error code: 400 - {says}", body) == {name: ""}
    assert refused_in(f"Unsupported parameter: '{name}'", {"model": "m", "stream": False}) == {}


def test_a_langchain_model_that_may_not_tell_logprobs_has_written_verdicts() -> None:
    with hosting(LOGPROB_ROWS["openai 403"]) as host:
        chat = ChatOpenAI(model="m", base_url=host.server.base_url, api_key=SecretStr("k"), max_retries=0)
        assert judged(host, "logprob", from_langchain(chat)).score == 2


def test_each_model_is_known_by_itself() -> None:
    row = ROWS["openai temperature"]
    with hosting(row) as host:
        ask(host.llm(), row)
        ask(host.llm(model="another"), row)
        assert [each.get("temperature") for each in host.sent] == [0.0, 1, 0.0, 1]
        assert len(told_adaptations()) == 2


FAILED: dict[str, str] = {"repaired": VERDICT[:-1], "prose": "It helps.", "nothing": ""}


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("written", FAILED.values(), ids=FAILED)
def test_json_that_its_host_refuses_is_a_reply_that_is_paid(written: str, streamed: bool) -> None:
    """It was final, and JSON was asked for in weaker ways from then on."""
    says = error("Failed to generate JSON.", code="json_validate_failed", failed_generation=written)
    with hosting() as host:
        host.rows = (Row(refuses=lambda body: len(host.sent) == 1, says=says, streams=streamed),)
        meter = CallMeter(node="judge")
        row = Row(refuses=has("x"), says="", asks={"json_format": "json_schema", "json_schema": {}}, streams=streamed)
        completion = ask(host.llm(), row, meter)
        assert completion.text == (written or VERDICT)
        assert (meter.records[0]["estimated"], meter.records[0]["prompt_tokens"] > 0) == (True, True)
        assert bool(meter.records[0]["error"]) == (not written)
        assert told_adaptations() == {}
    with hosting() as host:
        host.rows = (Row(refuses=lambda body: len(host.sent) == 1, says=says),)
        assert judged(host).score == 2
        assert {each["response_format"]["type"] for each in host.sent} == {"json_schema"}


@pytest.mark.parametrize("size", [1_000, 100_000])
def test_long_errors_are_read_in_part(size: int) -> None:
    body = {"temperature": 0, "max_tokens": 1, "messages": [{"role": "system", "content": ""}], "stream": True}
    for pump in ("not ", "role ", "loc': [", "system ", "only ", "a. ", "invalid temperature "):
        refused_in(pump * size, body)
    assert refused_in("x" * size + " temperature is not supported", body) == (
        {} if size > 4_000 else {"temperature": ""}
    )


def test_a_value_of_another_parameter_stays(caplog: pytest.LogCaptureFixture) -> None:
    row = left_out("stop", {"stop": ("x",), "temperature": 0.5}, error("'stop' is not supported with temperature 0.5"))
    with hosting(row) as host:
        ask(host.llm(), row)
        assert "stop" not in host.sent[-1]


def told_error(status: int, says: object) -> openai.APIStatusError:
    """An error as the client of OpenAI makes it."""
    request = httpx2.Request("POST", "http://host/v1/chat/completions")
    client = openai.OpenAI(api_key="k", base_url="http://host/v1")
    return client._make_status_error_from_response(httpx2.Response(status, json=says, request=request))


@pytest.mark.parametrize("name", TOLD)
def test_what_hosts_say_is_read_as_what_it_is(name: str) -> None:
    status, says, meant = TOLD[name]
    with pytest.raises(openai.APIStatusError) as caught, noting_refusals(ASKED_ALL):
        raise told_error(status, says)
    found = endpoint_failure(caught.value)
    named = set() if meant in TOLD_KINDS else {meant}
    assert set(refused_by(caught.value)) == named
    if not named:
        is_filter = "ask in other words" in found.remedy
        kinds = {ModelSetupError: "setup", ModelCallError: "later", ModelRequestError: "request"}
        assert ("filter" if is_filter else kinds[found.error_class]) == meant
