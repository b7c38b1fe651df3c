"""From the name of a model to the model: which address, which key, and what is said when one is missing."""

from __future__ import annotations

import pytest

from judgetree.app.scripted.answers import ChatReply
from judgetree.app.scripted.server import ScriptedServer
from judgetree.modules.addresses import Address
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.errors import ModelCallError, SettingsError
from judgetree.modules.llm.call_gate import CallGate
from judgetree.modules.llm.factory import (
    DASHSCOPE_BASE_URL,
    NO_KEY,
    SPEC_FORMS,
    Endpoint,
    create_llm,
    is_local,
    resolve_endpoint,
)
from judgetree.modules.settings import load_settings
from tests.modules.model_endpoints import Answer, ask, chat_reply, saying, serve_raw

SECRET = "sk-proj-0123456789abcdefghijklmnopqrstuvwxyz"
OWN_URL = "http://127.0.0.1:8000/v1"


@pytest.mark.parametrize(
    ("spec", "environment", "expected"),
    [
        ("openai:gpt-4o", {"OPENAI_API_KEY": "o"}, (None, "gpt-4o", "o")),
        ("openai:gpt-4o", {"OPENAI_API_KEY": "o", "OPENAI_BASE_URL": OWN_URL}, (OWN_URL, "gpt-4o", "o")),
        ("openai:gpt-4o", {"OPENAI_BASE_URL": OWN_URL}, (OWN_URL, "gpt-4o", NO_KEY)),
        ("openai:gpt-4o", {"JUDGETREE_LLM_BASE_URL": OWN_URL}, (OWN_URL, "gpt-4o", NO_KEY)),
        ("openai:gpt-4o", {"JUDGETREE_LLM_API_KEY": "j", "OPENAI_API_KEY": "o"}, (None, "gpt-4o", "j")),
        ("openai:ft:gpt-4o:org::id", {"OPENAI_API_KEY": "o"}, (None, "ft:gpt-4o:org::id", "o")),
        ("dashscope:qwen-plus", {"DASHSCOPE_API_KEY": "d"}, (DASHSCOPE_BASE_URL, "qwen-plus", "d")),
        ("dashscope:qwen-plus", {"JUDGETREE_LLM_API_KEY": "j"}, (DASHSCOPE_BASE_URL, "qwen-plus", "j")),
        (
            "dashscope:qwen-plus",
            {"DASHSCOPE_API_KEY": "d", "JUDGETREE_LLM_BASE_URL": OWN_URL},
            (OWN_URL, "qwen-plus", "d"),
        ),
        (f"{OWN_URL}#Qwen/Qwen3-8B", {}, (OWN_URL, "Qwen/Qwen3-8B", NO_KEY)),
        (f"{OWN_URL}#qwen3:8b", {"JUDGETREE_LLM_API_KEY": "j"}, (OWN_URL, "qwen3:8b", "j")),
        ("https://models.example/v1#m", {"DASHSCOPE_API_KEY": "d"}, ("https://models.example/v1", "m", NO_KEY)),
    ],
)
def test_endpoint_is_the_one_named_with_its_own_key(
    spec: str, environment: dict[str, str], expected: tuple[str | None, str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    endpoint = resolve_endpoint(spec, load_settings())
    assert (endpoint.base_url, endpoint.model, endpoint.api_key) == expected


@pytest.mark.parametrize(
    ("spec", "variable"), [("openai:gpt-4o", "OPENAI_API_KEY"), ("dashscope:qwen-plus", "DASHSCOPE_API_KEY")]
)
def test_missing_key_is_told_with_the_variables_that_may_hold_it(spec: str, variable: str) -> None:
    with pytest.raises(SettingsError, match=rf"'{spec}' needs a key: set {variable} or JUDGETREE_LLM_API_KEY"):
        resolve_endpoint(spec, load_settings())


@pytest.mark.parametrize("spec", ["", "gpt-4o", "ollama:llama3", "ftp://127.0.0.1#m", "OPENAI:gpt-4o"])
def test_unknown_form_is_told_with_those_that_are_allowed(spec: str) -> None:
    with pytest.raises(SettingsError) as caught:
        resolve_endpoint(spec, load_settings(llm_api_key="k"))
    assert repr(spec) in str(caught.value)
    assert SPEC_FORMS in str(caught.value)


@pytest.mark.parametrize("spec", ["openai:", "dashscope:", OWN_URL, f"{OWN_URL}#"])
def test_spec_that_names_no_model_is_refused(spec: str) -> None:
    with pytest.raises(SettingsError, match="names no model"):
        resolve_endpoint(spec, load_settings(llm_api_key="k"))


@pytest.mark.parametrize(
    "spec", [SECRET, f"http://ada:{SECRET}@127.0.0.1/v1", f"openai:{SECRET}", f"ftp://ada:{SECRET}@h#m"]
)
def test_secret_in_a_wrong_spec_is_not_echoed(spec: str) -> None:
    with pytest.raises(SettingsError) as caught:
        resolve_endpoint(spec, load_settings())
    assert SECRET not in str(caught.value)


@pytest.mark.parametrize("variable", ["JUDGETREE_LLM_API_KEY", "OPENAI_API_KEY"])
def test_white_space_around_a_key_is_left_out(variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(variable, f" {SECRET}\r\n")
    assert resolve_endpoint("openai:gpt-4o", load_settings()).api_key == SECRET
    assert SECRET in load_settings().secrets()


@pytest.mark.parametrize(
    ("spec", "variable"),
    [
        (f"{OWN_URL}#m", "JUDGETREE_LLM_API_KEY"),
        ("openai:gpt-4o", "OPENAI_API_KEY"),
        ("dashscope:qwen-plus", "DASHSCOPE_API_KEY"),
    ],
)
@pytest.mark.parametrize(("character", "code"), [("é", "U\\+00E9"), ("\u2011", "U\\+2011"), ("\n", "U\\+000A")])
def test_key_that_no_header_can_hold_is_refused_without_showing_it(
    spec: str, variable: str, character: str, code: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(variable, f"sk-{character}0123456789")
    with pytest.raises(SettingsError, match=rf"{variable} cannot be sent: its character 4 is {code}") as caught:
        resolve_endpoint(spec, load_settings())
    assert "0123456789" not in str(caught.value)


def test_endpoint_shows_neither_key_nor_password() -> None:
    endpoint = Endpoint(base_url=Address(f"http://ada:{SECRET}@127.0.0.1/v1"), model="m", api_key=SECRET)
    assert repr(endpoint) == "Endpoint(base_url='http://127.0.0.1/v1', model='m')"


@pytest.mark.parametrize(
    ("spec", "local"), [("local:", True), ("local:/models/a.gguf", True), ("openai:local:", False)]
)
def test_local_model_is_told_by_its_scheme(spec: str, local: bool) -> None:
    assert is_local(spec) is local


def test_model_answers_at_the_address_of_its_spec() -> None:
    with ScriptedServer(responses=saying(ChatReply(text="42"))) as server:
        llm = create_llm(f"{server.base_url}#scripted", load_settings(), CallGate(1))
        assert ask(llm).text == "42"
        assert (llm.model, llm.base_url) == ("scripted", server.base_url)


def test_model_sends_its_key_and_keeps_to_the_settings() -> None:
    refused: Answer = (500, {}, "{}")
    with serve_raw() as raw:
        raw.will_send(refused, chat_reply("42"))
        settings = load_settings(retries=0, llm_api_key=SECRET)
        llm = create_llm(f"{raw.base_url}#m", settings, CallGate(1))
        meter = CallMeter(node="generate")
        with pytest.raises(ModelCallError, match="attempt 1 of 1"):
            ask(llm, meter)
        assert ask(llm, meter).text == "42"
    assert [record["attempts"] for record in meter.records] == [1, 1], "the client itself tries nothing again"
    assert raw.keys == [f"Bearer {SECRET}"] * 2
    assert SECRET not in repr(llm)
