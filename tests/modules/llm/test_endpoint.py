"""A model behind an endpoint: what is sent, what is understood, and what is booked."""

from __future__ import annotations

import asyncio
import itertools
import json
from typing import Any

import httpx2
import pytest

from judgetree.app.scripted.answers import ChatReply
from judgetree.app.scripted.server import ScriptedServer
from judgetree.modules.calls.budget import CallBudget
from judgetree.modules.calls.completion import Completion
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.errors import BudgetSpent
from judgetree.modules.llm.call_gate import CallGate
from judgetree.modules.llm.endpoint import EndpointLLM
from judgetree.modules.llm.openai_client import ReasoningChatOpenAI
from tests.modules.model_endpoints import KEY, RawEndpoint, Snapshots, ask, chat_reply, llm_at, saying, stream_reply

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
    """langchain-openai's parser raises on it, for a response_format that it gets to see."""
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
    assert (meter.records[0]["prompt_tokens"], meter.records[0]["completion_tokens"]) == (10, 8)


def test_seconds_include_the_waits_between_attempts(server: ScriptedServer) -> None:
    server.configure(faults={"500": 1.0}, fault_attempts=1)
    meter = CallMeter(node="generate")
    ask(llm_at(server.base_url, sleep=lambda _: asyncio.sleep(0.2)), meter)
    assert meter.records[0]["seconds"] >= 0.2


def test_budget_is_reserved_once_a_call_whatever_its_attempts(server: ScriptedServer) -> None:
    server.configure(faults={"500": 1.0}, fault_attempts=2)
    budget = CallBudget(limit=1)
    meter = CallMeter(node="generate", budget=budget)
    assert ask(llm_at(server.base_url), meter).text == "42"
    assert (budget.used, meter.records[0]["attempts"]) == (1, 3)
    with pytest.raises(BudgetSpent):
        ask(llm_at(server.base_url), meter)
    assert server.requests["other"] == 3
    assert len(meter.records) == 1
