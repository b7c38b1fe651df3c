"""Requests as Open WebUI 0.12 sends them with its defaults, and what it makes of the answers.

A chat streams, offers Open WebUI's own tools, and has no id unless Open WebUI forwards who asks
(``ENABLE_FORWARD_USER_INFO_HEADERS``). Title, tags and follow-ups are requests of their own to the chosen model,
without a stream. All come from aiohttp. The prompts here have the form of Open WebUI's own.
"""

from __future__ import annotations

import json
from typing import Any

import httpx
import pytest

from judgetree.app.scripted.answers import ChatReply
from judgetree.app.scripted.server import ScriptedServer
from judgetree.app.scripted.wire import ReceivedRequest
from judgetree.app.server.chat.requests import Message
from judgetree.app.server.chat.tasks import is_task_prompt
from tests.app.conftest import CHAIN, COLLECTION
from tests.app.talks import FIRST, THICKNESS

HEADERS = {"Authorization": "Bearer none", "Accept": "*/*", "User-Agent": "Python/3.11 aiohttp/3.14.5"}
CHAT = {"X-OpenWebUI-Chat-Id": "88ebe39f-4e63-404a-8aee-9eb319df1cb7"}
TOOL = {"type": "function", "function": {"name": "ask_user", "parameters": {"type": "object", "properties": {}}}}
HISTORY = f"### Chat History:\n<chat_history>\nUSER: {FIRST}\nASSISTANT: the drum\n</chat_history>"
TITLE = f'### Task:\nName the chat in a few words.\n### Output:\nJSON format: {{ "title": "words" }}\n{HISTORY}'
TAGS = f'### Task:\nGive the chat up to three tags.\n\n### Output:\nJSON format: {{ "tags": ["tag"] }}\n\n{HISTORY}'
FOLLOW_UPS = f'### Task:\nPredict the next messages.\n### Output:\nJSON format: {{ "follow_ups": ["one"] }}\n{HISTORY}'
COMPLETION = f"### Task:\nComplete the text.\n\n---\n### Context:\n{HISTORY}\n<type>General</type>\n<text>How</text>\n"
CONTEXT = "<context>\n<source id='1'>A chat has a <chat_history>.</source>\n</context>"
LIBRECHAT = "Provide a concise, 5-word-or-less title for the conversation, using title case conventions.\n\nUser: Hello"
LANGUAGE = "Analyze this conversation and provide:\n1. The detected language\n2. A concise title\n\nUser: Hello"


def said(*texts: str) -> list[dict[str, str]]:
    return [{"role": ("user", "assistant")[i % 2], "content": text} for i, text in enumerate(texts)]


class OpenWebUI:
    """Sends what Open WebUI sends."""

    def __init__(self, http: httpx.Client, headers: dict[str, str]) -> None:
        self._http = http
        self._headers = HEADERS | headers

    def ask(self, *texts: str) -> list[dict[str, Any]]:
        """The chunks of an answer."""
        body = {"stream": True, "model": f"{COLLECTION}/judge", "messages": said(*texts), "tools": [TOOL]}
        answer = self._http.post("/v1/chat/completions", json=body, headers=self._headers)
        assert answer.status_code == 200, answer.text
        data = [line.removeprefix("data: ") for line in answer.text.split("\n\n") if line.startswith("data: ")]
        return [json.loads(each) for each in data if each != "[DONE]"]

    def task(self, prompt: str, **more: object) -> str:
        """The answer to a prompt of its own."""
        body = {"model": f"{COLLECTION}/judge", "messages": said(prompt), "stream": False, **more}
        answer = self._http.post("/v1/chat/completions", json=body, headers=self._headers)
        assert answer.status_code == 200, answer.text
        return str(answer.json()["choices"][0]["message"]["content"])


def shown_sources(chunks: list[dict[str, Any]]) -> list[tuple[str, list[str]]]:
    """Names and passages of the sources below an answer, as Open WebUI adds them up."""
    sources = [chunk["event"]["data"] for chunk in chunks if chunk.get("event", {}).get("type") == "source"]
    for chunk in chunks:
        for annotation in (chunk["choices"][0]["delta"] if chunk["choices"] else {}).get("annotations", []):
            cited = annotation["url_citation"]
            metadata = {"source": cited["url"], "name": cited["title"]}
            sources.append({"source": {}, "document": [cited["title"]], "metadata": [metadata]})
    shown: dict[str, tuple[str, list[str]]] = {}
    for source in sources:
        for document, metadata in zip(source["document"], source["metadata"], strict=True):
            key = metadata["source"]
            name = key if key.startswith(("http://", "https://")) else metadata["name"]
            shown.setdefault(key, (name, []))[1].append(document)
    return list(shown.values())


@pytest.mark.parametrize(("headers", "conversations"), [({}, [1, 1]), (CHAT, [2])], ids=["defaults", "forwarding"])
def test_two_questions_are_two_turns_and_nothing_else_is_judged(
    http: httpx.Client, scripted: ScriptedServer, headers: dict[str, str], conversations: list[int]
) -> None:
    client = OpenWebUI(http, headers)
    before = scripted.requests["judge"]
    first = client.ask(FIRST)
    second = client.ask(FIRST, "the drum", THICKNESS)
    judged = scripted.requests["judge"] - before
    for prompt in (TITLE, TAGS, FOLLOW_UPS):
        assert client.task(prompt, max_tokens=1000)
    assert scripted.requests["judge"] - before == judged > 0
    kept = http.get("/v1/conversations?unnamed=true").json()["data"]
    assert [(each["turns"], each["branches"]) for each in kept] == [(turns, ["main"]) for turns in conversations]
    assert shown_sources(first) == [("Norm A", ["# Norm A\n\nNorm A names the drum."])]
    assert [name for name, _ in shown_sources(second)] == ["Drums"]


def test_numbers_that_an_answer_cites_are_those_of_its_sources(http: httpx.Client, scripted: ScriptedServer) -> None:
    def cite(request: ReceivedRequest) -> ChatReply | None:
        return ChatReply(text="The drum [1] has 40 mm.") if request.prompt.kind == "read" else None

    scripted.responses = cite
    chunks = OpenWebUI(http, {}).ask(CHAIN.question)
    assert [name for name, _ in shown_sources(chunks)] == ["Norm A", "Drums"]
    assert chunks[-1]["judgetree"]["cited"] == [1]


@pytest.mark.parametrize("prompt", [TITLE, TAGS, FOLLOW_UPS, COMPLETION, LIBRECHAT, LANGUAGE])
def test_prompts_of_clients_are_known_by_their_form(prompt: str) -> None:
    instructed = [Message(role="system", content="Be brief."), Message(role="user", content=prompt)]
    assert is_task_prompt(instructed[1:])
    assert is_task_prompt(instructed)
    talk = [Message(role="user", content="Hello"), Message(role="assistant", content="Hi"), instructed[1]]
    assert not is_task_prompt(talk), "a question within a chat"


@pytest.mark.parametrize(
    "question",
    [
        FIRST,
        "### Task:\nWhich gasket fits?",
        "### Task:\nWhich gasket fits? My notes hold a <chat_history> tag.",
        "Detect the language used in the following text. Then tell which standard covers it: der Flansch",
        "Provide a concise, 5-word-or-less title for the conversation types that the standard lists",
        f"### Task:\nRespond to the query from the context.\n\n### Output:\nA clear response.\n\n{CONTEXT}\n\n{FIRST}",
        f"Why is this no title?\n{TITLE}",
        "Analyze this conversation and provide: its topics",
    ],
)
def test_questions_are_no_prompts_of_clients(question: str) -> None:
    assert not is_task_prompt([Message(role="user", content=question)])
