"""Questions to a server that sends traces: below the span of the client that asked."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

from judgetree.modules.settings import Settings
from tests.app.conftest import COLLECTION
from tests.app.server.serving import serving
from tests.app.talks import FIRST
from tests.collector import Collector, attributes, collecting

TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"
BODY = {"model": f"{COLLECTION}/judge", "messages": [{"role": "user", "content": FIRST}]}


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    with collecting() as listening:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", listening.url)
        yield listening


@pytest.mark.parametrize("is_streamed", [True, False])
def test_a_question_is_below_the_span_that_the_client_names(
    settings: Settings, collector: Collector, *, is_streamed: bool
) -> None:
    def ask(chat: str, parent: str) -> None:
        headers = {"X-Chat-Id": chat, "traceparent": parent}
        answer = http.post("/v1/chat/completions", json={**BODY, "stream": is_streamed}, headers=headers)
        assert answer.status_code == 200, answer.text

    traced = settings.model_copy(update={"telemetry": "otlp"})
    with serving(traced) as url, httpx.Client(base_url=url, timeout=60) as http:
        ask("named", f"00-{TRACE}-{SPAN}-01")
        ask("not sampled", f"00-{TRACE}-{SPAN}-00")
        ask("malformed", "00-nonsense-01")
    named, malformed = collector.traces()
    assert {span.trace_id.hex() for span in named} == {TRACE}
    assert [span.name for span in named if span.parent_span_id.hex() == SPAN] == [named[0].name]
    assert attributes(named[0])["judgetree.status"] == "answered"
    assert malformed[0].trace_id.hex() != TRACE
    assert malformed[0].parent_span_id == b""
