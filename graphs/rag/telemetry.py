"""Search trees and turns sent as traces of OpenTelemetry (extra ``telemetry``), for Phoenix, Langfuse and others."""

from __future__ import annotations

import logging
import math
import os
import time
from collections.abc import Callable, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING

from ...modules.errors import DependencyError, SettingsError
from .search_tree import SearchTree
from .spans import Span, Trace, trace_of

if TYPE_CHECKING:
    from opentelemetry.sdk.trace import ReadableSpan
    from opentelemetry.sdk.trace.export import SpanExporter
    from opentelemetry.trace import SpanContext

logger = logging.getLogger(__name__)

_CREDENTIAL_PROVIDERS = "OTEL_PYTHON_EXPORTER_OTLP_HTTP_"
_EXTRA = 'Telemetry needs an extra: pip install "judgetree[telemetry]"'


def send_tree(tree: SearchTree, exporter: SpanExporter | None = None) -> int:
    """Send the spans of a tree (``trace_of``); it blocks, and returns their number.

    ::

        send_tree(session.ask("Which oil does KS-1 need?").tree)

    Args:
        tree: A finished, failed or open tree.
        exporter: Receives the spans; None sends them over HTTP as the standard variables say
            (``OTEL_EXPORTER_OTLP_ENDPOINT``, ``OTEL_EXPORTER_OTLP_HEADERS``, ``OTEL_SERVICE_NAME``).

    Raises:
        DependencyError: The extra ``telemetry`` is not installed.
        SettingsError: The endpoint does not take them.
    """
    spans = _otel_spans(trace_of(tree))
    own = exporter or open_exporter()
    try:
        _export(spans, own)
    finally:
        if exporter is None:
            own.shutdown()
    return len(spans)


def _export(spans: Sequence[ReadableSpan], exporter: SpanExporter) -> None:
    from opentelemetry.sdk.trace.export import SpanExportResult  # noqa: PLC0415 - the extra "telemetry"

    if exporter.export(spans) is not SpanExportResult.SUCCESS:
        raise SettingsError(
            "The spans were not taken. Check OTEL_EXPORTER_OTLP_ENDPOINT and OTEL_EXPORTER_OTLP_HEADERS, and that the "
            "collector runs."
        )


def _otel_spans(spans_together: Trace, parent: SpanContext | None = None) -> list[ReadableSpan]:
    """Return a trace as spans of OpenTelemetry's SDK, below a span of the trace of others if there is one.

    Raises:
        DependencyError: The extra ``telemetry`` is not installed.
    """
    try:
        from opentelemetry import trace  # noqa: PLC0415 - the extra "telemetry"
        from opentelemetry.sdk.resources import Resource  # noqa: PLC0415
        from opentelemetry.sdk.trace import ReadableSpan  # noqa: PLC0415
        from opentelemetry.sdk.util.instrumentation import InstrumentationScope  # noqa: PLC0415
    except ImportError as error:
        raise DependencyError(_EXTRA) from error
    trace_id = parent.trace_id if parent else int.from_bytes(spans_together.trace_id)
    resource = Resource.create({"service.name": os.environ.get("OTEL_SERVICE_NAME") or "judgetree"})
    scope = InstrumentationScope("judgetree")

    def context_of(span_id: bytes) -> trace.SpanContext:
        flags = trace.TraceFlags(trace.TraceFlags.SAMPLED)
        state = parent.trace_state if parent else None
        return trace.SpanContext(trace_id, int.from_bytes(span_id), False, flags, state)

    def converted(span: Span) -> ReadableSpan:
        failed = trace.Status(trace.StatusCode.ERROR, span.error)
        return ReadableSpan(
            name=span.name,
            context=context_of(span.span_id),
            parent=context_of(span.parent_id) if span.parent_id else parent,
            resource=resource,
            attributes=dict(span.attributes),
            kind=trace.SpanKind.CLIENT if span.is_call else trace.SpanKind.INTERNAL,
            status=failed if span.error else trace.Status(trace.StatusCode.OK),
            start_time=span.start_ns,
            end_time=span.end_ns,
            instrumentation_scope=scope,
        )

    return [converted(span) for span in spans_together.spans]


def _current_span() -> SpanContext | None:
    """Return the span of the caller that is active, such as that of an HTTP request; None without one."""
    from opentelemetry import trace  # noqa: PLC0415 - the extra "telemetry"

    context = trace.get_current_span().get_span_context()
    return context if context.is_valid else None


def open_exporter() -> SpanExporter:
    """Return the exporter over HTTP that the standard variables describe.

    Raises:
        DependencyError: The extra ``telemetry`` is not installed.
    """
    try:
        from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter  # noqa: PLC0415
    except ImportError as error:
        raise DependencyError(_EXTRA) from error
    from ...modules.network.sessions import RoutedSession  # noqa: PLC0415 - requests comes with the extra

    # A credential provider of OpenTelemetry brings a session of its own.
    has_provider = any(name.startswith(_CREDENTIAL_PROVIDERS) for name in os.environ)
    exporter: SpanExporter = OTLPSpanExporter(session=None if has_provider else RoutedSession())
    return exporter


class TelemetrySender:
    """Sends traces one after the other in a thread of its own. What cannot be sent costs a warning, and no question.

    A trace is below the caller's active span of OpenTelemetry if there is one, and not sent where that is not sampled.
    A collector that is down takes ten seconds a trace: those that were handed over meanwhile are left out.
    """

    def __init__(self, exporter: SpanExporter | None = None) -> None:
        """Send to an exporter; None opens that of the standard variables.

        Raises:
            DependencyError: The extra ``telemetry`` is not installed.
        """
        self._exporter = exporter or open_exporter()
        self._thread = ThreadPoolExecutor(max_workers=1, thread_name_prefix="telemetry")
        self._failed_at = -math.inf
        self._left_out = 0

    def send(self, tree: SearchTree) -> Future[None]:
        """Send a tree some time later; it returns at once."""
        return self.send_trace(partial(trace_of, tree), of=tree.root.thread_id)

    def send_trace(self, make: Callable[[], Trace], *, of: str) -> Future[None]:
        """Make a trace and send it, some time later; it returns at once. A warning names what the trace is ``of``."""
        return self._thread.submit(self._send, make, _current_span(), of, time.monotonic())

    def close(self) -> None:
        """Wait until all traces are sent or left out, and close the exporter."""
        self._thread.shutdown(wait=True)
        self._exporter.shutdown()
        if self._left_out:
            logger.warning("%d more traces were not sent. Later: judgetree tree ID --otlp", self._left_out)

    def _send(self, make: Callable[[], Trace], parent: SpanContext | None, of: str, given_at: float) -> None:
        if parent is not None and not parent.trace_flags.sampled:
            return
        if given_at <= self._failed_at:
            self._left_out += 1
            return
        try:
            _export(_otel_spans(make(), parent), self._exporter)
        except Exception as error:  # noqa: BLE001 - the answer matters more than its trace
            self._failed_at = time.monotonic()
            logger.warning("The trace of %s was not sent: %s", of, error)
