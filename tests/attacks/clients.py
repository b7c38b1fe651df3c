"""Clients that misbehave below the level of a request: each sends bytes on a connection or none, and leaves it open."""

from __future__ import annotations

import socket
import struct
from collections.abc import Callable

_HEAD = b"GET /healthz HTTP/1.1\r\nHost: localhost\r\n"
_POST = b"POST /v1/chat/completions HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n"
_UPGRADE = b"Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Key: eA==\r\nSec-WebSocket-Version: 13\r\n"

Client = Callable[[socket.socket], None]


def _sends(data: bytes) -> Client:
    return lambda connection: connection.sendall(data)


def _drips(connection: socket.socket) -> None:
    for letter in _HEAD[:20]:
        connection.sendall(bytes([letter]))


def _half_closes(connection: socket.socket) -> None:
    connection.sendall(_HEAD + b"\r\n")
    connection.shutdown(socket.SHUT_WR)


def _reads_nothing(connection: socket.socket) -> None:
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 1024)
    connection.sendall((b"GET /openapi.json HTTP/1.1\r\nHost: localhost\r\n\r\n") * 20)


def _resets(connection: socket.socket) -> None:
    connection.sendall(_HEAD + b"\r\n")
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
    connection.close()


CLIENTS: dict[str, Client] = {
    "silent": _sends(b""),
    "half-a-head": _sends(_HEAD[:30]),
    "drips-a-head": _drips,
    "kept-alive": _sends(_HEAD + b"\r\n"),
    "half-closed": _half_closes,
    "pipelined": _sends((_HEAD + b"\r\n") * 50),
    "http-1.0": _sends(_HEAD.replace(b"1.1", b"1.0") + b"\r\n"),
    "http-2": _sends(b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"),
    "tls": _sends(bytes.fromhex("16030100a5010000a10303") + b"\0" * 200),
    "web-socket": _sends(_HEAD + _UPGRADE + b"\r\n"),
    "half-a-body": _sends(_POST + b'Content-Length: 100\r\n\r\n{"model"'),
    "half-a-chunk": _sends(_POST + b"Transfer-Encoding: chunked\r\n\r\nff\r\n{"),
    "waits-for-100": _sends(_POST + b"Content-Length: 100\r\nExpect: 100-continue\r\n\r\n"),
    "forged-sender": _sends(_HEAD + b"X-Forwarded-For: 203.0.113.9\r\nForwarded: for=203.0.113.9\r\n\r\n"),
    "reads-nothing": _reads_nothing,
    "resets": _resets,
}
