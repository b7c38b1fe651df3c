"""Answer strategies in real graphs: every run reads so, sub-runs included, and goes on or comes back as any other."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest

from judgetree.graphs.config.limits import Limits
from judgetree.graphs.rag.graph import RagGraph
from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.systems.judge_rag import build_judge_rag
from judgetree.graphs.systems.naive_rag import build_naive_rag
from judgetree.graphs.threads.context import RagContext
from judgetree.graphs.threads.fingerprint import fingerprint_of
from judgetree.modules.calls.messages import Message
from judgetree.modules.config.reading import AnswerStrategy
from judgetree.modules.errors import ModelCallError, ThreadMismatch
from judgetree.modules.judge.oracle import OracleJudge
from judgetree.modules.reader.evidence import render_sub_answer
from judgetree.modules.reader.prompts import (
    COMBINE_SYSTEM,
    FINISH_SYSTEM,
    NOTE_SYSTEM,
    READER_SYSTEM,
    REFUSAL,
    SCORED_SYSTEM,
    STRATEGY_VERSIONS,
    scored_messages,
)
from tests.graphs.fakes import FakeLLM, TableRetriever, chunk, thread
from tests.graphs.two_steps import GOLD, ROOT, SUB

TABLE = {
    ROOT: [chunk("a", "KS-1 is class Delta."), chunk("b", "As said, KS-1 is class Delta.")],
    SUB: [chunk("c", "Delta needs Vellin."), chunk("d", "As said, Delta needs Vellin.")],
}
NOT_STUFF: tuple[AnswerStrategy, ...] = ("map_reduce", "refine", "map_rerank")


def good_reader(messages: Sequence[Message]) -> str:
    """Knows the oil as soon as it stands in what it is given; else it tells nothing but, in notes, the class."""
    (_, system), (_, user) = messages
    if "Vellin" in user:
        return {NOTE_SYSTEM: "Answer: Vellin", SCORED_SYSTEM: "Answer: Vellin\nConfidence: 80"}.get(system, "Vellin")
    return "Fact: KS-1 is class Delta." if system == NOTE_SYSTEM else REFUSAL


def context_of(reader: FakeLLM, strategy: AnswerStrategy, *, calls: int = 60) -> RagContext:
    return RagContext(
        reader=reader,
        retriever=TableRetriever(TABLE),
        judge=OracleJudge(GOLD),
        limits=Limits(max_llm_calls=calls),
        strategy=strategy,
    )


def naive_of(reader: FakeLLM, strategy: AnswerStrategy, *, calls: int = 60) -> RagGraph:
    return build_naive_rag(context=context_of(reader, strategy, calls=calls))


@pytest.mark.parametrize(("strategy", "calls"), [("stuff", 1), ("map_reduce", 3), ("refine", 2), ("map_rerank", 2)])
def test_root_and_sub_runs_are_read_by_the_strategy(strategy: AnswerStrategy, calls: int, tmp_path: Path) -> None:
    reader = FakeLLM(good_reader)
    store = f"sqlite:///{tmp_path / 'checkpoints.sqlite'}"
    with build_judge_rag(checkpointer=store, context=context_of(reader, strategy)) as graph:
        final = graph.invoke(ROOT, thread("t"))
        tree = SearchTree.from_history(graph, "t")
    assert final["answer"] == "Vellin"
    assert [node.answer for node in tree.query_nodes()] == ["Vellin"] * 3
    assert [node.cost["llm_calls"] for node in tree.query_nodes()] == [calls] * 3
    assert len(reader.calls) == 3 * calls
    assert not tree.budget_spent
    with build_judge_rag(checkpointer=store, context=context_of(FakeLLM(good_reader), strategy)) as reopened:
        assert reopened.invoke(None, thread("t")) == final, "a finished thread comes back without a call"


def test_every_passage_is_read_with_its_own_sub_answer() -> None:
    reader = FakeLLM(good_reader)
    build_judge_rag(context=context_of(reader, "map_rerank")).invoke(ROOT)
    pair = render_sub_answer(SUB, "Vellin")
    passages = [f"a.md\nKS-1 is class Delta.\n{pair}", f"b.md\nAs said, KS-1 is class Delta.\n{pair}"]
    assert reader.calls[-2:] == [scored_messages(ROOT, passage) for passage in passages]


@pytest.mark.parametrize(("strategy", "last"), [("map_reduce", COMBINE_SYSTEM), ("refine", FINISH_SYSTEM)])
def test_a_run_whose_last_call_failed_is_resumed(strategy: AnswerStrategy, last: str, tmp_path: Path) -> None:
    broken = True

    def reply(messages: Sequence[Message]) -> str:
        if broken and messages[0][1] == last:
            raise ModelCallError("the endpoint is down")
        return "Fact: A." if messages[0][1] != last else "Vellin"

    store = f"sqlite:///{tmp_path / 'checkpoints.sqlite'}"
    with build_naive_rag(checkpointer=store, context=context_of(FakeLLM(reply), strategy)) as graph:
        with pytest.raises(ModelCallError, match="is down"):
            graph.invoke(ROOT, thread("t"))
        broken = False
    with build_naive_rag(checkpointer=store, context=context_of(FakeLLM(reply), strategy)) as graph:
        assert graph.invoke(None, thread("t"))["answer"] == "Vellin"


@pytest.mark.parametrize("strategy", NOT_STUFF)
def test_a_thread_is_not_gone_on_with_by_another_strategy(strategy: AnswerStrategy) -> None:
    reader = FakeLLM(good_reader)
    graph = naive_of(reader, strategy)
    graph.invoke(ROOT, thread("t"))
    with pytest.raises(ThreadMismatch, match=rf"strategy: {strategy} then, none now.*--strategy {strategy}"):
        graph.invoke(ROOT, thread("t"), context=context_of(reader, "stuff"))


def test_stuff_leaves_fingerprints_as_they_were() -> None:
    services = context_of(FakeLLM(good_reader), "stuff")
    plain = fingerprint_of(query="q", system="naive", services=services)
    assert not [name for name in plain if "strategy" in name]
    for strategy in NOT_STUFF:
        found = fingerprint_of(query="q", system="naive", services=replace(services, strategy=strategy))
        added = {"reader.strategy": strategy, "reader.strategy_prompt": STRATEGY_VERSIONS[strategy]}
        assert found == {**plain, **added}
    closed = RagContext(reader=services.reader)
    assert fingerprint_of(query="q", system="llm", services=replace(closed, strategy="refine")) == fingerprint_of(
        query="q", system="llm", services=closed
    )


@pytest.mark.parametrize("strategy", NOT_STUFF)
@pytest.mark.parametrize("calls", [1, 2, 3, 4, 5])
def test_a_small_budget_gives_an_answer_and_is_told(strategy: AnswerStrategy, calls: int) -> None:
    reader = FakeLLM(lambda messages: "Vellin")
    graph = naive_of(reader, strategy, calls=calls)
    final = graph.invoke(ROOT, thread("t"))
    enough = 3 if strategy == "map_reduce" else 2
    assert (final["answer"], len(reader.calls)) == ("Vellin", min(calls, enough))
    assert SearchTree.from_history(graph, "t").budget_spent == (calls < enough)


@pytest.mark.parametrize("calls", range(1, 12))
def test_sub_runs_that_spend_the_budget_leave_the_root_its_answer(calls: int) -> None:
    reader = FakeLLM(good_reader)
    with build_judge_rag(context=context_of(reader, "map_reduce", calls=calls)) as graph:
        final = graph.invoke(ROOT, thread("t"))
        tree = SearchTree.from_history(graph, "t")
    assert final["status"] == ("answered" if calls > 1 else "refused")
    assert len(reader.calls) <= calls
    assert [node.status for node in tree.query_nodes()] == ["finished"] * min(calls, 3)
    assert tree.budget_spent == (calls < 9)


def test_only_the_root_streams_and_only_the_call_that_answers() -> None:
    with build_judge_rag(context=context_of(FakeLLM(good_reader), "refine")) as graph:
        events = list(graph.stream(ROOT, thread("t"), stream_mode="custom"))
    grown = [event["text"] for event in events if event["event"] == "answer_growing"]
    assert grown == list("Vellin")


def test_nothing_found_is_read_as_ever() -> None:
    reader = FakeLLM(good_reader)
    final = naive_of(reader, "map_reduce").invoke("Who?")
    assert (final["answer"], [call[0][1] for call in reader.calls]) == (REFUSAL, [READER_SYSTEM])
