import asyncio
import contextlib
import json
import signal
import socket
import subprocess
import sys
import threading
from dataclasses import asdict
from http import HTTPStatus
from pathlib import Path

import httpx
import pytest

from judgetree.app.scripted.answers import ChatReply
from judgetree.app.scripted.behaviour import Behaviour
from judgetree.app.scripted.server import ScriptedServer, main
from judgetree.app.scripted.wire import ReceivedRequest
from judgetree.modules.calls.messages import JSON_REPAIR
from judgetree.modules.errors import SettingsError
from judgetree.modules.judge import prompts as judge_prompts
from judgetree.modules.reader import prompts
from judgetree.modules.reader.prompts import REFUSAL
from tests.app.conftest import CHAIN
from tests.app.scripted.drum import (
    JUDGE,
    NEEDED,
    NO_CERTIFICATES,
    READ,
    VESSEL,
    WALL,
    Json,
    chat_body,
    http_get,
    http_post,
    post,
    text_of,
)
from tests.eval.dataset_files import write_lines


def test_requests_are_counted_by_kind_and_logged(server: ScriptedServer) -> None:
    everything = [
        JUDGE,
        [*JUDGE, ("assistant", "?"), ("user", JSON_REPAIR)],
        NEEDED,
        judge_prompts.alone_messages(CHAIN.question, VESSEL.quote),
        judge_prompts.sub_question_messages(CHAIN.question, VESSEL.quote),
        judge_prompts.look_up_messages(CHAIN.question, VESSEL.quote),
        READ,
        prompts.closed_book_messages(CHAIN.question),
        [("user", "Hello")],
    ]
    for messages in everything:
        assert post(server, messages).status_code == 200
    http_get(f"{server.base_url}/models")
    expected = {
        "judge": 2,
        "needed": 1,
        "alone": 1,
        "sub_question": 1,
        "look_up": 1,
        "read": 1,
        "closed_book": 1,
        "other": 1,
    }
    assert server.requests == expected
    assert [entry.number for entry in server.log] == list(range(1, 10))
    assert {entry.query for entry in server.log} == {CHAIN.question, ""}
    stats = http_get(f"{server.root_url}/_stats").json()
    assert (stats["requests"], stats["total"], stats["active"]) == (expected, 9, 0)
    http_post(f"{server.root_url}/_reset")
    assert not server.requests
    assert server.log == ()


def test_thirty_two_slow_requests_are_answered_side_by_side(server: ScriptedServer) -> None:
    server.configure(latency_s=3600)

    async def crowd() -> bool:
        limits = httpx.Limits(max_connections=64)
        async with httpx.AsyncClient(
            verify=NO_CERTIFICATES, base_url=server.base_url, limits=limits, timeout=None
        ) as client:
            waiting = [asyncio.create_task(client.post("/chat/completions", json=chat_body(READ))) for _ in range(32)]
            arrived = await asyncio.to_thread(server.wait_for_active, 32)
            for task in waiting:
                task.cancel()
            await asyncio.gather(*waiting, return_exceptions=True)
        return arrived

    assert asyncio.run(crowd())
    assert server.peak_active == 32


def test_a_hook_may_wait_for_other_requests(server: ScriptedServer) -> None:
    barrier = threading.Barrier(32, timeout=30)

    def wait_for_all(_: ReceivedRequest) -> None:
        barrier.wait()

    server.responses = wait_for_all

    async def crowd() -> list[httpx.Response]:
        async with httpx.AsyncClient(verify=NO_CERTIFICATES, base_url=server.base_url, timeout=60) as client:
            return await asyncio.gather(*(client.post("/chat/completions", json=chat_body(READ)) for _ in range(32)))

    assert {text_of(response) for response in asyncio.run(crowd())} == {"40 mm"}
    assert server.peak_active == 32


def test_a_hook_overrides_replies_and_statuses() -> None:
    seen: list[ReceivedRequest] = []

    def hook(request: ReceivedRequest) -> ChatReply | None:
        seen.append(request)
        if request.prompt.kind == "judge":
            return ChatReply(text="", reasoning="It is a 1.", p_yes=None)
        return ChatReply(status=503, text="Overloaded.") if request.attempt == 1 else None

    with ScriptedServer([CHAIN], responses=hook) as server:
        assert post(server, JUDGE).json()["choices"][0]["message"]["reasoning_content"] == "It is a 1."
        first, second = post(server, READ), post(server, READ)
    assert (first.status_code, first.json()["error"]["message"]) == (503, "Overloaded.")
    assert text_of(second) == "40 mm"
    assert [(request.prompt.kind, request.attempt) for request in seen] == [("judge", 1), ("read", 1), ("read", 2)]
    assert (seen[0].prompt.query, seen[0].prompt.passage) == (CHAIN.question, VESSEL.quote)


def test_a_hook_that_fails_gives_a_500(server: ScriptedServer) -> None:
    def fail(_: ReceivedRequest) -> ChatReply:
        raise ValueError("no such luck")

    server.responses = fail
    response = post(server, READ)
    assert response.status_code == 500
    assert "no such luck" in response.json()["error"]["message"]


def test_health_models_and_unknown_addresses(server: ScriptedServer) -> None:
    assert http_get(f"{server.root_url}/health").json() == {"status": "ok"}
    assert http_get(f"{server.base_url}/models?limit=1").json()["data"][0]["id"] == "scripted"
    missing = http_get(f"{server.base_url}/engines")
    assert missing.status_code == HTTPStatus.NOT_FOUND
    assert "POST /v1/chat/completions" in missing.json()["error"]["message"]


def test_one_connection_carries_many_requests(server: ScriptedServer) -> None:
    with httpx.Client(verify=NO_CERTIFICATES, base_url=server.base_url, timeout=60) as client:
        ports = set()
        for stream in (False, True, False):
            with client.stream("POST", "/chat/completions", json=chat_body(READ, stream=stream)) as response:
                ports.add(response.extensions["network_stream"].get_extra_info("client_addr")[1])
                response.read()
    assert len(ports) == 1


def test_a_body_without_a_length_is_refused(server: ScriptedServer) -> None:
    response = http_post(f"{server.base_url}/chat/completions", content=iter([b"{}"]))
    assert response.status_code == 411


def test_bytes_that_are_no_http_do_no_harm(server: ScriptedServer) -> None:
    host, port = server.root_url.removeprefix("http://").split(":")
    with socket.create_connection((host, int(port)), timeout=30) as connection, contextlib.suppress(ConnectionError):
        connection.sendall(b"x" * 200_000)  # the server may close before all of it is sent
        while connection.recv(4096):
            pass
    assert http_get(f"{server.root_url}/health").status_code == 200


@pytest.mark.parametrize(
    ("changes", "fault"),
    [
        ({"latency_s": -1}, "latency_s"),
        ({"latency": 1}, "latency"),
        ({"faults": {"sloth": 0.1}}, "sloth"),
        ({"faults": {"429": 1.5}}, r"faults\.429"),
        ({"faults": {"429": 0.7, "drop": 0.7}}, "add up to 1.4"),
    ],
)
def test_a_behaviour_that_is_not_allowed_changes_nothing(server: ScriptedServer, changes: Json, fault: str) -> None:
    before = server.stats()
    with pytest.raises(SettingsError, match=fault):
        server.configure(**changes)
    assert http_post(f"{server.root_url}/_configure", json=changes).status_code == 400
    assert server.stats() == before


def test_stopping_breaks_off_held_requests_and_frees_the_port() -> None:
    server = ScriptedServer([CHAIN], behaviour=Behaviour(latency_s=3600)).start()
    caught: list[Exception] = []

    def ask() -> None:
        try:
            http_post(f"{server.base_url}/chat/completions", json=chat_body(READ), timeout=None)
        except httpx.TransportError as error:
            caught.append(error)

    client = threading.Thread(target=ask)
    client.start()
    assert server.wait_for_active(1)
    server.stop()
    server.stop()
    client.join(30)
    assert len(caught) == 1
    port = int(server.root_url.rsplit(":", 1)[1])
    with ScriptedServer(port=port) as again, pytest.raises(SettingsError, match=f"port {port}"):
        ScriptedServer(port=port).start()
    assert again.root_url == server.root_url


@pytest.mark.parametrize(("ending", "status"), [(signal.SIGTERM, 0), (signal.SIGINT, 130)])
def test_the_process_says_where_it_listens(tmp_path: Path, ending: signal.Signals, status: int) -> None:
    options = ["--questions", str(write_lines(tmp_path, asdict(CHAIN))), "--fault", "500:1", "--seed", "3"]
    command = [sys.executable, "-m", "judgetree.app.scripted.server", *options]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            ready = json.loads(process.stdout.readline())
            assert ready["pid"] == process.pid
            root = ready["base_url"].removesuffix("/v1")
            body = chat_body(prompts.reader_messages(WALL.question, WALL.quote))
            assert http_post(f"{ready['base_url']}/chat/completions", json=body).status_code == 500
            changed = http_post(f"{root}/_configure", json={"faults": {}, "latency_s": 0.01}).json()
            assert (changed["behaviour"]["seed"], changed["behaviour"]["latency_s"]) == (3, 0.01)
            assert text_of(http_post(f"{ready['base_url']}/chat/completions", json=body)) == WALL.answer
            assert http_get(f"{root}/_stats").json()["requests"] == {"read": 2}
        finally:
            process.send_signal(ending)
            assert process.wait(30) == status


@pytest.mark.parametrize(
    ("options", "fault"),
    [
        (["--questions", "missing.jsonl"], "missing.jsonl"),
        (["--fault", "sloth"], "sloth"),
        (["--port", "70000"], "port 70000"),
    ],
)
def test_a_command_line_mistake_exits_2(options: list[str], fault: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(options) == 2
    captured = capsys.readouterr()
    assert captured.out == ""
    assert fault in captured.err
    assert "Traceback" not in captured.err


def test_a_server_without_questions_judges_0_and_refuses() -> None:
    with ScriptedServer() as server:
        assert json.loads(text_of(post(server, JUDGE)))["score"] == 0
        assert text_of(post(server, READ)) == REFUSAL
