"""Metrics for Prometheus: requests by door, questions that run, and what they cost."""

from __future__ import annotations

import time
from collections.abc import Iterator

from fastapi import APIRouter, Request, Response
from prometheus_client import CONTENT_TYPE_LATEST, CollectorRegistry, Counter, Histogram, generate_latest
from prometheus_client.core import CounterMetricFamily, GaugeMetricFamily
from prometheus_client.metrics_core import Metric
from prometheus_client.registry import Collector
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from ..safety.connections import Connections
from ..serving.served import Served
from .request_log import door_of, log_request, request_id_of

router = APIRouter(tags=["watching"])

_SECONDS = (0.01, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300, 600)


class Metrics:
    """The metrics of one application."""

    def __init__(self, served: Served, connections: Connections) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "judgetree_requests", "Requests by door and HTTP status.", ("door", "status"), registry=self.registry
        )
        self.seconds = Histogram(
            "judgetree_request_seconds",
            "Seconds to the last byte of the answer.",
            ("door",),
            buckets=_SECONDS,
            registry=self.registry,
        )
        self.registry.register(_Counted(served, connections))


class _Counted(Collector):
    """Counts running questions and connections when it is asked."""

    def __init__(self, served: Served, connections: Connections) -> None:
        self._served = served
        self._connections = connections

    def collect(self) -> Iterator[Metric]:
        """Yield the gauges and counters."""
        running, counted = self._served.admissions.running, self._connections
        yield GaugeMetricFamily(
            "judgetree_running_questions", "Questions that this process is answering.", value=running
        )
        yield GaugeMetricFamily("judgetree_connections", "Connections that are open.", value=counted.open)
        yield CounterMetricFamily(
            "judgetree_connections_closed", "Idle connections that were closed to make room.", value=counted.closed_idle
        )
        yield CounterMetricFamily(
            "judgetree_connections_refused", "Connections and requests beyond a limit.", value=counted.refused
        )


@router.get(
    "/metrics", response_class=Response, responses={200: {"content": {CONTENT_TYPE_LATEST: {}}, "description": "Text"}}
)
async def metrics(request: Request) -> Response:
    """Return the metrics of this process in Prometheus' text format."""
    return Response(generate_latest(request.app.state.metrics.registry), media_type=CONTENT_TYPE_LATEST)


class Watch:
    """Counts, times and logs every request, and gives it an id: ASGI middleware."""

    def __init__(self, app: ASGIApp, metrics: Metrics) -> None:
        self._app = app
        self._metrics = metrics

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        began, status, request_id = time.perf_counter(), 0, request_id_of(scope)

        async def sent(message: Message) -> None:
            nonlocal status
            if message["type"] == "http.response.start":
                status = message["status"]
                message["headers"] = [*message.get("headers", ()), (b"x-request-id", request_id.encode())]
            await send(message)

        try:
            await self._app(scope, receive, sent)
        finally:
            seconds = time.perf_counter() - began
            self._metrics.requests.labels(door_of(scope), str(status)).inc()
            self._metrics.seconds.labels(door_of(scope)).observe(seconds)
            log_request(scope, request_id, status=status, seconds=seconds)
