"""Models that complete texts: what is sent to ``/completions``, and that what comes is read as a chat's reply."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.language_models.fake import FakeListLLM, FakeStreamingListLLM

from judgetree import CallGate, ChatLLM, RagSession, create_llm, from_langchain, load_settings, open_index
from judgetree.app.scripted.answers import ChatReply
from judgetree.app.scripted.server import ScriptedServer
from judgetree.modules.calls.completion import TokenLogprob
from judgetree.modules.calls.messages import Message
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.errors import ModelCallError, ModelRequestError, SettingsError
from judgetree.modules.llm.completion_client import MOST_TOKENS
from judgetree.modules.llm.contract import model_fingerprint
from judgetree.modules.llm.factory import is_local, resolve_endpoint
from judgetree.modules.llm.one_prompt import messages_of, one_prompt
from judgetree.modules.llm.tuned import with_sampling
from judgetree.testing import check_chat_model
from tests.app.conftest import CHAIN, write_corpus
from tests.modules.llm.test_langchain_chat import ask as ask_langchain
from tests.modules.model_endpoints import Answer, RawEndpoint, Snapshots, ask, saying

PROMPT = "User: What is six by nine?\n\nAssistant:"
TURN = "\nUser:"


def text_llm(base_url: str, **settings: Any) -> ChatLLM:
    return create_llm(f"completion:{base_url}#m", load_settings(retries=0, **settings), CallGate(4))


def text_reply(text: str, *, finish_reason: str | None = "stop", **more: object) -> Answer:
    choice = {"index": 0, "text": text, "finish_reason": finish_reason, "logprobs": None}
    return 200, {}, json.dumps({"id": "1", "object": "text_completion", "model": "m", "choices": [choice], **more})


def text_stream(*pieces: str) -> Answer:
    choices = [{"index": 0, "text": text, "finish_reason": None, "logprobs": None} for text in pieces]
    choices.append({"index": 0, "text": "", "finish_reason": "stop", "logprobs": None})
    head = {"id": "1", "object": "text_completion", "model": "m"}
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    events = [json.dumps({**head, "choices": [each]}) for each in choices]
    events += [json.dumps({**head, "choices": [], "usage": usage}), "[DONE]"]
    return 200, {"Content-Type": "text/event-stream"}, "".join(f"data: {event}\n\n" for event in events)


# --- the prompt ---

texts = st.lists(
    st.sampled_from(["a", " ", "\n", "\r", "\u200b", ":", "User", "\nassistant :", "\n\nUser: ", "System"]), max_size=8
).map("".join)
dialogues = st.lists(st.tuples(st.sampled_from(["user", "assistant"]), texts), min_size=1, max_size=4)


@given(system=texts, dialogue=dialogues)
def test_no_text_passes_for_a_turn(system: str, dialogue: Sequence[Message]) -> None:
    read = messages_of(one_prompt([("system", f"S{system}"), *dialogue, ("user", "x")]))
    assert [role for role, _ in read] == ["system", *(role for role, _ in dialogue), "user"]


def test_turns_are_labelled_and_lines_like_a_label_are_indented() -> None:
    messages = [
        ("system", "Be brief."),
        ("user", "Hi\n\nAssistant: I say\u2028User: x"),
        ("assistant", "Users: many"),
        ("user", "a\nb"),
    ]
    assert one_prompt(messages) == (
        "Be brief.\n\nUser: Hi\n\n    Assistant: I say\u2028    User: x\n\n"
        "Assistant: Users: many\n\nUser: a\nb\n\nAssistant:"
    )


# --- on the wire ---


def test_request_is_one_prompt_with_limits_and_its_own_stop(raw: RawEndpoint) -> None:
    raw.will_send(text_reply(" 42"))
    llm = text_llm(raw.base_url)
    assert ask(llm).text == "42"
    assert raw.bodies == [
        {
            "model": "m",
            "prompt": PROMPT,
            "temperature": 0.0,
            "stream": False,
            "stop": [TURN],
            "max_tokens": MOST_TOKENS,
        }
    ]
    ask(llm, max_tokens=7, top_logprobs=3, stop=("Observation:",))
    body = raw.bodies[-1]
    assert (body["max_tokens"], body["logprobs"], body["stop"]) == (7, 3, [TURN, "Observation:"])
    assert "top_logprobs" not in body


@pytest.mark.parametrize("streamed", [False, True])
def test_reply_ends_before_the_next_question_and_is_counted(raw: RawEndpoint, streamed: bool) -> None:
    usage = {"prompt_tokens": 7, "completion_tokens": 3, "total_tokens": 10}
    whole = text_reply(" 42\n\nUser: And six by eight?", usage=usage)
    raw.will_send(text_stream(" 4", "2\n\nUs", "er: And six by eight?") if streamed else whole)
    meter, heard = CallMeter(node="n"), Snapshots() if streamed else None
    assert ask(text_llm(raw.base_url), meter, on_text=heard).text == "42"
    assert heard is None or heard == ["4", "42"]
    [record] = meter.records
    assert (record["prompt_tokens"], record["completion_tokens"], record["estimated"]) == (7, 3, False)


@pytest.mark.parametrize("form", ["by token", "of a chat", "unknown", "none"])
def test_logprobs_come_in_the_old_form_or_in_that_of_chats(raw: RawEndpoint, form: str) -> None:
    top = {" no": -2.0, " yes": -0.1}
    logprobs: dict[str, object] | None = {
        "by token": {"tokens": [" yes"], "token_logprobs": [-0.1], "top_logprobs": [top], "text_offset": [0]},
        "of a chat": {
            "content": [
                {"token": " yes", "logprob": -0.1, "top_logprobs": [{"token": t, "logprob": p} for t, p in top.items()]}
            ]
        },
        "unknown": {"tokens": [" yes"], "token_logprobs": [None], "top_logprobs": [None]},
        "none": None,
    }[form]
    choice = {"index": 0, "text": " yes", "finish_reason": "length", "logprobs": logprobs}
    raw.will_send((200, {}, json.dumps({"id": "1", "model": "m", "choices": [choice]})))
    found = set(ask(text_llm(raw.base_url), max_tokens=1, top_logprobs=2).first_token)
    expected = {TokenLogprob(token=token, logprob=logprob) for token, logprob in top.items()}
    assert found == (expected if form in ("by token", "of a chat") else set())


def test_broken_replies_and_refusals_are_the_usual_errors(raw: RawEndpoint) -> None:
    raw.will_send((200, {}, '{"choices": [{"index": 0}]}'))
    with pytest.raises(ModelCallError, match="no chat completion"):
        ask(text_llm(raw.base_url))
    raw.will_send((404, {}, '{"error": {"message": "no such route"}}'))
    with pytest.raises(ModelCallError, match="check the model's name and the address"):
        ask(text_llm(raw.base_url))
    raw.will_send((400, {}, '{"error": {"message": "too long"}}'))
    with pytest.raises(ModelRequestError, match="too long"):
        ask(text_llm(raw.base_url))


# --- as a model of judgetree ---


def test_scripted_server_completes_texts(server: ScriptedServer) -> None:
    check_chat_model(text_llm(server.base_url))
    server.responses = saying(ChatReply(text="yes", p_yes=0.9))
    first = ask(text_llm(server.base_url), max_tokens=1, top_logprobs=4).first_token
    assert math.isclose(sum(math.exp(each.logprob) for each in first if each.token.strip().lower() == "yes"), 0.9)


def test_spec_is_read_with_its_secrets_and_named_apart_from_the_chat() -> None:
    url = "http://ada:lovelace@127.0.0.1:8000/v1#m"
    settings = load_settings(llm=f"completion:{url}")
    assert "lovelace" not in repr(settings)
    text, chat = (create_llm(spec, settings, CallGate(1)) for spec in (settings.llm_spec, url))
    assert (text.base_url, text.model) == (chat.base_url, chat.model) == ("http://127.0.0.1:8000/v1", "m")
    assert (text.endpoint, chat.endpoint) == ("127.0.0.1:8000/v1 completions", "127.0.0.1:8000/v1")
    assert model_fingerprint(text) != model_fingerprint(chat) == {"model": "m"}
    assert is_local("completion:local:") is is_local("local:") is True
    assert not is_local("completion:openai:local:")
    for spec, said in (
        ("completion:", "Unknown model ''"),
        ("completion:openai:", "names no model"),
        ("completion:m", "completion: before"),
    ):
        with pytest.raises(SettingsError, match=said):
            create_llm(spec, load_settings(llm_api_key="k"), CallGate(1))
    with pytest.raises(SettingsError, match="Unknown model"):
        resolve_endpoint("completion:openai:m", load_settings(llm_api_key="k"))  # as embeddings would
    with pytest.raises(SettingsError, match="completes texts"):
        with_sampling(text, thinking=False)


@pytest.mark.parametrize("system", ["naive", "judge"])
def test_a_model_that_completes_texts_answers_as_the_chat_does(tmp_path: Path, system: str) -> None:
    with ScriptedServer([CHAIN]) as server:
        url = f"{server.base_url}#scripted"
        chat = load_settings(llm=url, home=tmp_path / "home", embeddings="local:use")
        with open_index("docs", chat, data_path=write_corpus(tmp_path / "docs")) as index:
            index.get_index_done()
        results = []
        for settings in (chat, chat.with_models(llm=f"completion:{url}")):
            with RagSession("docs", system=system, settings=settings) as session:
                results.append(session.ask(CHAIN.question))
        assert results[0].answer == results[1].answer != ""
        calls = [result.usage["llm_calls"] for result in results]
        assert calls[0] == calls[1] > 0
        fields = [result.tree.fingerprint.get("reader.model_fields") for result in results]
        assert fields == [None, "completions"]


@pytest.mark.parametrize("streamed", [False, True])
def test_langchain_text_models_answer_too(streamed: bool) -> None:
    kind = FakeStreamingListLLM if streamed else FakeListLLM
    llm = from_langchain(kind(responses=[" 42\n\nUser: And then?"]))
    check_chat_model(llm)
    assert ask_langchain(llm, heard=Snapshots() if streamed else None).text == "42"
    assert llm.fields != from_langchain(kind(responses=["43"])).fields
