"""The end of a server: what runs is finished within its time, or cancelled and resumed by the next one."""

from __future__ import annotations

import re
import signal
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager

import httpx
import pytest

from judgetree.app.scripted.answers import ChatReply
from judgetree.app.scripted.server import ScriptedServer
from judgetree.app.scripted.wire import ReceivedRequest
from judgetree.modules.settings import Settings
from tests.app.conftest import CHAIN, COLLECTION, Dam, command
from tests.app.server.safety.test_client_gone import until

ASK = "/v1/chat/completions"
BODY = {"model": f"{COLLECTION}/judge", "messages": [{"role": "user", "content": CHAIN.question}], "chat_id": "one"}


@contextmanager
def served(*options: str) -> Iterator[tuple[subprocess.Popen[str], httpx.Client]]:
    """``judgetree serve`` as a process, at any free port."""
    started = command("serve", "--port", "0", *options)
    with subprocess.Popen(started, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True) as process:
        try:
            assert process.stderr is not None
            lines = iter(process.stderr.readline, "")
            address = next(found[1] for line in lines if (found := re.match(r"Serving on (http://\S+) ", line)))
            with httpx.Client(base_url=address, timeout=60) as http:
                yield process, http
        finally:
            process.kill()


@pytest.mark.slow
def test_a_port_that_is_taken_is_said(settings: Settings) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        ended = subprocess.run(command("serve", "--port", str(port)), capture_output=True, text=True, check=False)
    assert ended.returncode == 2
    assert "Serving on" not in ended.stderr
    assert f"Cannot listen on 127.0.0.1:{port}: Address already in use" in " ".join(ended.stderr.split())


@pytest.mark.slow
def test_a_running_answer_is_finished(settings: Settings, scripted: ScriptedServer) -> None:
    scripted.responses = dam = Dam(stops=lambda request: request.prompt.kind == "read")
    limits = ("--max-runs", "1", "--requests-per-minute", "1000")
    with served(*limits) as (process, http), http.stream("POST", ASK, json=BODY | {"stream": True}) as answer:
        assert dam.reached.wait(60)
        assert httpx.post(f"{http.base_url}{ASK}", json=BODY | {"chat_id": "two"}, timeout=60).status_code == 429
        process.send_signal(signal.SIGTERM)

        def is_closed() -> bool:
            try:
                httpx.get(f"{http.base_url}/v1/models", timeout=60)
            except httpx.ConnectError:
                return True
            return False

        until(is_closed, "the server still accepts")
        dam.opened.set()
        text = answer.read().decode()
        assert text.rstrip().endswith("data: [DONE]")
        assert CHAIN.answer in text
        process.wait(30)


@pytest.mark.slow
@pytest.mark.parametrize("is_streamed", [True, False])
def test_a_question_that_waits_for_a_rate_limit_ends_at_once_and_is_resumed_by_the_next_server(
    settings: Settings, scripted: ScriptedServer, *, is_streamed: bool
) -> None:
    limited = threading.Event()

    def respond(request: ReceivedRequest) -> ChatReply | None:
        if request.prompt.kind != "read":
            return None
        limited.set()
        return ChatReply(status=429, text="too many requests")

    scripted.responses = respond
    with served("--shutdown-seconds", "60") as (process, http):

        def end() -> None:
            assert limited.wait(60)
            process.send_signal(signal.SIGTERM)

        ending = threading.Thread(target=end)
        ending.start()
        answer = http.post(ASK, json=BODY | {"stream": is_streamed})
        ending.join()
        assert "The server is ending, and a model's endpoint asks to wait" in answer.text
        assert answer.status_code == (200 if is_streamed else 503)
        process.wait(60)
    scripted.responses = after = Dam()
    with served() as (_, http):
        done = http.post(ASK, json=BODY).json()["judgetree"]
    assert (done["answer"], done["status"]) == (CHAIN.answer, "answered")
    assert [kind for kind, *_ in after.let_through if kind == "judge"] == [], "what was paid for is not paid again"


@pytest.mark.slow
@pytest.mark.parametrize("is_streamed", [True, False])
def test_what_takes_longer_is_resumed_by_the_next_server(
    settings: Settings, scripted: ScriptedServer, *, is_streamed: bool
) -> None:
    scripted.responses = dam = Dam(stops=lambda request: request.prompt.kind == "read")
    with served("--shutdown-seconds", "0") as (process, http):
        ending = threading.Thread(target=lambda: dam.reached.wait(60) and process.send_signal(signal.SIGINT))
        ending.start()
        if is_streamed:
            with pytest.raises(httpx.RemoteProtocolError):  # the client sees that the answer is not whole
                http.post(ASK, json=BODY | {"stream": True})
        else:
            assert http.post(ASK, json=BODY).status_code == 503
        ending.join()
        process.wait(60)
        assert process.stderr is not None
        assert "Traceback" not in process.stderr.read()
    dam.opened.set()
    scripted.responses = after = Dam()
    with served() as (_, http):
        done = http.post(ASK, json=BODY).json()["judgetree"]
    assert done["answer"] == CHAIN.answer
    assert [kind for kind, *_ in after.let_through if kind == "judge"] == []  # what was paid for is not paid again
    assert done["status"] == "answered"
