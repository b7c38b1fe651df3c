"""Traces across processes: what a request's ``traceparent`` names is the parent of the traces of its questions."""

from __future__ import annotations

from starlette.datastructures import Headers
from starlette.types import ASGIApp, Receive, Scope, Send

from ....modules.errors import DependencyError


class Tracing:
    """Makes the span that a request names the active one while the request is served: ASGI middleware.

    The headers are those of ``OTEL_PROPAGATORS``: ``traceparent``, ``tracestate`` and ``baggage`` unless it says
    otherwise. Malformed ones are left aside.

    Raises:
        DependencyError: The extra ``telemetry`` is not installed.
    """

    def __init__(self, app: ASGIApp) -> None:
        try:
            from opentelemetry import context, propagate
        except ImportError as error:
            raise DependencyError('Telemetry needs an extra: pip install "judgetree[telemetry]"') from error
        self._app = app
        self._context, self._propagate = context, propagate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve one request."""
        if scope["type"] != "http":
            await self._app(scope, receive, send)
            return
        token = self._context.attach(self._propagate.extract(Headers(scope=scope)))
        try:
            await self._app(scope, receive, send)
        finally:
            self._context.detach(token)
