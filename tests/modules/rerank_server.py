"""A rerank service on loopback, in both shapes; scores a text by how many of the query's words it holds."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http import HTTPStatus

from tests.loopback import QuietHandler, serving


@dataclass(kw_only=True)
class RerankServer:
    """What it was asked, and what it answers instead of scores when told to."""

    url: str = ""
    requests: list[dict[str, object]] = field(default_factory=list)
    keys: list[str] = field(default_factory=list)
    status: int = 200
    first: list[int] = field(default_factory=list)
    """Statuses of the first replies."""
    body: str | None = None
    location: str = ""

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

    class Handler(QuietHandler):
        def do_POST(self) -> None:
            request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            state.keys.append(self.headers.get("Authorization", ""))
            status = state.first.pop(0) if state.first else state.status
            headers = {"Location": state.location} if state.location else {}
            headers |= {"Retry-After": "0.01"} if status == HTTPStatus.TOO_MANY_REQUESTS else {}
            self.answer(state.answer(request).encode(), status=status, headers=headers)

    with serving(Handler) as address:
        state.url = f"{address}/v1/rerank"
        yield state
