"""A Milvus that accepts connections and answers nothing: every door answers in time, and those without it as ever."""

from __future__ import annotations

import asyncio
import re
import signal
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import httpx
import pytest
from fastapi import FastAPI

from judgetree.app.scripted.server import ScriptedServer
from judgetree.app.server.application import create_app
from judgetree.app.server.serving.options import ServerOptions
from judgetree.modules.settings import Settings, load_settings
from tests.app.conftest import COLLECTION
from tests.app.server.safety.test_client_gone import until
from tests.app.server.serving import serving, serving_app

OPTIONS = ServerOptions(
    max_store_seconds=0.2, max_search_seconds=0.2, systems=("judge", "naive", "llm"), requests_per_minute=1_000_000
)
NEEDS_MILVUS = {
    "GET /v1/models",
    "GET /v1/models/{model_id}",
    "GET /v1/collections",
    "GET /v1/collections/{name}",
    "GET /v1/collections/{name}/search",
    "POST /v1/chat/completions",
    "POST /v1/conversations/{name}/questions",
    "POST /knowledge_chat_conversation",
    "GET /readyz",
}
"""Doors that cannot do their work, and say so. An upload waits in its job."""
MESSAGES = [{"role": "user", "content": "Which?"}]
BODIES: dict[str, dict[str, Any]] = {
    "POST /v1/chat/completions": {"json": {"model": "notes/judge", "messages": MESSAGES}},
    "POST /v1/conversations/{name}/questions": {"json": {"model": "notes/judge", "question": "Which?"}},
    "POST /knowledge_chat_conversation": {"json": {"question": "Which?", "session_id": "one"}},
    "POST /v1/collections/{name}/documents": {"files": {"files": ("a.md", b"Kettles whistle.")}},
    "GET /v1/collections/{name}/search": {"params": {"query": "kettles"}},
}


@pytest.fixture
def hole(settings: Settings, monkeypatch: pytest.MonkeyPatch) -> Iterator[Settings]:
    """Settings with an address where connections are accepted, and nothing is answered."""
    with socket.create_server(("127.0.0.1", 0), backlog=100) as listening:
        monkeypatch.setenv("JUDGETREE_MILVUS_URI", f"http://127.0.0.1:{listening.getsockname()[1]}")
        yield load_settings()


def doors(app: FastAPI) -> list[str]:
    """All doors, from the application's own description."""
    return [f"{method.upper()} {path}" for path, methods in app.openapi()["paths"].items() for method in methods]


async def answers(url: str, every: list[str]) -> dict[str, httpx.Response]:
    """The answer of each door; all are asked at once."""

    async def ask(door: str) -> httpx.Response:
        method, _, path = door.partition(" ")
        return await http.request(method, re.sub(r"\{[^}]*\}", "x", path), **BODIES.get(door, {}))

    async with httpx.AsyncClient(base_url=url, timeout=60) as http:
        return dict(zip(every, await asyncio.gather(*map(ask, every)), strict=True))


@pytest.mark.slow
def test_every_door_answers(hole: Settings) -> None:
    app = create_app(hole, OPTIONS)
    with serving_app(app, OPTIONS) as url:
        found = asyncio.run(answers(url, doors(app)))
    assert {door for door, answer in found.items() if answer.status_code >= 500} == NEEDS_MILVUS
    for door in NEEDS_MILVUS - {"GET /readyz"}:
        error = found[door].json()["error"]
        assert (found[door].status_code, error["type"]) == (503, "api_error"), door
        assert error["message"].startswith("Milvus has not answered for 0.2 s."), door
    assert found["GET /readyz"].json()["milvus"] == "NoAnswerInTime"


@pytest.mark.slow
def test_what_needs_no_milvus_is_answered_behind_many_that_wait(hole: Settings) -> None:
    waiting = replace_options(max_store_seconds=3600.0)
    app = create_app(hole, waiting)

    async def beside() -> None:
        async with httpx.AsyncClient(base_url=url, timeout=60) as http:
            hung = [asyncio.create_task(http.get("/v1/collections")) for _ in range(50)]
            asked = http.post("/v1/chat/completions", json={"model": "fast", "messages": MESSAGES})
            assert (await asked).status_code == 200
            for path in ("/healthz", "/v1/conversations", "/v1/models/fast", "/v1/models/llm", "/metrics", "/"):
                assert (await http.get(path)).status_code == 200, path
            for each in hung:
                each.cancel()
            await asyncio.gather(*hung, return_exceptions=True)

    with serving_app(app, waiting) as url:
        asyncio.run(beside())


def replace_options(**changed: object) -> ServerOptions:
    return OPTIONS.model_copy(update=changed)


HOLDS = """
import sys
from judgetree.modules.index.connection import connect
connection = connect(sys.argv[1])
print("open", flush=True)
sys.stdin.read()
connection.close()
"""


@contextmanager
def held_by_another(settings: Settings) -> Iterator[subprocess.Popen[str]]:
    """A process that serves the Milvus Lite folder to others."""
    command = [sys.executable, "-c", HOLDS, str(settings.milvus_address)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        try:
            assert process.stdout is not None
            assert process.stdout.readline() == "open\n"
            yield process
        finally:
            process.send_signal(signal.SIGCONT)
            process.kill()


@pytest.mark.skipif(sys.platform == "win32", reason="needs SIGSTOP")
def test_a_milvus_that_stops_holds_no_list_of_models(settings: Settings, scripted: ScriptedServer) -> None:
    with (
        held_by_another(settings) as milvus,
        serving(settings, OPTIONS) as url,
        httpx.Client(base_url=url, timeout=60) as http,
    ):
        until(lambda: http.get("/v1/models").status_code == 200, "the first list never came")
        models = http.get("/v1/models").json()
        assert f"{COLLECTION}/judge" in [each["id"] for each in models["data"]]
        milvus.send_signal(signal.SIGSTOP)
        for _ in range(3):
            assert http.get("/v1/models").json() == models
            assert http.get("/v1/collections").status_code == 503
            assert http.get("/healthz").status_code == 200
        milvus.send_signal(signal.SIGCONT)
