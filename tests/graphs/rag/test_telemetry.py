"""Trees as spans of OpenTelemetry: parents and children as in the tree, true times, texts only where recorded."""

from __future__ import annotations

import json
import threading
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SpanExporter, SpanExportResult
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ALWAYS_ON

from judgetree.app.scripted.server import ScriptedServer
from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.rag.telemetry import TelemetrySender, send_tree
from judgetree.graphs.session import RagSession
from judgetree.graphs.threads.context import RagContext
from judgetree.modules.errors import SettingsError
from judgetree.modules.judge.generated import GeneratedJudge
from judgetree.modules.recorded_texts import Record
from judgetree.modules.settings import load_settings
from tests.app.conftest import CHAIN, SUB_QUESTION
from tests.collector import collecting
from tests.graphs.fakes import TableRetriever, chunk
from tests.modules.model_endpoints import llm_at

RETRIEVER = TableRetriever(
    {
        CHAIN.question: [chunk("a", "Norm A names the drum."), chunk("x", "Ladders are grey.")],
        SUB_QUESTION: [chunk("b", "The drum's wall is 40 mm thick.")],
    }
)


def asked(home: Path, record: Record = "full") -> SearchTree:
    settings = load_settings(home=home, record=record)
    with ScriptedServer([CHAIN]) as server:
        llm = llm_at(server.base_url, retries=0)
        context = RagContext(reader=llm, retriever=RETRIEVER, judge=GeneratedJudge(llm))
        with RagSession(context=context, settings=settings) as session:
            tree = session.ask(CHAIN.question, thread_id="t").tree
    assert tree.root.answer == "40 mm"
    return tree


def sent(tree: SearchTree) -> Sequence[ReadableSpan]:
    exporter = InMemorySpanExporter()
    assert send_tree(tree, exporter) == len(exporter.get_finished_spans())
    return exporter.get_finished_spans()


def attributes(span: ReadableSpan) -> Mapping[str, object]:
    return span.attributes or {}


def parents(spans: Sequence[ReadableSpan]) -> Counter[tuple[str, str]]:
    names = {span.context.span_id: span.name for span in spans if span.context}
    return Counter((names[span.parent.span_id] if span.parent else "", span.name) for span in spans)


def test_spans_have_the_parents_of_the_tree(tmp_path: Path) -> None:
    spans = sent(asked(tmp_path))
    root, sub = "invoke_workflow judge", "invoke_agent judge"
    assert parents(spans) == {
        ("", root): 1,
        (root, "retrieval"): 1,
        (root, "judge"): 2,
        (root, sub): 1,
        (root, "chat m"): 1,
        (sub, "retrieval"): 1,
        (sub, "judge"): 1,
        (sub, "chat m"): 1,
        ("judge", "chat m"): 3,
    }
    assert len({span.context.trace_id for span in spans if span.context}) == 1
    assert len({span.context.span_id for span in spans if span.context}) == len(spans)


def test_times_are_true_and_children_lie_within_their_parents(tmp_path: Path) -> None:
    before = time.time_ns()
    tree = asked(tmp_path)
    after = time.time_ns()
    spans = sent(tree)
    by_id = {span.context.span_id: span for span in spans if span.context}
    millisecond = 1_000_000
    for span in spans:
        start, end = span.start_time or 0, span.end_time or 0
        assert before - millisecond <= start <= end <= after + millisecond
        if span.parent is not None:
            above = by_id[span.parent.span_id]
            assert (above.start_time or 0) - millisecond <= start
            assert end <= (above.end_time or 0) + millisecond
    judging = [span for span in spans if span.name == "judge"]
    search = next(
        span for span in spans if span.name == "retrieval" and span.parent and not by_id[span.parent.span_id].parent
    )
    assert all((search.end_time or 0) <= (each.start_time or 0) + millisecond for each in judging)


def test_calls_follow_the_conventions_of_generative_ai(tmp_path: Path) -> None:
    tree = asked(tmp_path)
    chats = [attributes(span) for span in sent(tree) if span.name == "chat m"]
    records = [record for node in tree.query_nodes() for record in node.usage]
    for name, field in (("input", "prompt_tokens"), ("output", "completion_tokens")):
        assert sorted(each[f"gen_ai.usage.{name}_tokens"] for each in chats) == sorted(r[field] for r in records)  # type: ignore[literal-required, type-var]
    for each in chats:
        assert (each["gen_ai.operation.name"], each["gen_ai.request.model"]) == ("chat", "m")
        system, user = json.loads(str(each["gen_ai.input.messages"]))
        assert (system["role"], user["role"], user["parts"][0]["type"]) == ("system", "user", "text")
        [reply] = json.loads(str(each["gen_ai.output.messages"]))
        assert (reply["role"], reply["finish_reason"]) == ("assistant", "stop")
        assert list(each["gen_ai.response.finish_reasons"]) == ["stop"]  # type: ignore[call-overload]
    verdicts = {attributes(span)["judgetree.chunk_id"]: attributes(span) for span in sent(tree) if span.name == "judge"}
    assert {key: each["gen_ai.evaluation.score.value"] for key, each in verdicts.items()} == {
        "a": 1.0,
        "x": 0.0,
        "b": 2.0,
    }
    [search, _] = [attributes(span) for span in sent(tree) if span.name == "retrieval"]
    assert [each["id"] for each in json.loads(str(search["gen_ai.retrieval.documents"]))] == ["a", "x"]


def test_without_a_recording_no_text_is_sent(tmp_path: Path) -> None:
    spans = sent(asked(tmp_path, record="none"))
    said = repr([(span.name, dict(attributes(span))) for span in spans])
    assert len(spans) == 12
    for text in ("Norm A", "drum", "40 mm", "Ladders"):
        assert text not in said


def test_a_tree_that_is_sent_twice_is_one_trace(tmp_path: Path) -> None:
    tree = asked(tmp_path)
    again = SearchTree.from_json(tree.to_json())
    assert [span.context for span in sent(tree)] == [span.context for span in sent(again)]


class Refusing(SpanExporter):
    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        return SpanExportResult.FAILURE

    def shutdown(self) -> None:
        pass


def test_a_collector_that_refuses_is_reported_and_costs_no_question(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    tree = asked(tmp_path)
    with pytest.raises(SettingsError, match="OTEL_EXPORTER_OTLP_ENDPOINT"):
        send_tree(tree, Refusing())
    sender = TelemetrySender(Refusing())
    sender.send(tree)
    sender.close()
    assert "The trace of t was not sent" in caplog.text


class Slow(Refusing):
    """Refuses the first tree after the others have been handed over."""

    def __init__(self) -> None:
        self.others_wait = threading.Event()
        self.asked = 0

    def export(self, spans: Sequence[ReadableSpan]) -> SpanExportResult:
        self.asked += 1
        assert self.others_wait.wait(10)
        return super().export(spans)


def test_trees_that_wait_for_a_dead_collector_are_left_out(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    tree, exporter = asked(tmp_path), Slow()
    sender = TelemetrySender(exporter)
    first, *_ = [sender.send(tree) for _ in range(5)]
    exporter.others_wait.set()
    first.result()
    sender.send(tree).result()
    sender.close()
    assert exporter.asked == 2, "the first, and the one after its failure"
    assert "4 more traces were not sent. Later: judgetree tree ID --otlp" in caplog.text


def test_a_session_sends_each_question_to_the_collector(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with collecting() as collector:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url)
        monkeypatch.setenv("JUDGETREE_TELEMETRY", "otlp")
        tree = asked(tmp_path)
    [resource] = collector.requests[0].resource_spans
    assert {each.key: each.value.string_value for each in resource.resource.attributes}["service.name"] == "judgetree"
    assert [span.name for span in resource.scope_spans[0].spans] == [span.name for span in sent(tree)]


@pytest.mark.parametrize("is_sampled", [True, False])
def test_a_question_is_below_the_callers_span_if_that_is_sampled(tmp_path: Path, *, is_sampled: bool) -> None:
    tree, exporter = asked(tmp_path), InMemorySpanExporter()
    sampler = ALWAYS_ON if is_sampled else ALWAYS_OFF
    with TracerProvider(sampler).get_tracer("caller").start_as_current_span("request") as callers:
        sender = TelemetrySender(exporter)
        sender.send(tree).result()
    own = callers.get_span_context()
    spans = exporter.get_finished_spans()
    assert {span.context.trace_id for span in spans} == ({own.trace_id} if is_sampled else set())
    assert [span.name for span in spans if span.parent == own] == (["invoke_workflow judge"] if is_sampled else [])
    sender.close()
