"""The start of a server: what it must have, and how it listens."""

from __future__ import annotations

import socket
from types import FrameType
from typing import Any

import uvicorn
from fastapi import FastAPI

from ....modules.errors import SettingsError
from ....modules.network.long_waits import LONG_WAITS
from ..keys.book import KeyBook
from ..serving.options import ServerOptions
from .protocol import protocol_of

_KEEP_ALIVE_S = 75
"""Seconds for which an unused connection is kept: more than proxies keep theirs, which else use a closed one."""
_HEAD_BYTES = 32_768
_AFTER_RUNS_S = 5
BACKLOG = 2048
"""Connections that the system holds until the server takes them, all at once; uvicorn's default."""


def check_can_start(options: ServerOptions, keys: KeyBook) -> None:
    """Check that a server that demands keys has one.

    Raises:
        SettingsError: There is no key, or the keys cannot be read.
    """
    if options.demands_keys and not keys.has_any():
        who = f"The address {options.host}" if not options.is_local else "The option --keys"
        raise SettingsError(f"{who} demands a key, and there is none yet. Make one first: judgetree keys add NAME")


def uvicorn_config(app: FastAPI, options: ServerOptions, **more: Any) -> uvicorn.Config:
    """Return how uvicorn runs the application: its address, and limits of time, size and number for connections."""
    given: dict[str, Any] = {
        "host": options.host,
        "port": options.port,
        "log_level": "warning",
        "server_header": False,
        "lifespan": "on",
        "http": protocol_of(options, app.state.connections),  # httptools bounds no heads
        "proxy_headers": False,  # uvicorn would believe all programs of this machine
        "ws": "none",
        "h11_max_incomplete_event_size": _HEAD_BYTES,
        "timeout_keep_alive": _KEEP_ALIVE_S,
        "backlog": BACKLOG,
        "timeout_graceful_shutdown": int(options.max_shutdown_seconds) + _AFTER_RUNS_S,
    }
    return uvicorn.Config(app, **given | more)


class DrainingServer(uvicorn.Server):
    """A server whose questions do not wait for the rate limits of endpoints once it is to end."""

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """End the waits of minutes, and let the rest of what runs end in its time."""
        super().handle_exit(sig, frame)
        LONG_WAITS.end()


def listening_socket(options: ServerOptions) -> socket.socket:
    """Return a socket that listens at the address and port of a server; port 0 takes any free one.

    Raises:
        SettingsError: The port is taken or not allowed, or the host is no address of this machine.
    """
    try:
        kind, *_, address = socket.getaddrinfo(options.host, options.port, type=socket.SOCK_STREAM)[0]
        listening = socket.create_server(address[:2], family=kind, backlog=BACKLOG)
    except (OSError, UnicodeError) as error:
        reason = getattr(error, "strerror", None) or error
        raise SettingsError(
            f"Cannot listen on {options.host}:{options.port}: {reason}. Give a free --port, and as --host an address "
            "of this machine."
        ) from error
    # asyncio does it only for sockets that name their protocol; else an answer's second piece waits 40 ms for an ACK.
    listening.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)  # connections inherit it
    return listening
