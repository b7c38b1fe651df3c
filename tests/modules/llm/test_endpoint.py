"""A model behind an endpoint: what is sent, what is understood, and what is booked."""

from __future__ import annotations

import asyncio
import itertools
import json
import logging
from typing import Any

import httpx2
import pytest

from judgetree.app.scripted.answers import ChatReply
from judgetree.app.scripted.server import ScriptedServer
from judgetree.modules.calls.budget import TreeBudget
from judgetree.modules.calls.completion import Completion
from judgetree.modules.calls.ledger import SpendLimits
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.errors import BudgetSpent, ModelCallError
from judgetree.modules.llm.call_gate import CallGate
from judgetree.modules.llm.endpoint import EndpointLLM
from judgetree.modules.llm.openai_client import ReasoningChatOpenAI
from tests.modules.model_endpoints import (
    KEY,
    Answer,
    RawEndpoint,
    Snapshots,
    ask,
    chat_reply,
    llm_at,
    saying,
    stream_of,
    stream_reply,
)

# --- what is understood ---


def test_complete_gives_back_the_answer_without_its_thinking(server: ScriptedServer) -> None:
    server.responses = saying(ChatReply(text="<think>\nsix by nine\n</think>\n\n42\n"))
    assert ask(llm_at(server.base_url)) == Completion(text="42", thinking="six by nine", finish_reason="stop")


def test_stream_shows_the_answer_as_it_grows_and_never_its_thinking(server: ScriptedServer) -> None:
    answer = "The answer to the question is 42, as 6 < 9."
    server.responses = saying(ChatReply(text=f"<think>hm, 54? no</think>\n{answer}"))
    shown = Snapshots()
    assert ask(llm_at(server.base_url), on_text=shown).text == answer
    assert len(shown) > 5
    assert all(later.startswith(earlier) and later != earlier for earlier, later in itertools.pairwise(shown))
    assert shown[-1] == answer
    assert answer.startswith(shown[0])


def test_stream_shows_an_answer_that_ends_like_the_beginning_of_a_tag(server: ScriptedServer) -> None:
    server.responses = saying(ChatReply(text="6 <"))
    shown = Snapshots()
    assert ask(llm_at(server.base_url), on_text=shown).text == "6 <"
    assert shown == ["6", "6 <"]


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("field_name", ["reasoning_content", "reasoning"])
def test_reasoning_field_is_the_thinking_or_the_whole_answer(raw: RawEndpoint, field_name: str, streamed: bool) -> None:
    if streamed:
        raw.will_send(
            stream_reply({field_name: "six "}, {field_name: "by nine"}, {"content": "4"}, {"content": "2"}),
            stream_reply({field_name: "4"}, {field_name: "2"}),
        )
    else:
        raw.will_send(chat_reply("42", **{field_name: "six by nine"}), chat_reply(None, **{field_name: "42"}))
    llm, shown = llm_at(raw.base_url), Snapshots()
    first = ask(llm, on_text=shown if streamed else None)
    assert (first.text, first.thinking) == ("42", "six by nine")
    assert shown == (["4", "42"] if streamed else [])
    second = ask(llm, on_text=shown if streamed else None)
    assert (second.text, second.thinking) == ("42", "")
    assert shown == (["4", "42", "42"] if streamed else [])


@pytest.mark.parametrize("streamed", [False, True])
def test_first_token_comes_with_its_alternatives(server: ScriptedServer, streamed: bool) -> None:
    server.responses = saying(ChatReply(text="yes", p_yes=0.9))
    llm = llm_at(server.base_url)
    completion = ask(llm, top_logprobs=4, max_tokens=1, on_text=(lambda _: None) if streamed else None)
    assert [found.token for found in completion.first_token] == ["yes", "Yes", "no", " yes"]
    logprobs = [found.logprob for found in completion.first_token]
    assert logprobs == sorted(logprobs, reverse=True)
    assert logprobs[0] < 0


def test_first_token_is_empty_when_the_endpoint_omits_logprobs(server: ScriptedServer) -> None:
    server.configure(logprobs="omitted")
    assert ask(llm_at(server.base_url), top_logprobs=4).first_token == ()


def test_empty_text_is_an_answer_when_logprobs_are_wanted(server: ScriptedServer) -> None:
    server.responses = saying(ChatReply(text=""))
    assert ask(llm_at(server.base_url), top_logprobs=4).text == ""
    assert server.requests["other"] == 1


def choice(index: int | None, text: str, *, streamed: bool, ends: bool = True) -> dict[str, object]:
    part = {"delta" if streamed else "message": {"role": "assistant", "content": text}}
    return {**({} if index is None else {"index": index}), **part, "finish_reason": "stop" if ends else None}


def answer_of(*choices: dict[str, object], streamed: bool, together: bool = False) -> Answer:
    """All choices in one piece, or of a stream each in a piece of its own."""
    if not streamed:
        return 200, {}, json.dumps({"choices": choices})
    return stream_of(*([{"choices": choices}] if together else ({"choices": [each]} for each in choices)))


@pytest.mark.parametrize("together", [False, True])
@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("indices", "answered"),
    [((0, 1), 0), ((1, 0), 1), ((1, 2, 0), 2), ((1, None), 1), ((None, 1), 0), ((1,), 0), ((2, 1), 0)],
)
def test_one_choice_of_several_is_the_answer(
    raw: RawEndpoint, indices: tuple[int | None, ...], answered: int, streamed: bool, together: bool
) -> None:
    """The text of a second choice was glued to a streamed answer, or was the answer where it came first."""
    choices = [choice(index, f"text {place}", streamed=streamed) for place, index in enumerate(indices)]
    raw.will_send(answer_of(*choices, streamed=streamed, together=together))
    shown = Snapshots()
    completion = ask(llm_at(raw.base_url, retries=0), on_text=shown if streamed else None)
    assert completion.text == f"text {answered}"
    assert shown[-1:] == ([completion.text] if streamed else [])


def test_choices_that_alternate_in_a_stream_are_told_apart(raw: RawEndpoint) -> None:
    """The answer was "4wr2ong"."""
    texts = ((1, "wr"), (0, "4"), (1, "ong"), (0, "2"))
    raw.will_send(answer_of(*(choice(index, text, streamed=True) for index, text in texts), streamed=True))
    shown = Snapshots()
    assert ask(llm_at(raw.base_url, retries=0), on_text=shown).text == "42"
    assert shown[-2:] == ["4", "42"]


@pytest.mark.parametrize("role", ["missing", None, "model"])
def test_reply_is_the_assistants_whatever_role_it_names(raw: RawEndpoint, role: str | None) -> None:
    """A reply without a role was refused four times as no ChatMessage, though its stream was read."""
    message = {"content": "42", **({} if role == "missing" else {"role": role})}
    raw.will_send((200, {}, json.dumps({"choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})))
    assert ask(llm_at(raw.base_url, retries=0)).text == "42"


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("name", ["content", "reasoning_content"])
def test_byte_order_mark_at_the_beginning_is_no_text(raw: RawEndpoint, name: str, streamed: bool) -> None:
    """Answers began with U+FEFF, and a JSON reply behind it with tags in it was cut."""
    raw.will_send(
        stream_reply({name: "\ufeff"}, {name: "4"}, {name: "\ufeff2"})
        if streamed
        else chat_reply(**{"text": None, name: "\ufeff4\ufeff2"})
        if name != "content"
        else chat_reply("\ufeff4\ufeff2")
    )
    shown = Snapshots()
    assert ask(llm_at(raw.base_url, retries=0), on_text=shown if streamed else None).text == "4\ufeff2"
    assert not any(each.startswith("\ufeff") for each in shown)


# --- what is sent ---


def sent(raw: RawEndpoint, **options: Any) -> dict[str, Any]:
    ask(llm_at(raw.base_url), **options)
    return raw.bodies[-1]


def test_request_is_plain_by_default(raw: RawEndpoint) -> None:
    assert sent(raw) == {
        "model": "m",
        "messages": [{"role": "user", "content": "What is six by nine?"}],
        "temperature": 0.0,
        "stream": False,
    }


def test_request_carries_what_was_asked_for(raw: RawEndpoint) -> None:
    body = sent(raw, max_tokens=7, temperature=0.5, top_logprobs=3)
    assert (body["max_tokens"], body["temperature"], body["logprobs"], body["top_logprobs"]) == (7, 0.5, True, 3)
    assert "max_completion_tokens" not in body


def test_request_for_json_names_the_format_and_the_schema(raw: RawEndpoint) -> None:
    schema = {"type": "object", "properties": {"score": {"type": "integer"}}}
    assert sent(raw, json_format="json_object")["response_format"] == {"type": "json_object"}
    assert sent(raw, json_format="json_schema", json_schema=schema)["response_format"] == {
        "type": "json_schema",
        "json_schema": {"name": "reply", "strict": True, "schema": schema},
    }
    assert "response_format" not in sent(raw, json_format="text")


def test_openai_itself_gets_the_newer_name_of_max_tokens() -> None:
    bodies: list[dict[str, Any]] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        bodies.append(json.loads(request.content))
        return httpx2.Response(200, text=chat_reply("42")[2], headers={"Content-Type": "application/json"})

    client = httpx2.AsyncClient(transport=httpx2.MockTransport(answer))
    chat = ReasoningChatOpenAI(model="m", api_key=KEY, http_async_client=client, max_retries=0)
    llm = EndpointLLM(chat, gate=CallGate(1))
    assert ask(llm, max_tokens=7).text == "42"
    assert (bodies[0]["max_completion_tokens"], "max_tokens" in bodies[0]) == (7, False)
    assert llm.base_url == "https://api.openai.com/v1"


@pytest.mark.parametrize("streamed", [False, True])
def test_reply_cut_off_in_the_middle_of_json_is_given_back_as_it_is(server: ScriptedServer, streamed: bool) -> None:
    server.responses = saying(ChatReply(text='{"score": 1, "rea', finish_reason="length"))
    schema = {"type": "object", "properties": {"score": {"type": "integer"}}}
    completion = ask(
        llm_at(server.base_url),
        json_format="json_schema",
        json_schema=schema,
        on_text=(lambda _: None) if streamed else None,
    )
    assert (completion.text, completion.finish_reason) == ('{"score": 1, "rea', "length")
    assert server.requests["other"] == 1


# --- what is booked ---


@pytest.mark.parametrize("streamed", [False, True])
def test_tokens_are_counted(server: ScriptedServer, streamed: bool) -> None:
    server.responses = saying(ChatReply(text="<think>six by nine</think>42"))
    meter = CallMeter(node="generate", chunk_id="c1")
    ask(llm_at(server.base_url), meter, on_text=(lambda _: None) if streamed else None)
    (record,) = meter.records
    assert (record["prompt_tokens"], record["completion_tokens"]) == (5, 7), "four characters a token"
    assert (record["node"], record["chunk_id"], record["attempts"]) == ("generate", "c1", 1)
    assert record["seconds"] > 0


@pytest.mark.parametrize("streamed", [False, True])
def test_tokens_that_the_endpoint_does_not_count_are_estimated_and_marked(raw: RawEndpoint, streamed: bool) -> None:
    raw.will_send(stream_reply({"content": "42"}) if streamed else chat_reply("42"))
    meter = CallMeter(node="generate")
    ask(llm_at(raw.base_url), meter, on_text=(lambda _: None) if streamed else None)
    (record,) = meter.records
    assert (record["prompt_tokens"], record["completion_tokens"], record["estimated"]) == (9, 2, True)


def test_tokens_of_answers_that_were_thrown_away_are_counted_too(server: ScriptedServer) -> None:
    server.responses = saying(ChatReply(text="<think>six by nine</think>"), ChatReply(text="42"))
    meter = CallMeter(node="generate")
    ask(llm_at(server.base_url), meter)
    assert [(each["prompt_tokens"], each["completion_tokens"]) for each in meter.records] == [(5, 7), (5, 1)]


USAGE = {"prompt_tokens": 700, "completion_tokens": 60, "total_tokens": 760}
UNREADABLE: dict[str, dict[str, object]] = {
    "an object": {"content": {"text": "42"}},
    "a number": {"content": 42},
    "a list with null": {"content": [None, {"type": "text", "text": "42"}]},
    "null": {"content": None},
}


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize("message", UNREADABLE.values(), ids=UNREADABLE)
def test_tokens_of_a_reply_that_cannot_be_read_are_counted(
    raw: RawEndpoint, message: dict[str, object], streamed: bool
) -> None:
    """They were booked as none, so that ``--max-cost`` did not see what such an endpoint was paid."""
    part = {"index": 0, "delta" if streamed else "message": {"role": "assistant", **message}, "finish_reason": "stop"}
    if streamed:
        raw.will_send(stream_of({"choices": [part]}, {"choices": [], "usage": USAGE}))
    else:
        raw.will_send((200, {}, json.dumps({"choices": [part], "usage": USAGE})))
    meter = CallMeter(node="generate")
    with pytest.raises(ModelCallError):
        ask(llm_at(raw.base_url, retries=1), meter, on_text=Snapshots() if streamed else None)
    booked = [(each["prompt_tokens"], each["completion_tokens"], each["attempts"]) for each in meter.records]
    assert booked == [(700, 60, 1), (700, 60, 2)], "each attempt that is billed has a record"


def cut_before_its_end(stream: Answer) -> Answer:
    status, headers, body = stream
    assert isinstance(body, str)
    return status, headers, body.replace("data: [DONE]\n\n", "")


NO_REPLIES: dict[str, tuple[bool, Answer]] = {
    "no choices": (False, (200, {}, json.dumps({"choices": [], "usage": USAGE}))),
    "null choices": (False, (200, {}, json.dumps({"choices": None, "usage": USAGE}))),
    "too long": (False, (200, {}, json.dumps({"choices": [choice(0, "long " * 500, streamed=False)], "usage": USAGE}))),
    "a stream that breaks off": (
        True,
        cut_before_its_end(stream_of({"choices": [choice(0, "4", streamed=True, ends=False)], "usage": USAGE})),
    ),
    "a stream that breaks off behind what cannot be read": (
        True,
        stream_of({"choices": [{"index": 0, "delta": {"content": 4}}], "usage": USAGE}, {"error": {"message": "down"}}),
    ),
}


@pytest.mark.parametrize(("streamed", "answer"), NO_REPLIES.values(), ids=NO_REPLIES)
def test_tokens_of_a_reply_that_is_none_are_counted(raw: RawEndpoint, answer: Answer, streamed: bool) -> None:
    """They were booked as none."""
    raw.will_send(answer)
    meter, llm = CallMeter(node="generate"), llm_at(raw.base_url, retries=0, max_reply_bytes=2000)
    with pytest.raises(ModelCallError):
        ask(llm, meter, on_text=Snapshots() if streamed else None)
    assert (meter.records[0]["prompt_tokens"], meter.records[0]["completion_tokens"]) == (700, 60)


def test_tokens_of_a_try_with_stop_texts_are_counted_though_the_one_without_fails(raw: RawEndpoint) -> None:
    """Those of the first request of a call were lost where its second failed."""
    raw.will_send(
        (200, {}, json.dumps({"choices": [choice(0, "", streamed=False)], "usage": USAGE})),
        (200, {}, json.dumps({"choices": [], "usage": USAGE})),
    )
    meter = CallMeter(node="generate")
    with pytest.raises(ModelCallError):
        ask(llm_at(raw.base_url, retries=0), meter, stop=("Passage",))
    assert [(each["prompt_tokens"], each["completion_tokens"]) for each in meter.records] == [(700, 60)] * 2


def test_seconds_include_the_waits_between_attempts(server: ScriptedServer) -> None:
    server.configure(faults={"500": 1.0}, fault_attempts=1)
    meter = CallMeter(node="generate")
    ask(llm_at(server.base_url, sleep=lambda _: asyncio.sleep(0.2)), meter)
    assert meter.records[0]["seconds"] >= 0.2


def test_budget_is_reserved_once_a_call_whatever_its_attempts(server: ScriptedServer) -> None:
    server.configure(faults={"500": 1.0}, fault_attempts=2)
    budget = TreeBudget(limit=1)
    meter = CallMeter(node="generate", budget=budget)
    assert ask(llm_at(server.base_url), meter).text == "42"
    assert (budget.used, meter.records[0]["attempts"]) == (1, 3)
    with pytest.raises(BudgetSpent):
        ask(llm_at(server.base_url), meter)
    assert server.requests["other"] == 3
    assert len(meter.records) == 1


@pytest.mark.parametrize("limit", [1, 2, 3, 4])
def test_attempts_that_may_be_billed_count_as_calls(server: ScriptedServer, limit: int) -> None:
    """Four billed requests were one call, so that a limit of 10 calls let 40 through."""
    server.responses = saying(ChatReply(text=""))
    budget = TreeBudget(limit=limit)
    meter = CallMeter(node="generate", budget=budget)
    with pytest.raises(ModelCallError, match="the answer is empty"):
        ask(llm_at(server.base_url, retries=2), meter)
    made = min(limit, 3)
    assert (server.requests["other"], budget.used, len(meter.records)) == (made, made, made)


def test_tokens_of_attempts_that_may_be_billed_count(server: ScriptedServer) -> None:
    """A second attempt is not made where what the first one used leaves no room."""
    server.responses = saying(ChatReply(text="<think>" + "six by nine " * 50 + "</think>"))
    budget = TreeBudget(limit=9, ledger=SpendLimits(max_tree_tokens=400))
    meter = CallMeter(node="generate", budget=budget)
    with pytest.raises(ModelCallError, match="no further attempt was made: The budget of 400 tokens"):
        ask(llm_at(server.base_url, retries=2), meter)
    (record,) = meter.records
    assert budget.ledger.committed.tokens == record["prompt_tokens"] + record["completion_tokens"] > 150


# --- the name of the model that answers ---


@pytest.mark.parametrize("streamed", [False, True])
@pytest.mark.parametrize(
    ("name", "is_other"),
    [("m", False), ("org/M", False), ("m-2024-08-06", False), ("other", True), (7, False), (None, False), ("", False)],
)
def test_a_model_that_answers_as_another_is_told_once(
    raw: RawEndpoint, caplog: pytest.LogCaptureFixture, name: object, is_other: bool, streamed: bool
) -> None:
    """A gateway may fall back on another, and a server ignore the name."""
    status, headers, body = stream_reply({"content": "42"}) if streamed else chat_reply("42")
    assert isinstance(body, str)
    raw.will_send((status, headers, body.replace('"model": "m"', f'"model": {json.dumps(name)}')))
    llm = llm_at(raw.base_url)
    with caplog.at_level(logging.WARNING):
        for _ in range(2):
            assert ask(llm, on_text=Snapshots() if streamed else None).text == "42"
    told = [record.getMessage() for record in caplog.records]
    expected = f"Model 'm' at {raw.base_url} answers as 'other': another model may stand behind it"
    assert told == ([expected] if is_other else [])
