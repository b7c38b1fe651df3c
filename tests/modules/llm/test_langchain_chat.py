"""Chat models of LangChain keep the contract of our own, with usage, errors and fingerprints."""

from __future__ import annotations

import asyncio
import itertools
from pathlib import Path
from typing import Any

import pytest
from langchain_core.language_models import BaseChatModel, GenericFakeChatModel
from langchain_core.language_models.fake_chat_models import FakeListChatModel
from langchain_core.messages import AIMessage, BaseMessage
from langchain_core.outputs import ChatGeneration, ChatResult
from langchain_openai import ChatOpenAI
from langgraph.errors import GraphInterrupt
from pydantic import SecretStr

from judgetree import RagSession, from_langchain
from judgetree.app.scripted.answers import ChatReply
from judgetree.app.scripted.server import ScriptedServer
from judgetree.graphs.threads.context import RagContext
from judgetree.graphs.threads.fingerprint import fingerprint_of
from judgetree.modules.background_loop import background_loop
from judgetree.modules.calls.messages import CallOptions
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.errors import ModelCallError, ModelRequestError, ModelSetupError, SettingsError
from judgetree.modules.judge.generated import GeneratedJudge
from judgetree.modules.llm.langchain_chat import LangChainChat
from judgetree.modules.settings import load_settings
from judgetree.testing import check_chat_model
from tests.modules.model_endpoints import KEY, QUESTION, RawEndpoint, Snapshots, chat_reply, saying


def openai_at(url: str, **options: Any) -> ChatOpenAI:
    options = {"model": "m", "max_retries": 0, "temperature": 0.25, **options}
    return ChatOpenAI(base_url=url, api_key=SecretStr(KEY), **options)


class Answering(BaseChatModel):
    """Answers with one message, without streaming, or raises."""

    says: AIMessage | None = None
    raises: Any = None

    @property
    def _llm_type(self) -> str:
        return "answering"

    def _generate(self, messages: list[BaseMessage], *_: Any, **__: Any) -> ChatResult:
        if self.raises is not None:
            raise self.raises
        return ChatResult(generations=[ChatGeneration(message=self.says)])


def ask(llm: LangChainChat, meter: CallMeter | None = None, heard: Snapshots | None = None, **options: Any) -> Any:
    call = llm.complete(QUESTION, meter=meter or CallMeter(node="n"), options=CallOptions(**options), on_text=heard)
    return background_loop().run(asyncio.wait_for(call, 30))


@pytest.mark.parametrize(
    "chat",
    [
        FakeListChatModel(responses=["white"]),
        FakeListChatModel(responses=["<think>Snow.</think>white"]),
        GenericFakeChatModel(messages=itertools.cycle([AIMessage("it is white")])),
        Answering(says=AIMessage("white")),
    ],
)
def test_any_chat_model_keeps_the_contract(chat: BaseChatModel) -> None:
    check_chat_model(from_langchain(chat))


def test_a_real_client_keeps_the_contract(server: ScriptedServer) -> None:
    check_chat_model(from_langchain(openai_at(server.base_url)))


@pytest.mark.parametrize("streamed", [False, True])
def test_usage_is_what_the_endpoint_reports(server: ScriptedServer, streamed: bool) -> None:
    server.responses = saying(ChatReply(text="fifty four"))
    meter, heard = CallMeter(node="n"), Snapshots() if streamed else None
    completion = ask(from_langchain(openai_at(server.base_url)), meter, heard)
    assert (completion.text, completion.finish_reason) == ("fifty four", "stop")
    [record] = meter.records
    assert (record["model"], record["estimated"], record["completion_tokens"] > 0) == ("m", False, True)
    if heard is not None:
        assert heard[-1] == "fifty four"
        assert len(heard) > 1, "it is heard as it grows"


def test_tokens_that_are_not_reported_are_estimated() -> None:
    meter = CallMeter(node="n")
    ask(from_langchain(FakeListChatModel(responses=["fifty four"])), meter)
    assert (meter.records[0]["estimated"], meter.records[0]["prompt_tokens"] > 0) == (True, True)


def test_options_go_to_fields_of_their_names(raw: RawEndpoint) -> None:
    ask(from_langchain(openai_at(raw.base_url)), max_tokens=7, top_logprobs=3, json_format="json_object")
    [body] = raw.bodies
    assert (body["temperature"], body["logprobs"], body["top_logprobs"]) == (0.25, True, 3)
    assert {body.get("max_tokens"), body.get("max_completion_tokens")} == {7, None}
    assert "response_format" not in body


@pytest.mark.parametrize(
    ("metadata", "ended"),
    [
        ({"stop_reason": "max_tokens"}, "length"),
        ({"stopReason": "max_tokens"}, "length"),
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, "length"),
        ({"status": "incomplete", "incomplete_details": None}, "length"),
        ({"status": "completed", "incomplete_details": None}, ""),
        ({"done_reason": "stop"}, "stop"),
        ({"finish_reason": "stop"}, "stop"),
    ],
)
def test_reasons_and_reasoning_of_other_providers_are_understood(metadata: dict[str, Any], ended: str) -> None:
    blocks: Any = [{"type": "reasoning", "reasoning": "six by nine"}, {"type": "text", "text": "54"}]
    message = AIMessage(content=blocks, response_metadata=metadata)
    completion = ask(from_langchain(Answering(says=message)))
    assert (completion.text, completion.thinking, completion.finish_reason) == ("54", "six by nine", ended)


@pytest.mark.parametrize(
    ("status", "kind"), [(401, ModelSetupError), (400, ModelRequestError), (500, ModelCallError), (429, ModelCallError)]
)
def test_errors_of_a_client_are_ours(raw: RawEndpoint, status: int, kind: type[Exception]) -> None:
    raw.will_send((status, {}, '{"error": {"message": "no"}}'))
    meter = CallMeter(node="n")
    with pytest.raises(ModelCallError, match=r"Model 'm' \(ChatOpenAI\) failed") as raised:
        ask(from_langchain(openai_at(raw.base_url)), meter)
    assert type(raised.value) is kind
    assert KEY not in str(raised.value)
    assert meter.records[0]["error"] == str(raised.value)[:300]


@pytest.mark.parametrize("error", [KeyError("choices"), OSError("gone"), None])
def test_any_failure_of_a_model_is_a_failed_call(error: Exception | None) -> None:
    chat = Answering(says=AIMessage(""), raises=error)
    with pytest.raises(ModelCallError, match=r"Model 'Answering' \(Answering\) failed"):
        ask(from_langchain(chat))


def test_an_empty_answer_is_booked_as_it_is_reported() -> None:
    """It counted as no tokens and no dollars, so that a limit of cost did not see it."""
    used = {"input_tokens": 700, "output_tokens": 60, "total_tokens": 760}
    empty, meter = AIMessage("", usage_metadata=used), CallMeter(node="n")  # type: ignore[arg-type]
    with pytest.raises(ModelCallError, match="the answer is empty"):
        ask(from_langchain(Answering(says=empty)), meter)
    [record] = meter.records
    assert (record["prompt_tokens"], record["completion_tokens"]) == (700, 60)


@pytest.mark.parametrize("told", [-5, 10**30, float("nan"), "5", True, 1.5])
def test_an_impossible_count_is_estimated_as_one_that_is_not_reported(told: object) -> None:
    """It was booked as no tokens, so that a model that lies used up no budget."""

    def booked(usage: object) -> tuple[int, int]:
        says, meter = AIMessage("a word"), CallMeter(node="n")
        object.__setattr__(says, "usage_metadata", usage)
        ask(from_langchain(Answering(says=says)), meter)
        [record] = meter.records
        return record["prompt_tokens"], record["completion_tokens"]

    assert booked({"input_tokens": told, "output_tokens": 1, "total_tokens": 1}) == booked(None)


def test_an_interrupt_is_no_failure() -> None:
    with pytest.raises(GraphInterrupt):
        ask(from_langchain(Answering(raises=GraphInterrupt())))


def test_models_that_differ_have_other_fingerprints(raw: RawEndpoint) -> None:
    def fingerprint(chat: BaseChatModel, version: str = "") -> dict[str, str]:
        llm = from_langchain(chat, version=version)
        context = RagContext(reader=llm, judge=GeneratedJudge(llm))
        found = fingerprint_of(query="q", system="s", services=context)
        assert KEY not in str(found)
        assert found["reader.model_fields"] == found["judge.model_fields"]
        return found

    def made(**options: Any) -> ChatOpenAI:
        return openai_at(raw.base_url, **options)

    prints = [
        fingerprint(made()),
        fingerprint(made(temperature=0.5)),
        fingerprint(made(top_p=0.5)),
        fingerprint(made(model="n")),
        fingerprint(made(), "2"),
        fingerprint(openai_at(f"{raw.base_url}/other")),
    ]
    assert len({tuple(sorted(each.items())) for each in prints}) == len(prints)
    assert fingerprint(made()) == prints[0]
    assert (prints[1]["reader.model"], prints[1]["reader.temperature"]) == ("m", "0.5")


def test_a_model_that_is_asked_keeps_its_fingerprint() -> None:
    llm = from_langchain(FakeListChatModel(responses=["a", "b"]))
    before = llm.fields
    ask(llm)
    assert llm.fields == before


@pytest.mark.parametrize("wrap", [False, True])
def test_a_session_answers_with_it(server: ScriptedServer, tmp_path: Path, wrap: bool) -> None:
    chat = openai_at(server.base_url)
    settings = load_settings(home=tmp_path, checkpoints="memory:")
    with RagSession(system="llm", llm=from_langchain(chat) if wrap else chat, settings=settings) as session:
        result = session.ask("What is six by nine?", thread_id="t")
        assert (result.answer, result.usage["llm_calls"], server.requests.total()) == ("42", 1, 1)
        assert result.tree.fingerprint["reader.model"] == "m"


@pytest.mark.parametrize("part", [ChatOpenAI, "gpt", Answering(says=AIMessage("a")).with_retry()])
def test_what_is_no_part_of_langchain_is_refused(part: Any) -> None:
    with pytest.raises(SettingsError, match="is no model and no retriever of LangChain"):
        from_langchain(part)


def test_a_reply_without_text_may_have_logprobs(raw: RawEndpoint) -> None:
    raw.will_send(chat_reply(""))
    assert ask(from_langchain(openai_at(raw.base_url)), top_logprobs=2).text == ""
