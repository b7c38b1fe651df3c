"""Turns as traces of OpenTelemetry, sent to a collector over HTTP however the turn ends."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from judgetree.app.scripted.server import ScriptedServer
from judgetree.graphs.conversations import Conversations
from judgetree.graphs.threads.context import RagContext
from judgetree.modules.errors import ModelSetupError
from judgetree.modules.judge.generated import GeneratedJudge
from judgetree.modules.memory.memory import ConversationMemory
from tests.app.conftest import CHAIN
from tests.collector import Collector, attributes, collecting, parents
from tests.graphs.conversation.talk import (
    CLASS,
    DOWN,
    OIL,
    HangingRetriever,
    TalkingLLM,
    open_conversations,
    saved,
    settings_in,
)
from tests.graphs.fakes import TableRetriever
from tests.graphs.rag.test_telemetry import RETRIEVER
from tests.modules.fake_embeddings import BagOfWordsEmbedder
from tests.modules.model_endpoints import llm_at

TURN, SEARCH = "invoke_workflow judgetree conversation", "invoke_workflow naive"


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    with collecting() as listening:
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", listening.url)
        yield listening


@pytest.fixture
def traced(collector: Collector, llm: TalkingLLM, tmp_path: Path) -> Callable[..., Conversations]:
    def open_traced(retriever: TableRetriever | None = None, **changes: object) -> Conversations:
        settings = settings_in(tmp_path, **{"telemetry": "otlp", **changes})
        return open_conversations(tmp_path, llm, settings=settings, retriever=retriever)

    return open_traced


def status_of(trace: list[Any]) -> tuple[str, str]:
    """What the turn's span says of the end of the turn, and its error."""
    return attributes(trace[0])["judgetree.status"], trace[0].status.message


def test_turns_are_sent_with_their_own_calls_and_their_searches(
    collector: Collector, traced: Callable[..., Conversations], tmp_path: Path
) -> None:
    (tmp_path / "prices.toml").write_text('[chat."fake"]\nprompt = 1.0\ncompletion = 2.0\n', encoding="utf-8")
    with traced() as talks:
        talk = talks.conversation("s")
        first, second = talk.ask(CLASS), talk.ask("And its oil?")
        name = talk.conversation_id
    search = {("", TURN): 1, (TURN, SEARCH): 1, (SEARCH, "retrieval"): 1, (SEARCH, "chat fake"): 1}
    assert [parents(trace) for trace in collector.traces()] == [search, {**search, (TURN, "chat fake"): 2}]
    for result, trace in zip((first, second), collector.traces(), strict=True):
        said = attributes(trace[0])
        assert said["judgetree.turn_id"] == result.turn_id
        assert (said["judgetree.status"], said["judgetree.answered_from"]) == ("answered", "search")
        assert said["gen_ai.usage.input_tokens"] == result.usage["prompt_tokens"]
        assert said["judgetree.llm_calls"] == result.usage["llm_calls"]
        cost = (result.usage["prompt_tokens"] + 2 * result.usage["completion_tokens"]) / 1e6
        assert said["judgetree.cost_usd"] == pytest.approx(cost, abs=1e-12)
        assert {attributes(span)["gen_ai.conversation.id"] for span in trace} == {name}
        assert trace[0].start_time_unix_nano <= min(span.start_time_unix_nano for span in trace)
        assert trace[0].end_time_unix_nano >= max(span.end_time_unix_nano for span in trace)


@pytest.mark.parametrize("record", ["full", "none"])
def test_texts_of_a_turn_are_sent_where_they_are_recorded(collector: Collector, tmp_path: Path, record: str) -> None:
    settings = settings_in(tmp_path, telemetry="otlp", record=record)
    with ScriptedServer([CHAIN]) as server:
        llm = llm_at(server.base_url, retries=0)
        context = RagContext(reader=llm, retriever=RETRIEVER, judge=GeneratedJudge(llm))
        memory = ConversationMemory(BagOfWordsEmbedder(), uri=settings.milvus_address)
        with memory, Conversations(context=context, memory=memory, settings=settings) as talks:
            assert talks.conversation("s").ask(CHAIN.question).answer == "40 mm"
    [trace] = collector.traces()
    is_recorded = record == "full"
    assert ("gen_ai.output.messages" in attributes(trace[0])) == is_recorded
    assert [text in repr(trace) for text in (CHAIN.question, "40 mm", "Norm A names")] == [is_recorded] * 3


def test_a_failed_turn_and_the_call_that_resumes_it_are_one_trace(
    collector: Collector, traced: Callable[..., Conversations], llm: TalkingLLM
) -> None:
    with traced() as talks:
        talk = talks.conversation("s")
        llm.broken["read"] = DOWN
        assert talk.ask(CLASS).status == "failed"
        llm.broken.clear()
        assert talk.ask(CLASS).answer == "Delta"
        llm.broken["read"] = ModelSetupError("the key is refused")
        with pytest.raises(ModelSetupError):
            talk.ask(OIL)
    failed, resumed, refused = collector.traces()
    assert [status_of(trace) for trace in (failed, resumed, refused)] == [
        ("failed", "the model is down"),
        ("answered", ""),
        ("failed", "the key is refused"),
    ]
    assert [attributes(trace[0])["judgetree.resumed"] for trace in (failed, resumed)] == [False, True]
    assert (failed[0].trace_id, failed[0].span_id) == (resumed[0].trace_id, resumed[0].span_id)
    assert (TURN, SEARCH) in parents(failed)


def test_a_cancelled_turn_is_sent_with_its_search_so_far(
    collector: Collector, traced: Callable[..., Conversations]
) -> None:
    retriever = HangingRetriever()

    async def left() -> None:
        asking = asyncio.create_task(talks.conversation("s").aask(CLASS))
        await asyncio.to_thread(retriever.reached.wait, 60)
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking

    with traced(retriever) as talks:
        asyncio.run(left())
    [trace] = collector.traces()
    assert status_of(trace) == ("cancelled", "The question was cancelled.")
    assert parents(trace) == {("", TURN): 1, (TURN, SEARCH): 1}
    assert trace[0].end_time_unix_nano - trace[0].start_time_unix_nano < 120e9


def test_a_stopped_turn_says_so(collector: Collector, traced: Callable[..., Conversations]) -> None:
    retriever = HangingRetriever()
    with traced(retriever) as talks, ThreadPoolExecutor() as pool:
        running = pool.submit(talks.conversation("s").ask, CLASS)
        assert retriever.reached.wait(60)
        talks.conversation("s").stop()
        assert saved(running.result(60))["status"] == "refused"
    [trace] = collector.traces()
    assert attributes(trace[0])["judgetree.spent_limits"] == ["stopped"]


def test_a_collector_that_refuses_costs_a_warning_and_no_turn(
    collector: Collector, traced: Callable[..., Conversations], caplog: pytest.LogCaptureFixture
) -> None:
    collector.status = 400
    with traced() as talks:
        result = talks.conversation("s").ask(CLASS)
    assert result.answer == "Delta"
    assert f"The trace of the turn {result.turn_id} was not sent" in caplog.text


def test_a_turn_that_was_saved_before_is_not_sent_again(
    collector: Collector, traced: Callable[..., Conversations]
) -> None:
    with traced() as talks:
        talk = talks.conversation("s")
        assert talk.ask(CLASS, request_id="r").turn_id == talk.ask(CLASS, request_id="r").turn_id
    assert len(collector.requests) == 1


def test_without_telemetry_nothing_is_sent(
    collector: Collector, traced: Callable[..., Conversations], tmp_path: Path
) -> None:
    with traced(telemetry="none") as talks:
        talks.conversation("s").ask(CLASS)
    assert collector.requests == []
