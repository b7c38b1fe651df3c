"""Who sends a request that a proxy forwards."""

from __future__ import annotations

import asyncio
from pathlib import Path

import httpx
import pytest
from fastapi import FastAPI, Request
from starlette.types import Scope

from judgetree.app.server.application import create_app
from judgetree.app.server.safety.peers import TrustedProxies, host_of, peer_of
from judgetree.app.server.serving.options import ServerOptions
from judgetree.modules.settings import Settings
from tests.app.server.serving import serving_app

PROXIES = TrustedProxies(["10.0.0.0/8", "2001:db8:1::/48"])


def seen(client: str, *forwarded: str, **others: str) -> tuple[str, str]:
    """The sender of a request and its scheme, through the proxies."""
    headers = [(b"x-forwarded-for", each.encode("latin-1")) for each in forwarded]
    headers += [(name.replace("_", "-").encode(), value.encode()) for name, value in others.items()]
    scope: Scope = {"type": "http", "client": (client, 1), "scheme": "http", "headers": headers}
    PROXIES.see_through(scope)
    return host_of(scope), scope["scheme"]


@pytest.mark.parametrize(
    ("client", "forwarded", "sender"),
    [
        ("192.0.2.1", ["203.0.113.9"], "192.0.2.1"),
        ("127.0.0.1", ["203.0.113.9"], "127.0.0.1"),
        ("10.0.0.2", ["203.0.113.9"], "203.0.113.9"),
        ("10.0.0.2", ["203.0.113.9, 198.51.100.4"], "198.51.100.4"),
        ("10.0.0.2", ["203.0.113.9, 10.0.0.3"], "203.0.113.9"),
        ("10.0.0.2", ["203.0.113.9", "198.51.100.4"], "198.51.100.4"),
        ("::ffff:10.0.0.2", ["203.0.113.9"], "203.0.113.9"),
        ("2001:db8:1::5", ["[2001:db8:2::7]:4711"], "2001:db8:2::7"),
        ("10.0.0.2", ["203.0.113.9:4711"], "203.0.113.9"),
        ("10.0.0.2", ["10.0.0.9"], "10.0.0.9"),
        ("10.0.0.2", ["203.0.113.9, unknown"], "10.0.0.2"),
        ("10.0.0.2", ["203.0.113.9,"], "10.0.0.2"),
        ("10.0.0.2", [""], "10.0.0.2"),
        ("10.0.0.2", [], "10.0.0.2"),
        ("10.0.0.2", ["9" * 5000], "10.0.0.2"),
        ("10.0.0.2", ["203.0.113.9" + ", 10.0.0.3" * 3000], "10.0.0.2"),
        ("", ["203.0.113.9"], ""),
    ],
)
def test_a_sender_is_known_by_the_word_of_trusted_proxies_alone(client: str, forwarded: list[str], sender: str) -> None:
    assert seen(client, *forwarded)[0] == sender


def test_the_scheme_is_that_of_the_sender() -> None:
    assert seen("10.0.0.2", x_forwarded_proto="https")[1] == "https"
    assert seen("10.0.0.2", x_forwarded_proto="javascript")[1] == "http"
    assert seen("192.0.2.1", x_forwarded_proto="https")[1] == "http"


def test_the_header_forwarded_is_never_believed() -> None:
    assert seen("10.0.0.2", forwarded="for=203.0.113.9;proto=https") == ("10.0.0.2", "http")


def test_a_mapped_address_is_that_of_ipv4() -> None:
    assert peer_of("::ffff:192.0.2.7") == peer_of("192.0.2.7")
    assert peer_of("2001:db8::1") == peer_of("2001:db8::ffff:1") != peer_of("2001:db8:0:1::1")


def test_senders_have_requests_of_their_own_behind_a_proxy_only_if_it_is_trusted(tmp_path: Path) -> None:
    for trusted, codes in (((), [200, 429, 429]), (("127.0.0.1",), [200, 429, 200])):
        options = ServerOptions(requests_per_minute=1, trusted_proxies=trusted)
        with (
            serving_app(create_app(Settings(home=tmp_path), options), options) as url,
            httpx.Client(base_url=url, timeout=60) as http,
        ):
            sent = ("203.0.113.9", "203.0.113.9", "203.0.113.10")
            answers = [http.get("/openapi.json", headers={"X-Forwarded-For": each}) for each in sent]
            assert [each.status_code for each in answers] == codes


def test_one_sender_behind_a_trusted_proxy_cannot_hold_all_places(tmp_path: Path) -> None:
    options = ServerOptions(max_connections_per_address=1, trusted_proxies=("127.0.0.1",))
    app: FastAPI = create_app(Settings(home=tmp_path), options)
    reached, opened = asyncio.Event(), asyncio.Event()

    @app.get("/slow", include_in_schema=False)
    async def slow(request: Request) -> str:
        reached.set()
        await opened.wait()
        return request.client.host if request.client else ""

    async def ask(http: httpx.AsyncClient, path: str, sender: str) -> httpx.Response:
        return await http.get(path, headers={"X-Forwarded-For": sender})

    async def asked() -> None:
        transport = httpx.ASGITransport(app, client=("127.0.0.1", 1))
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
            first = asyncio.create_task(ask(http, "/slow", "203.0.113.9"))
            await reached.wait()
            refused = await ask(http, "/openapi.json", "203.0.113.9")
            assert (refused.status_code, refused.json()["error"]["code"]) == (429, "too_many_connections")
            assert (await ask(http, "/openapi.json", "203.0.113.10")).status_code == 200
            assert (await ask(http, "/healthz", "203.0.113.9")).status_code == 200
            opened.set()
            assert (await first).json() == "203.0.113.9"
            assert (await ask(http, "/openapi.json", "203.0.113.9")).status_code == 200

    asyncio.run(asked())
