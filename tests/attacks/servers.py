"""Servers that misbehave below the level of a reply: each answers a connection with bytes of its own, or with none."""

from __future__ import annotations

import gzip
import itertools
import json
import socketserver
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import BinaryIO

_CHUNK = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "m"}
_WHOLE = {"id": "1", "object": "chat.completion", "created": 0, "model": "m"}
_MESSAGE = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": "yes"}}
GOOD = json.dumps({**_WHOLE, "choices": [_MESSAGE]}).encode()
"""A whole chat completion."""

Misbehaviour = Callable[[BinaryIO, threading.Event], None]
"""Writes to the connection until it is done, or until the event is set."""


def _head(status: str, *headers: str) -> bytes:
    return "\r\n".join([f"HTTP/1.1 {status}", *headers, "Connection: close", "", ""]).encode()


def reply(status: str, body: bytes, *headers: str) -> bytes:
    """The bytes of a whole response with a JSON body."""
    return _head(status, "Content-Type: application/json", f"Content-Length: {len(body)}", *headers) + body


def says(status: str, body: bytes, *headers: str) -> Misbehaviour:
    """Answer every request so, as JSON."""

    return lambda out, over: out.write(reply(status, body, *headers)) and None


def _raw(data: bytes) -> Misbehaviour:
    return lambda out, over: out.write(data) and None


def _endless(head: bytes, piece: bytes, pause_s: float) -> Misbehaviour:
    """The same piece until the caller has had enough."""

    def write(out: BinaryIO, over: threading.Event) -> None:
        out.write(head)
        for _ in itertools.count():
            out.write(piece)
            if over.wait(pause_s) if pause_s else over.is_set():
                return

    return write


def _silent(out: BinaryIO, over: threading.Event) -> None:
    over.wait()


def _error(message: str, **fields: object) -> bytes:
    return json.dumps({"error": {"message": message, **fields}}).encode()


_EVENTS = _head("200 OK", "Content-Type: text/event-stream")
_DELTA = json.dumps({**_CHUNK, "choices": [{"index": 0, "delta": {"content": "more "}, "finish_reason": None}]})


def says_stream(events: bytes) -> Misbehaviour:
    """Answer every request with these events."""
    return _raw(_EVENTS + events)


SETUP: dict[str, Misbehaviour] = {
    "401": says("401 Unauthorized", _error("bad key")),
    "402": says("402 Payment Required", _error("no credit")),
    "404": says("404 Not Found", _error("no such model")),
    "429-quota": says("429 Too Many Requests", _error("quota", code="insufficient_quota")),
    "redirects-to-itself": says("308 Permanent Redirect", b"", "Location: /v1/chat/completions"),
}
"""After these nothing else is worth asking."""

PAGE = says("200 OK", b"<html>Log in</html>", "X: y")
"""It may be that of a proxy whose server starts anew, or of an address that is wrong."""

REQUEST: dict[str, Misbehaviour] = {
    "403-flagged": says("403 Forbidden", _error("your input was flagged")),
    "400": says("400 Bad Request", _error("content filter", code="content_filter")),
    "413": says("413 Content Too Large", _error("too long")),
}
"""These refuse one request."""

OTHER: dict[str, Misbehaviour] = {
    "500": says("500 Internal Server Error", b"\xff\xfe not text"),
    "empty": says("200 OK", b""),
    "closes": _raw(b""),
    "no-http": _raw(b"SSH-2.0-OpenSSH_9.2\r\n" * 1000),
    "garbage-gzip": says("200 OK", b"\x1f\x8b no gzip", "Content-Encoding: gzip"),
    "shorter-than-said": _raw(_head("200 OK", "Content-Type: application/json", "Content-Length: 99999") + GOOD),
    "endless-header": _endless(b"HTTP/1.1 200 OK\r\nX: ", b"x" * 1000, 0.001),
    "silent": _silent,
    "drips": _endless(_head("200 OK", "Content-Type: application/json", "Content-Length: 9999999"), b" ", 0.05),
    "keeps-alive": _endless(_EVENTS, b": still here\n\n", 0.05),
    "pings": _endless(_EVENTS, b"event: ping\ndata: {}\n\n" * 2_000, 0),
    "event-without-end": _endless(_EVENTS, b"data: {\n" * 8_000, 0),
    "long-event-of-many-lines": says_stream(b"data: " + b"x" * 15_000_000 + b"\ndata: x\n" * 20_000),
    "ids-without-events": _endless(_EVENTS, b"id: 1\n" * 8_000, 0),
    "pieces-without-choices": _endless(_EVENTS, f"data: {json.dumps({**_CHUNK, 'choices': []})}\n\n".encode() * 500, 0),
    "events-called-json": says("200 OK", b"data: {\n" * 1_000_000),
    "endless-stream": _endless(_EVENTS, f"data: {_DELTA}\n\n".encode(), 0.0005),
    "endless-line": _endless(_EVENTS + b"data: ", b"x" * 65_536, 0.001),
}
"""These fail an attempt."""


ENDLESS_JSON = _endless(_head("200 OK", "Content-Type: application/json"), b" " * 1_000_000, 0.001)
"""A reply that fills the memory."""
BOMB = says("200 OK", gzip.compress(b" " * 10_000_000), "Content-Encoding: gzip")
"""A small reply that unpacks to a large one."""


class _Handler(socketserver.StreamRequestHandler):
    server: _Server

    def handle(self) -> None:
        with suppress(OSError):
            length = 0
            while line := self.rfile.readline().strip():
                name, _, value = line.partition(b":")
                length = int(value) if name.lower() == b"content-length" else length
            self.rfile.read(length)
            self.server.asked += 1
            self.server.behave(self.wfile, self.server.over)


class _Server(socketserver.ThreadingTCPServer):
    daemon_threads = True
    block_on_close = False
    allow_reuse_address = True

    def __init__(self, behave: Misbehaviour) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.behave = behave
        self.over = threading.Event()
        self.asked = 0
        self.base_url = f"http://127.0.0.1:{self.server_address[1]}/v1"


@contextmanager
def misbehaving(behave: Misbehaviour) -> Iterator[_Server]:
    """A server that answers every connection so."""
    with _Server(behave) as server:
        threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True).start()
        try:
            yield server
        finally:
            server.over.set()
            server.shutdown()
