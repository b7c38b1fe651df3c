"""A SearXNG on loopback: it answers every search with what it was told to."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit


@dataclass(kw_only=True)
class SearxngServer:
    """What it was asked, and how it answers."""

    url: str = ""
    asked: list[tuple[str, dict[str, list[str]]]] = field(default_factory=list)
    """Path and parameters of each request."""
    status: int = 200
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b'{"results": []}'
    keeps_silent: threading.Event | None = None
    """Until this is set, there is no answer."""

    def finds(self, results: Sequence[object], **further: object) -> None:
        self.body = json.dumps({"query": "q", "results": results, **further}).encode()


@contextmanager
def serve_searxng() -> Iterator[SearxngServer]:
    state = SearxngServer()

    class Handler(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            state.asked.append((parts.path, parse_qs(parts.query)))
            if state.keeps_silent is not None:
                state.keeps_silent.wait(60)
            try:
                self.send_response(state.status)
                for name, value in state.headers.items():
                    self.send_header(name, value)
                self.send_header("Content-Length", str(len(state.body)))
                self.end_headers()
                self.wfile.write(state.body)
            except ConnectionError:
                """Whoever asked does not want to hear more."""

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
        state.url = f"http://127.0.0.1:{server.server_port}"
        try:
            yield state
        finally:
            server.shutdown()
