"""The start of a server: what it must have, and how it listens."""

from __future__ import annotations

import asyncio
import socket
from typing import Any

import uvicorn
from starlette.types import ASGIApp
from uvicorn.protocols.http.h11_impl import H11Protocol

from ....modules.errors import SettingsError
from ..keys.book import KeyBook
from ..serving.options import ServerOptions

_KEEP_ALIVE_S = 75
"""Seconds for which an unused connection is kept: more than proxies keep theirs, which else use a closed one."""
_HEAD_BYTES = 32_768
_AFTER_RUNS_S = 5
_BACKLOG = 2048
"""Connections that the system holds until the server takes them; uvicorn's default."""


def check_can_start(options: ServerOptions, keys: KeyBook) -> None:
    """Check that a server that demands keys has one.

    Raises:
        SettingsError: There is no key, or the keys cannot be read.
    """
    if options.demands_keys and not keys.has_any():
        who = f"The address {options.host}" if not options.is_local else "The option --keys"
        raise SettingsError(f"{who} demands a key, and there is none yet. Make one first: judgetree keys add NAME")


def uvicorn_config(app: ASGIApp, options: ServerOptions, **more: Any) -> uvicorn.Config:
    """Return how uvicorn runs the application: its address, and limits of time and size for connections."""

    class Protocol(_Hasty):
        head_s = options.max_header_seconds

    given: dict[str, Any] = {
        "host": options.host,
        "port": options.port,
        "log_level": "warning",
        "server_header": False,
        "lifespan": "on",
        "http": Protocol,  # httptools bounds no heads
        "ws": "none",
        "h11_max_incomplete_event_size": _HEAD_BYTES,
        "limit_concurrency": options.max_connections,
        "timeout_keep_alive": _KEEP_ALIVE_S,
        "timeout_graceful_shutdown": int(options.max_shutdown_seconds) + _AFTER_RUNS_S,
    }
    return uvicorn.Config(app, **given | more)


def listening_socket(options: ServerOptions) -> socket.socket:
    """Return a socket that listens at the address and port of a server; port 0 takes any free one.

    Raises:
        SettingsError: The port is taken or not allowed, or the host is no address of this machine.
    """
    try:
        kind, *_, address = socket.getaddrinfo(options.host, options.port, type=socket.SOCK_STREAM)[0]
        return socket.create_server(address[:2], family=kind, backlog=_BACKLOG)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SettingsError(
            f"Cannot listen on {options.host}:{options.port}: {reason}. Give a free --port, and as --host an address "
            "of this machine."
        ) from error


class _Hasty(H11Protocol):
    """A connection that is closed if the head of a request takes too long, for which uvicorn has no limit."""

    head_s: float = 10.0
    _head_due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        super().data_received(data)
        if self._is_answering:
            self._stop_waiting()
        elif self._head_due is None:
            self._await_head()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        super().connection_lost(exc)

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _await_head(self) -> None:
        self._head_due = self.loop.call_later(self.head_s, self._give_up)

    def _stop_waiting(self) -> None:
        if self._head_due is not None:
            self._head_due.cancel()
            self._head_due = None

    def _give_up(self) -> None:
        self._head_due = None
        if not self._is_answering and not self.transport.is_closing():
            self.transport.close()
