"""A SearXNG on loopback: it answers every search with what it was told to."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from urllib.parse import parse_qs, urlsplit

from tests.loopback import QuietHandler, serving


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

    class Handler(QuietHandler):
        def do_GET(self) -> None:
            parts = urlsplit(self.path)
            state.asked.append((parts.path, parse_qs(parts.query)))
            if state.keeps_silent is not None:
                state.keeps_silent.wait(60)
            with suppress(ConnectionError):  # the client may have had enough
                self.answer(state.body, status=state.status, headers=state.headers)

    with serving(Handler) as state.url:
        yield state
