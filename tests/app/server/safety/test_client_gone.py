"""Clients that leave in the middle of an answer: their runs end, and nothing more is paid for."""

from __future__ import annotations

import asyncio
import json
import socket
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from urllib.parse import urlsplit

import pytest

from judgetree.app.scripted.answers import RequestKind
from judgetree.app.scripted.server import ScriptedServer
from judgetree.app.server.application import create_app
from judgetree.app.server.serving.served import Served
from judgetree.modules.background_loop import background_loop
from judgetree.modules.settings import Settings
from tests.app.conftest import COLLECTION, Dam
from tests.app.server.serving import PATIENT, serving_app
from tests.app.talks import FIRST

TIMES = 20


def until(is_true: Callable[[], bool], what: str) -> None:
    end = time.monotonic() + 60
    while not is_true():
        assert time.monotonic() < end, what
        time.sleep(0.02)


def settled(server: ScriptedServer) -> Counter[RequestKind]:
    """The model requests that came; those of a run that ended may still be on their way for a moment."""
    before, now = None, server.requests
    while now != before:
        time.sleep(0.3)
        before, now = now, server.requests
    return now


def held() -> tuple[int, ...]:
    """Open files and connections of this process, and tasks that run on judgetree's loop."""
    descriptors = Path("/proc/self/fd")
    return (len(list(descriptors.iterdir())) if descriptors.exists() else 0), background_loop().run(count_tasks())


async def count_tasks() -> int:
    return len(asyncio.all_tasks())


def asking(url: str, path: str, body: dict[str, object]) -> socket.socket:
    """A connection on which a question was sent."""
    place = urlsplit(url)
    data = json.dumps(body).encode()
    head = f"POST {path} HTTP/1.1\r\nHost: {place.netloc}\r\nContent-Type: application/json\r\n"
    connection = socket.create_connection((place.hostname, place.port), timeout=30)
    connection.sendall(f"{head}Content-Length: {len(data)}\r\n\r\n".encode() + data)
    return connection


@pytest.mark.slow
@pytest.mark.parametrize("is_streamed", [True, False])
def test_nothing_goes_on_for_clients_that_left(
    settings: Settings, scripted: ScriptedServer, *, is_streamed: bool
) -> None:
    app = create_app(settings, PATIENT)
    served: Served = app.state.served
    with serving_app(app) as url:
        model = f"{COLLECTION}/judge"
        left = TIMES if is_streamed else 3
        first: tuple[int, ...] = ()
        for number in range(left):
            dam = Dam(stops=lambda _: True)
            scripted.responses = dam
            body = {"model": model, "messages": [{"role": "user", "content": FIRST}], "stream": is_streamed}
            with asking(url, "/v1/chat/completions", body | {"chat_id": f"chat-{number}"}) as connection:
                if is_streamed:
                    assert connection.recv(4096).startswith(b"HTTP/1.1 200 ")
                assert dam.reached.wait(30)
            until(lambda: served.admissions.running == 0, "a run goes on")
            made = settled(scripted)
            dam.opened.set()
            if number in {0, left - 1}:
                time.sleep(1)  # time in which calls would be made
            assert scripted.requests == made
            first = first or held()
        until(
            lambda: all(now <= then for now, then in zip(held(), first, strict=True)),
            "connections, tasks or threads are left",
        )
        scripted.responses = None
        body = {"model": model, "messages": [{"role": "user", "content": FIRST}], "chat_id": "chat-0"}
        with asking(url, "/v1/chat/completions", body) as connection:  # the same question resumes its turn
            assert connection.recv(65_536).startswith(b"HTTP/1.1 200 ")
        locks = list(settings.home.glob("*.turns/*.lock"))
        assert locks == []
