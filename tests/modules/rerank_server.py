"""A rerank service on loopback, in both shapes; scores a text by how many of the query's words it holds."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer


@dataclass(kw_only=True)
class RerankServer:
    """What it was asked, and what it answers instead of scores when told to."""

    url: str = ""
    requests: list[dict[str, object]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    status: int = 200
    body: str | None = None

    def answer(self, request: dict[str, object]) -> str:
        self.requests.append(request)
        if self.body is not None:
            return self.body
        dashscope = "input" in request
        asked, wanted = (request["input"], request["parameters"]) if dashscope else (request, request)
        words = str(asked["query"]).lower().split()
        scores = [sum(word in text.lower() for word in words) / len(words) for text in asked["documents"]]
        results = [{"index": index, "relevance_score": score} for index, score in enumerate(scores)]
        results = sorted(results, key=lambda result: -float(result["relevance_score"]))[: wanted["top_n"]]
        return json.dumps({"output": {"results": results}} if dashscope else {"results": results})


@contextmanager
def serve_rerank() -> Iterator[RerankServer]:
    state = RerankServer()

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            state.keys.append(self.headers.get("Authorization", ""))
            body = state.answer(request).encode()
            self.send_response(state.status)
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, format: str, *args: object) -> None:
            """Say nothing."""

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}).start()
        state.url = f"http://127.0.0.1:{server.server_port}/v1/rerank"
        try:
            yield state
        finally:
            server.shutdown()
