"""Requests as LibreChat's custom endpoint sends them, through LangChain's client and OpenAI's for Node.

Their fields are those of LibreChat 0.8 (``packages/api/src/endpoints/openai``, ``@librechat/agents``): a chat streams
without ``stream_options``, names its user, and has parameters as the user set them; a title is one request without a
stream to ``titleModel``, in words or, with ``titleMethod: structured``, as JSON. Both have the endpoint's headers.
"""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from judgetree.app.scripted.server import ScriptedServer
from judgetree.app.scripted.wire import ReceivedRequest
from tests.app.conftest import COLLECTION
from tests.app.talks import FIRST, PAINT, THICKNESS

CHAT = "2f0c8a86-6b25-4f8e-9a53-6a3f0b8d7c11"
HEADERS = {
    "Accept": "application/json",
    "Authorization": "Bearer none",
    "User-Agent": "langchainjs-openai/1.0.0 (node/v24)",
    "X-Stainless-Lang": "js",
    "X-Stainless-Retry-Count": "0",
    "X-Chat-Id": CHAT,  # headers: X-Chat-Id: "{{LIBRECHAT_BODY_CONVERSATIONID}}"
}
USER = "665f1c2ab0a9b1d2e3f40516"
INSTRUCTIONS = {"role": "system", "content": "Answer briefly."}
TITLE = (
    "Provide a concise, 5-word-or-less title for the conversation, using title case conventions. Only return the title "
    f"itself.\n\nConversation:\nUser: {FIRST}\nAI: the drum"
)
TITLE_SCHEMA = {
    "type": "object",
    "properties": {"title": {"type": "string", "description": "A concise title for the conversation"}},
    "required": ["title"],
    "additionalProperties": False,
    "$schema": "http://json-schema.org/draft-07/schema#",
}


def chat(http: httpx.Client, *texts: str) -> dict[str, Any]:
    """The conversation's part of the last chunk of an answer, with the text as LibreChat adds it up."""
    said = [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(texts)]
    body = {
        "model": f"{COLLECTION}/judge",
        "temperature": 0.7,
        "top_p": 1,
        "frequency_penalty": 0,
        "presence_penalty": 0,
        "stop": ["||"],
        "user": USER,
        "stream": True,
        "max_tokens": 4096,
        "messages": [INSTRUCTIONS, *said],
        "judgetree": {"sources": "markdown"},  # addParams
    }
    answer = http.post("/v1/chat/completions", json=body, headers=HEADERS)
    assert answer.status_code == 200, answer.text
    data = [line.removeprefix("data: ") for line in answer.text.split("\n\n") if line.startswith("data: ")]
    assert data.pop() == "[DONE]"
    chunks = [json.loads(each) for each in data]
    assert all(isinstance(chunk["choices"], list) for chunk in chunks), "others are not read"
    deltas = [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]
    own = next(chunk["judgetree"] for chunk in reversed(chunks) if "judgetree" in chunk)
    return {**own, "text": "".join(delta.get("content") or "" for delta in deltas)}


def title(http: httpx.Client, **more: object) -> httpx.Response:
    messages = [{"role": "user", "content": TITLE}]
    body = {"model": "fast", "temperature": 0.7, "user": USER, "stream": False, "messages": messages, **more}
    return http.post("/v1/chat/completions", json=body, headers=HEADERS)


def test_a_chat_is_a_conversation_and_an_edited_message_a_branch(http: httpx.Client) -> None:
    first = chat(http, FIRST)
    assert (first["conversation"], first["answer"]) == (CHAT, "the drum")
    assert first["text"].startswith("the drum\n\nSources:\n1. [Norm A](http")
    second = chat(http, FIRST, first["text"], THICKNESS)
    assert (second["answer"], second["parent_turn_id"], second["branch"]) == ("40 mm", first["turn_id"], "main")
    edited = chat(http, FIRST, first["text"], PAINT)
    assert (edited["answer"], edited["parent_turn_id"], edited["branch"]) == ("grey", first["turn_id"], "branch-2")


@pytest.mark.parametrize("model", ["fast", f"{COLLECTION}/judge"])
def test_titles_come_from_one_call_and_are_no_turns(http: httpx.Client, scripted: ScriptedServer, model: str) -> None:
    chat(http, FIRST)
    forms: list[str] = []

    def keep(request: ReceivedRequest) -> None:
        forms.append(request.response_format)

    scripted.responses = keep
    assert title(http, model=model).json()["choices"][0]["message"]["content"]
    form = {"name": "extract", "strict": True, "schema": TITLE_SCHEMA}
    structured = title(http, model=model, response_format={"type": "json_schema", "json_schema": form})
    assert structured.status_code == 200, structured.text
    assert forms == ["text", "json_schema"]
    assert [each["query"] for each in http.get(f"/v1/conversations/{CHAT}").json()["turns"]] == [FIRST]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"response_format": {"type": "json_schema"}}, "needs json_schema"),
        ({"response_format": {"type": "xml"}}, "response_format.type"),
    ],
)
def test_forms_that_cannot_be_are_refused(http: httpx.Client, change: dict[str, object], words: str) -> None:
    answer = title(http, **change)
    assert answer.status_code == 422
    assert words in answer.json()["error"]["message"]


def test_a_schema_that_cannot_be_sent_on_is_refused(http: httpx.Client) -> None:
    form = '{"type": "json_schema", "json_schema": {"schema": {"\\ud800": "\\udfff\\u0000"}}}'
    messages = json.dumps([{"role": "user", "content": TITLE}])
    body = f'{{"model": "fast", "messages": {messages}, "response_format": {form}}}'
    answer = http.post("/v1/chat/completions", content=body, headers={"Content-Type": "application/json"})
    assert answer.status_code == 422, answer.text
