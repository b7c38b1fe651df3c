"""The shared connections: closed with the process, not inherited by a forked child, replaced when the server left."""

from __future__ import annotations

import asyncio
import base64
import os
import subprocess
import sys
from urllib.parse import urlsplit

import pytest

from judgetree.app.scripted.answers import ChatReply
from judgetree.app.scripted.server import ScriptedServer
from judgetree.modules.background_loop import background_loop
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.llm.call_gate import CallGate
from judgetree.modules.llm.endpoint import EndpointLLM
from tests.modules.model_endpoints import ask, chat_reply, llm_at, saying, serve_raw

ASKING = """
import os, sys
from judgetree.modules.background_loop import background_loop
from judgetree.modules.llm.openai_client import open_chat
from judgetree.modules.llm.call_gate import CallGate
from judgetree.modules.llm.endpoint import EndpointLLM
from judgetree.modules.calls.usage import CallMeter

def ask():
    chat = open_chat("m", base_url=sys.argv[1], api_key="key", timeout_s=20)
    call = EndpointLLM(chat, gate=CallGate(1)).complete([("user", "?")], meter=CallMeter(node="generate"))
    print(background_loop().run(call).text + "\\n", end="", flush=True)

ask()
"""
FORKING = """
child = os.fork()
ask()
if child:
    _, status = os.waitpid(child, 0)
    sys.exit(os.waitstatus_to_exitcode(status))
"""


def run(code: str, base_url: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-X", "dev", "-W", "ignore::DeprecationWarning", "-c", code, base_url]
    return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)


@pytest.mark.slow
def test_process_that_has_asked_ends_quietly() -> None:
    with ScriptedServer(responses=saying(ChatReply(text="42"))) as server:
        ended = run(ASKING, server.base_url)
    assert (ended.returncode, ended.stdout) == (0, "42\n")
    assert "Unclosed" not in ended.stderr


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(os, "fork"), reason="this system cannot fork")
def test_forked_child_asks_over_connections_of_its_own_and_ends() -> None:
    with ScriptedServer(responses=saying(ChatReply(text="42"))) as server:
        ended = run(ASKING + FORKING, server.base_url)
    assert (ended.returncode, ended.stdout) == (0, "42\n" * 3)


def test_connection_that_the_server_has_left_meanwhile_is_replaced() -> None:
    with ScriptedServer(responses=saying(ChatReply(text="first"))) as server:
        assert ask(llm_at(server.base_url)).text == "first"
        port = urlsplit(server.base_url).port
    with ScriptedServer(responses=saying(ChatReply(text="second")), port=port or 0) as server:
        assert ask(llm_at(server.base_url)).text == "second"


def test_user_and_password_in_the_address_are_sent_in_place_of_the_key() -> None:
    with serve_raw() as raw:
        raw.will_send(chat_reply("42"))
        assert ask(llm_at(raw.base_url.replace("://", "://ada:love%20lace@"))).text == "42"
    assert raw.keys == ["Basic " + base64.b64encode(b"ada:love lace").decode()]


def test_calls_on_loops_of_the_user_leave_those_on_judgetrees_as_they_are() -> None:
    async def several(llm: EndpointLLM) -> list[str]:
        calls = [llm.complete([("user", "?")], meter=CallMeter(node="generate")) for _ in range(3)]
        return [completion.text for completion in await asyncio.gather(*calls)]

    with ScriptedServer(responses=saying(ChatReply(text="42"))) as server:
        llm = llm_at(server.base_url, gate=CallGate(1), retries=0)
        assert asyncio.run(several(llm)) == asyncio.run(several(llm)) == ["42"] * 3
        assert background_loop().run(several(llm)) == ["42"] * 3
        assert asyncio.run(several(llm)) == ["42"] * 3
