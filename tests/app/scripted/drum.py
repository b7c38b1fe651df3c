"""Prompts about the drum, and the HTTP calls of the scripted server's tests."""

from __future__ import annotations

import ssl
from functools import partial

import httpx
from langchain_openai import ChatOpenAI
from pydantic import SecretStr

from judgetree.app.scripted.server import ScriptedServer
from judgetree.modules.judge.prompts import judge_messages, needed_messages
from judgetree.modules.reader import prompts
from tests.app.conftest import CHAIN

VESSEL, WALL = CHAIN.supporting
JUDGE = judge_messages(CHAIN.question, VESSEL.quote)
NEEDED = needed_messages(CHAIN.question, VESSEL.quote)
READ = prompts.reader_messages(CHAIN.question, f"{VESSEL.quote}\n{WALL.quote}")
# httpx loads the system's certificates for each client otherwise, which takes longer than most of these tests.
NO_CERTIFICATES = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
http_get = partial(httpx.get, verify=NO_CERTIFICATES)
http_post = partial(httpx.post, verify=NO_CERTIFICATES, timeout=30)
Messages = list[prompts.Message]
Json = dict[str, object]


def chat_body(messages: Messages, **fields: object) -> Json:
    return {"model": "m", "messages": [{"role": role, "content": text} for role, text in messages], **fields}


def post(server: ScriptedServer, messages: Messages, **fields: object) -> httpx.Response:
    return http_post(f"{server.base_url}/chat/completions", json=chat_body(messages, **fields))


def text_of(response: httpx.Response) -> str:
    assert response.status_code == 200, response.text
    content = response.json()["choices"][0]["message"]["content"]
    assert isinstance(content, str)
    return content


def model(server: ScriptedServer, **fields: object) -> ChatOpenAI:
    options = {"model": "m", "base_url": server.base_url, "api_key": SecretStr("x"), "max_retries": 0, **fields}
    return ChatOpenAI(**options)  # type: ignore[arg-type]
