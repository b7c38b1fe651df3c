"""Whatever clients do with their connections, a server answers the next one, and is well again after them."""

from __future__ import annotations

import socket
import time
from contextlib import ExitStack
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest

from judgetree.app.server.application import create_app
from judgetree.app.server.safety.connections import SPARE_CONNECTIONS, Connections
from judgetree.app.server.serving.options import ServerOptions
from judgetree.modules.settings import Settings
from tests.app.server.serving import serving_app

from .clients import CLIENTS, Client

MANY = 60
OPTIONS = ServerOptions(
    max_connections=20,
    max_header_seconds=0.5,
    max_body_seconds=0.5,
    max_stall_seconds=0.5,
    requests_per_minute=1_000_000,
)


@pytest.mark.parametrize("client", CLIENTS.values(), ids=CLIENTS)
def test_a_server_outlives_its_clients(tmp_path: Path, client: Client) -> None:
    app = create_app(Settings(home=tmp_path), OPTIONS)
    connections: Connections = app.state.connections
    with serving_app(app, OPTIONS) as url:
        place = urlsplit(url)
        with ExitStack() as opened:
            for _ in range(MANY):
                connection = socket.create_connection((place.hostname, place.port), timeout=30)
                client(opened.enter_context(connection))
            assert httpx.get(f"{url}/healthz", timeout=60).status_code == 200
            assert connections.open <= OPTIONS.max_connections + SPARE_CONNECTIONS
            end = time.monotonic() + 30
            while (status := httpx.get(f"{url}/v1/models", timeout=60).status_code) != 200:
                assert status in (429, 503)
                assert time.monotonic() < end, "the clients hold their places for ever"
                time.sleep(0.05)
        end = time.monotonic() + 30
        while connections.open:
            assert time.monotonic() < end, "connections are left"
            time.sleep(0.02)
