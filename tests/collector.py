"""A collector of OpenTelemetry on loopback that keeps what it is sent over HTTP."""

from __future__ import annotations

import gzip
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from tests.loopback import QuietHandler, serving


@dataclass(kw_only=True)
class Collector:
    """What was sent so far."""

    url: str = ""
    status: int = 200
    """Status of its answers."""
    requests: list[Any] = field(default_factory=list)
    """Each a trace."""

    def traces(self) -> list[list[Any]]:
        """Return the spans of each trace, in the order of their sending."""
        return [list(request.resource_spans[0].scope_spans[0].spans) for request in self.requests]


@contextmanager
def collecting() -> Iterator[Collector]:
    """A collector that listens."""
    collector = Collector()

    class Handler(QuietHandler):
        def do_POST(self) -> None:
            assert self.path == "/v1/traces"
            body = self.rfile.read(int(self.headers["Content-Length"]))
            body = gzip.decompress(body) if self.headers.get("Content-Encoding") == "gzip" else body
            collector.requests.append(ExportTraceServiceRequest.FromString(body))
            self.answer(b"", status=collector.status, headers={"Content-Type": "application/x-protobuf"})

    with serving(Handler) as collector.url:
        yield collector


def attributes(span: Any) -> dict[str, Any]:
    """Return the attributes of a span as plain data."""
    return {each.key: _plain(each.value) for each in span.attributes}


def parents(spans: list[Any]) -> Counter[tuple[str, str]]:
    """Count the spans by the names of their parents and their own; those of other traces have no name."""
    names = {span.span_id: span.name for span in spans}
    return Counter((names.get(span.parent_span_id, ""), span.name) for span in spans)


def _plain(value: Any) -> Any:
    found = getattr(value, value.WhichOneof("value"))
    return [_plain(each) for each in found.values] if hasattr(found, "values") else found
