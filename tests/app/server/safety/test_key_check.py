"""Requests with a key, without one, and with one that is none."""

from __future__ import annotations

import asyncio
import time
from contextlib import closing
from pathlib import Path

import openai
import pytest

from judgetree.app.server.application import create_app
from judgetree.app.server.keys.book import KeyBook
from judgetree.app.server.keys.tables import KeyTables
from judgetree.app.server.safety.key_check import is_open
from judgetree.app.server.serving.options import ServerOptions
from judgetree.modules.errors import SettingsError
from judgetree.modules.settings import Settings
from tests.app.server.safety.conftest import Running

Keyed = tuple[Running, str]


def test_a_key_opens_the_server(keyed: Keyed) -> None:
    server, text = keyed
    with openai.OpenAI(base_url=f"{server.url}/v1", api_key=text, max_retries=0) as client:
        assert [model.id for model in client.models.list()] == ["fast"]


@pytest.mark.parametrize("given", ["", "Bearer", "Basic {key}", "Bearer {key}x", "{key}", "Bearer sk-x"])
def test_what_is_no_key_is_refused_as_openai_does(keyed: Keyed, given: str) -> None:
    server, text = keyed
    with server.http(Authorization=given.format(key=text)) as http:
        answer = http.get("/v1/models")
    assert answer.status_code == 401
    assert answer.headers["www-authenticate"].startswith("Bearer")
    error = answer.json()["error"]
    assert (error["type"], error["code"]) == ("authentication_error", "invalid_api_key")
    assert text not in answer.text


def test_two_keys_are_none(keyed: Keyed) -> None:
    server, text = keyed
    key = f"Authorization: Bearer {text}\r\n".encode()
    head = b"GET /v1/models HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n"
    assert server.raw(head + key + b"\r\n").startswith(b"HTTP/1.1 200 ")
    assert server.raw(head + key + key + b"\r\n").startswith(b"HTTP/1.1 401 ")


def test_a_key_in_the_address_is_none(keyed: Keyed) -> None:
    server, text = keyed
    with server.http() as http:
        assert http.get("/v1/models", params={"key": text, "api_key": text, "token": text}).status_code == 401


@pytest.mark.parametrize(
    "path",
    [
        "/v1/models",
        "//v1/models",
        "/healthz/../v1/models",
        "/assets/../v1/models",
        "/assets/%2e%2e/v1/models",
        "/assets/..%2fv1/models",
        "/assets//v1/models",
        "/assets/..\\v1/models",
        "/ASSETS/x",
        "/healthz/",
        "/openapi.json",
    ],
)
def test_no_path_leads_around_the_key(keyed: Keyed, path: str) -> None:
    head = f"GET {path} HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
    assert keyed[0].raw(head.encode()).startswith(b"HTTP/1.1 401 ")


def test_the_page_and_the_health_need_none() -> None:
    for path in ("/", "/healthz", "/readyz", "/assets/page.js"):
        assert is_open({"method": "GET", "path": path})
        assert not is_open({"method": "POST", "path": path})


def test_a_revoked_key_is_refused_within_seconds(keyed: Keyed) -> None:
    server, _ = keyed
    with closing(KeyTables(server.settings)) as tables:
        book = KeyBook(tables)
        key, text = book.add("eve")
        with server.http(Authorization=f"Bearer {text}") as http:
            until = time.monotonic() + 60
            while http.get("/v1/models").status_code != 200:
                assert time.monotonic() < until, "a new key is never known"
            book.revoke(key.id)
            until = time.monotonic() + 60
            while http.get("/v1/models").status_code != 401:
                assert time.monotonic() < until, "a revoked key stays valid"


@pytest.mark.parametrize("options", [ServerOptions(host="0.0.0.0"), ServerOptions(needs_keys=True)])
def test_no_server_starts_without_the_key_that_it_demands(tmp_path: Path, options: ServerOptions) -> None:
    app = create_app(Settings(home=tmp_path), options)

    async def start() -> None:
        async with app.router.lifespan_context(app):
            pass

    with pytest.raises(SettingsError, match="judgetree keys add"):
        asyncio.run(start())
