"""Temperature and thinking of the calls of one model: what is sent where, and what is refused."""

from __future__ import annotations

import json
from typing import Any

import pytest
from langchain_core.language_models.fake_chat_models import FakeListChatModel

from judgetree import from_langchain
from judgetree.modules.calls.messages import PLAIN_TEXT, CallOptions, call_key
from judgetree.modules.config.answer_form import AnswerForm
from judgetree.modules.errors import ModelRequestError, ModelSetupError, SettingsError
from judgetree.modules.llm.contract import temperature_of, thinking_of
from judgetree.modules.llm.request_params import must_stream, request_params
from judgetree.modules.llm.tuned import BoundedLLM, check_takes, with_sampling
from tests.modules.llm.test_langchain_chat import ask as ask_langchain
from tests.modules.model_endpoints import QUESTION, RawEndpoint, ask, llm_at, stream_reply

KWARGS = "chat_template_kwargs"


@pytest.mark.parametrize(
    ("base_url", "off", "on"),
    [
        ("https://api.openai.com/v1", {"reasoning_effort": "none"}, {"reasoning_effort": "medium"}),
        ("https://mine.openai.azure.com/openai/v1", {"reasoning_effort": "none"}, {"reasoning_effort": "medium"}),
        ("http://127.0.0.1:11434/v1", {"reasoning_effort": "none"}, {"reasoning_effort": "medium"}),
        ("https://dashscope.aliyuncs.com/compatible-mode/v1", {"enable_thinking": False}, {"enable_thinking": True}),
        ("http://127.0.0.1:9/compatible-mode/v1", {"enable_thinking": False}, {"enable_thinking": True}),
        ("http://127.0.0.1:8000/v1", {KWARGS: {"enable_thinking": False}}, {KWARGS: {"enable_thinking": True}}),
        (
            "https://notapi.openai.com.example/v1",
            {KWARGS: {"enable_thinking": False}},
            {KWARGS: {"enable_thinking": True}},
        ),
    ],
)
def test_each_endpoint_is_told_in_its_own_words(base_url: str, off: object, on: object) -> None:
    unset = request_params(PLAIN_TEXT, base_url)
    for thinking, said in ((False, off), (True, on)):
        sent = request_params(CallOptions(thinking=thinking), base_url)
        assert {name: value for name, value in sent.items() if name not in unset} == said


def test_requests_and_keys_have_it_only_where_it_is_said(raw: RawEndpoint) -> None:
    llm = llm_at(raw.base_url)
    for model in (
        llm,
        with_sampling(llm, thinking=False),
        with_sampling(with_sampling(llm, thinking=True, temperature=0.5), thinking=False),
    ):
        ask(model)
    sent = [(body["temperature"], body.get(KWARGS)) for body in raw.bodies]
    assert sent == [(0.0, None), (0.0, {"enable_thinking": False}), (0.5, {"enable_thinking": False})]
    keys = {call_key("e", "m", QUESTION, CallOptions(thinking=thinking)) for thinking in (None, False, True)}
    assert (len(keys), call_key("e", "m", QUESTION, PLAIN_TEXT) in keys) == (3, True)


def test_what_is_not_said_is_that_of_the_model_beneath(raw: RawEndpoint) -> None:
    llm = llm_at(raw.base_url)
    assert with_sampling(llm) is llm
    warm = with_sampling(llm, temperature=0.5, thinking=True)
    both = with_sampling(warm, thinking=False)
    assert (temperature_of(both), thinking_of(both), thinking_of(warm), thinking_of(llm)) == (0.5, False, True, None)


def test_zero_is_a_temperature_of_its_own_and_calls_keep_their_keys(raw: RawEndpoint) -> None:
    warm = with_sampling(llm_at(raw.base_url), temperature=0.5)
    cold = with_sampling(warm, temperature=0)
    assert temperature_of(cold) == 0
    ask(cold)
    ask(warm, temperature=0.0, seed=7)
    assert [(body["temperature"], body.get("seed")) for body in raw.bodies] == [(0, None), (0, 7)]
    given = [PLAIN_TEXT, CallOptions(temperature=0.0), CallOptions(temperature=0.5), CallOptions(seed=7)]
    keys = [call_key("e", "m", QUESTION, each) for each in given]
    assert (len(set(keys)), keys[0]) == (3, keys[1])


def test_dashscope_thinks_in_streams(raw: RawEndpoint) -> None:
    raw.will_send(stream_reply({"reasoning_content": "hm"}, {"content": "42"}))
    llm = with_sampling(llm_at(raw.base_url.replace("/v1", "/compatible-mode/v1")), thinking=True)
    assert (ask(llm).text, raw.bodies[0]["stream"], raw.bodies[0]["enable_thinking"]) == ("42", True, True)
    assert not must_stream(CallOptions(thinking=False), "https://dashscope.aliyuncs.com/compatible-mode/v1")


def test_refusal_names_the_remedy(raw: RawEndpoint) -> None:
    raw.will_send((400, {}, json.dumps({"error": {"message": "Unrecognized request argument: reasoning_effort"}})))
    with pytest.raises(ModelRequestError, match=r"reasoning_effort.*leave out thinking \(JUDGETREE_THINKING\)"):
        ask(llm_at(raw.base_url), thinking=False)
    with pytest.raises(ModelRequestError) as refused:
        ask(llm_at(raw.base_url))
    assert "thinking" not in str(refused.value)


def test_langchain_model_is_set_where_it_is_made() -> None:
    llm: Any = from_langchain(FakeListChatModel(responses=["42"]))
    with pytest.raises(SettingsError, match="switch its thinking where it is made"):
        with_sampling(llm, thinking=True)
    with pytest.raises(SettingsError, match="switch its thinking where it is made"):
        ask_langchain(llm, thinking=False)
    with pytest.raises(SettingsError, match="keeps its own settings: leave out temperature"):
        with_sampling(llm, temperature=0)
    with pytest.raises(SettingsError, match="leave out max_tokens, seed"):
        check_takes(BoundedLLM(llm, max_prompt_tokens=99), AnswerForm(max_tokens=1, seed=1, stop=("a",)).options)


def test_model_without_a_chat_is_told_of_the_other_endpoint(raw: RawEndpoint) -> None:
    raw.will_send((404, {}, json.dumps({"error": {"message": "This is not a chat model"}})))
    with pytest.raises(ModelSetupError, match=r"This is not a chat model.*or write completion: before it"):
        ask(llm_at(raw.base_url))
