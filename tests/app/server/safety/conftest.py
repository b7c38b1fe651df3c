"""Servers without documents, for what is refused before any door; sockets for what HTTP clients do not send."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from urllib.parse import urlsplit

import httpx
import pytest

from judgetree.app.server.keys.book import KeyBook
from judgetree.app.server.keys.tables import KeyTables
from judgetree.app.server.serving.options import ServerOptions
from judgetree.modules.settings import Settings
from tests.app.scripted.drum import NO_CERTIFICATES
from tests.app.server.serving import serving


@dataclass(frozen=True, kw_only=True)
class Running:
    """A running server, and how to talk to it."""

    url: str
    settings: Settings

    @property
    def place(self) -> str:
        """Host and port."""
        return urlsplit(self.url).netloc

    def http(self, **headers: str) -> httpx.Client:
        return httpx.Client(verify=NO_CERTIFICATES, base_url=self.url, timeout=60, headers=headers)

    def connected(self) -> socket.socket:
        host, _, port = self.place.partition(":")
        return socket.create_connection((host, int(port)), timeout=30)

    def raw(self, *parts: bytes) -> bytes:
        """What the server answers to these bytes, until it closes the connection."""
        with self.connected() as connection:
            for part in parts:
                connection.sendall(part)
            return read_to_end(connection)


def read_to_end(connection: socket.socket) -> bytes:
    received = b""
    while piece := connection.recv(65_536):
        received += piece
    return received


@pytest.fixture(scope="module")
def plain(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Running]:
    """A server without keys, with small limits."""
    settings = Settings(home=tmp_path_factory.mktemp("plain"))
    options = ServerOptions(
        allowed_hosts=("chat.example",), max_body_bytes=10_000, max_body_seconds=0.5, max_header_seconds=0.5
    )
    with serving(settings, options) as url:
        yield Running(url=url, settings=settings)


@pytest.fixture(scope="module")
def keyed(tmp_path_factory: pytest.TempPathFactory) -> Iterator[tuple[Running, str]]:
    """A server that demands keys, and a key of it."""
    settings = Settings(home=tmp_path_factory.mktemp("keyed"))
    with closing(KeyTables(settings)) as tables:
        _, text = KeyBook(tables).add("ada")
    with serving(settings, ServerOptions(needs_keys=True)) as url:
        yield Running(url=url, settings=settings), text
