"""Many connections: idle ones make room, one address cannot take all, and the server's health is always answered."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import httpx
import pytest
from fastapi.responses import StreamingResponse

from judgetree.app.scripted.server import ScriptedServer
from judgetree.app.server.application import create_app
from judgetree.app.server.safety.connections import SPARE_CONNECTIONS, Connections
from judgetree.app.server.safety.start import listening_socket
from judgetree.app.server.serving.options import ServerOptions
from judgetree.modules.errors import SettingsError
from judgetree.modules.settings import Settings
from tests.app.conftest import COLLECTION, Dam
from tests.app.server.safety.conftest import Running
from tests.app.server.safety.test_bodies import code_of
from tests.app.server.safety.test_client_gone import asking, until
from tests.app.server.serving import serving, serving_app
from tests.app.talks import FIRST

HEALTH = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n"
MODELS = b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"


@contextmanager
def running(settings: Settings, **options: object) -> Iterator[Running]:
    chosen = ServerOptions(requests_per_minute=1_000_000, **options)  # type: ignore[arg-type]
    with serving(settings, chosen) as url:
        yield Running(url=url, settings=settings)


def is_well(connection: socket.socket) -> bool:
    """Whether the server says on this connection that it is well; all of its answer is read."""
    received = b""
    while b'"ok"}' not in received and (piece := connection.recv(65_536)):
        received += piece
    return received.startswith(b"HTTP/1.1 200 ")


@pytest.mark.parametrize("sent", [b"", b"GET / HT", HEALTH], ids=["silent", "half a head", "kept alive"])
@pytest.mark.parametrize(
    "limit", [{"max_connections": 20}, {"max_connections_per_address": 20}], ids=["all", "address"]
)
def test_idle_connections_make_room_for_others(tmp_path: Path, sent: bytes, limit: dict[str, int]) -> None:
    with running(Settings(home=tmp_path), **limit) as server, ExitStack() as idle:
        for _ in range(60):
            connection = idle.enter_context(server.connected())
            if sent:
                connection.sendall(sent)
            if sent == HEALTH:
                assert is_well(connection)
        assert code_of(server.raw(MODELS)) == "200"
        assert code_of(server.raw(HEALTH[:-2] + b"Connection: close\r\n\r\n")) == "200"
        counted = {
            line.split()[0]: line.split()[1]
            for line in httpx.get(f"{server.url}/metrics", timeout=60).text.splitlines()
        }
        assert float(counted["judgetree_connections_closed_total"]) >= 40
        assert float(counted["judgetree_connections"]) <= 20


def test_the_oldest_idle_connection_is_closed_first(tmp_path: Path) -> None:
    with running(Settings(home=tmp_path), max_connections=3) as server, ExitStack() as opened:
        first, second, third = (opened.enter_context(server.connected()) for _ in range(3))
        for each in (second, third, first):  # first has been used last
            each.sendall(HEALTH)
            assert is_well(each)
        assert code_of(server.raw(MODELS)) == "200"
        assert second.recv(65_536) == b""
        for each in (third, first):
            each.sendall(HEALTH)
            assert is_well(each)


@pytest.mark.parametrize(
    ("limit", "code"), [({"max_connections": 2}, "503"), ({"max_connections_per_address": 2}, "429")]
)
def test_health_is_answered_while_requests_are_in_progress_on_all_connections(
    settings: Settings, scripted: ScriptedServer, limit: dict[str, int], code: str
) -> None:
    scripted.responses = dam = Dam(stops=lambda _: True)
    body = {"model": f"{COLLECTION}/judge", "messages": [{"role": "user", "content": FIRST}], "stream": True}
    with running(settings, **limit) as server, ExitStack() as streams:
        for number in range(2):
            stream = asking(server.url, "/v1/chat/completions", body | {"chat_id": f"chat-{number}"})
            streams.enter_context(stream)
            assert code_of(stream.recv(4096)) == "200"
        for _ in range(2 * SPARE_CONNECTIONS):
            streams.enter_context(server.connected())
        refused = server.raw(MODELS)
        assert code_of(refused) == code
        assert b'"too_many_connections"' in refused
        assert b"retry-after: 5" in refused.lower()
        assert code_of(server.raw(HEALTH)) == "200"  # and closes the connection
        dam.opened.set()
        assert b"data: [DONE]" in read_to_stop(stream)  # a running stream is never closed
        until(lambda: code_of(server.raw(MODELS)) == "200", "no place becomes free")


def read_to_stop(stream: socket.socket) -> bytes:
    received = b""
    while b"[DONE]" not in received and (piece := stream.recv(65_536)):
        received += piece
    return received


def test_a_client_that_reads_nothing_is_closed(tmp_path: Path) -> None:
    app = create_app(Settings(home=tmp_path), options := ServerOptions(max_stall_seconds=0.1))

    @app.get("/large", include_in_schema=False)
    async def large() -> str:
        return "x" * 20_000_000

    connections: Connections = app.state.connections
    with serving_app(app, options) as url, Running(url=url, settings=Settings()).connected() as connection:
        connection.sendall(b"GET /large HTTP/1.1\r\nHost: localhost\r\n\r\n")
        until(lambda: connections.open == 1, "it was never open")
        until(lambda: connections.open == 0, "it is open for ever")


def test_what_is_no_http_is_refused_and_forgotten(tmp_path: Path) -> None:
    with running(Settings(home=tmp_path)) as server:
        hello = bytes.fromhex("16030100a5010000a10303") + b"\0" * 200
        for sent in (hello, b"\0" * 40_000, b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"):
            assert code_of(server.raw(sent)) == "400"
        with httpx.Client(timeout=60) as http:
            assert "judgetree_connections 1.0" in http.get(f"{server.url}/metrics").text


def test_pipelined_requests_are_answered_in_turn_and_http_1_0_closes(tmp_path: Path) -> None:
    with running(Settings(home=tmp_path), max_connections=1) as server:
        assert server.raw(HEALTH * 3 + MODELS).count(b"HTTP/1.1 200 ") == 4
        assert code_of(server.raw(b"GET /healthz HTTP/1.0\r\nHost: localhost\r\n\r\n")) == "200"


def test_a_network_of_ipv6_is_one_address() -> None:
    class Idle:
        closed = False

        def close_idle(self) -> bool:
            self.closed = True
            return True

    connections = Connections(ServerOptions(max_connections_per_address=2, trusted_proxies=("10.0.0.0/8",)))
    made = [Idle() for _ in range(6)]
    for number, each in enumerate(made[:3]):
        connections.opened(each, f"2001:db8::{number:x}")
    connections.opened(made[3], "2001:db8:0:1::1")
    assert [each.closed for each in made[:4]] == [True, False, False, False]
    for each in [*made[4:], Idle(), Idle()]:  # proxies have as many as they like
        assert connections.opened(each, "::ffff:10.0.0.9") is None
    assert connections.open == 7


@pytest.mark.parametrize("named", ["somewhere", "10.0.0.0/33", "", "*"])
def test_a_proxy_is_named_by_address(named: str) -> None:
    with pytest.raises(SettingsError, match="no address of a trusted proxy"):
        ServerOptions(trusted_proxies=(named,))


def test_a_request_that_only_reads_is_not_held_by_what_hangs(tmp_path: Path) -> None:
    options = ServerOptions(max_answer_seconds=0.1)
    app = create_app(Settings(home=tmp_path), options)

    @app.get("/hangs", include_in_schema=False)
    async def hangs() -> None:
        await asyncio.Event().wait()

    async def pieces() -> AsyncIterator[str]:
        yield "a"
        await asyncio.sleep(0.3)  # longer than an answer may take to start
        yield "b"

    @app.get("/streams", include_in_schema=False)
    async def streams() -> StreamingResponse:
        return StreamingResponse(pieces())

    with serving_app(app, options) as url, httpx.Client(base_url=url, timeout=60) as http:
        answer = http.get("/hangs")
        assert (answer.status_code, answer.json()["error"]["code"]) == (503, "store_hangs")
        assert http.get("/streams").text == "ab"


def test_the_pieces_of_an_answer_do_not_wait_for_each_other() -> None:
    """Without TCP_NODELAY the body of each answer on a kept connection came 40 ms after its head."""
    with listening_socket(ServerOptions(port=0)) as listening, socket.create_connection(listening.getsockname()):
        accepted, _ = listening.accept()
        with accepted:
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY) != 0
