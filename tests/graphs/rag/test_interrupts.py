"""Interrupts of own nodes and judges reach the caller of the root, and an answer there reaches the node that asked."""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from langchain_core.documents import Document
from langgraph.graph import END, START, StateGraph
from langgraph.runtime import Runtime
from langgraph.types import Command, interrupt

from judgetree.app.scripted.server import ScriptedServer
from judgetree.graphs.rag.graph import RagGraph
from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.session import RagSession
from judgetree.graphs.systems import nodes
from judgetree.graphs.systems.judge_rag import build_judge_rag
from judgetree.graphs.threads.context import RagContext, RunContext
from judgetree.graphs.threads.state import RagState
from judgetree.modules.calls.messages import Message
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.errors import SettingsError, UnknownThread
from judgetree.modules.judge.contract import Verdict
from judgetree.modules.judge.oracle import OracleJudge
from judgetree.modules.llm.endpoint import EndpointLLM
from judgetree.modules.settings import load_settings
from tests.graphs import bushy
from tests.graphs.fakes import FakeLLM, TableRetriever, chunk, thread
from tests.graphs.two_steps import GOLD, ROOT, SUB, TABLE
from tests.modules.model_endpoints import as_new, llm_at

TWO_AND_ONE = {ROOT: [*TABLE[ROOT], chunk("n", "noise")], SUB: [*TABLE[SUB], chunk("m", "more noise")]}
"""Two chunks for the question, of which the first asks the sub-question."""


class AskingJudge(OracleJudge):
    """The oracle, which asks a person about some chunks before it judges them."""

    def __init__(self, *asks_about: str, llm: EndpointLLM | None = None) -> None:
        super().__init__(GOLD)
        self.asks_about = asks_about
        self.llm = llm
        self.judged: list[str] = []

    async def judge(self, query: str, chunk: Document, *, meter: CallMeter, expand: bool = True) -> Verdict:
        chunk_id = chunk.metadata["chunk_id"]
        if self.llm:
            await self.llm.complete([("user", f"What of {chunk_id}?")], meter=meter)
        if chunk_id in self.asks_about and interrupt(f"Judge {chunk_id}?") != "yes":
            return Verdict(status="judged", score=0)
        self.judged.append(chunk_id)
        return await super().judge(query, chunk, meter=meter, expand=expand)


def context_with(judge: AskingJudge, reader: Any = None) -> RagContext:
    reader = reader or FakeLLM(lambda messages: "Vellin")
    return RagContext(reader=reader, retriever=TableRetriever(TWO_AND_ONE), judge=judge)


def asked(state: RagState) -> list[str]:
    return [each.value for each in state.get("__interrupt__", ())]  # type: ignore[attr-defined]


@pytest.mark.parametrize("durability", ["sync", "async", "exit"])
@pytest.mark.parametrize("store", ["memory", "sqlite"])
def test_a_sub_runs_interrupt_is_answered_at_the_root(tmp_path: Path, store: str, durability: Any) -> None:
    url = "memory:" if store == "memory" else f"sqlite:///{tmp_path / 'c.sqlite'}"
    judge = AskingJudge("b")
    with build_judge_rag(checkpointer=url, context=context_with(judge), durability=durability) as graph:
        assert asked(graph.invoke(ROOT, thread("t"))) == ["Judge b?"]
        tree = SearchTree.from_history(graph, "t")
        assert [node.status for node in tree.query_nodes()] == ["open", "open"]
        assert asked(graph.invoke(None, thread("t"))) == ["Judge b?"], "without an answer it asks again"
        final = graph.invoke(Command(resume="yes"), thread("t"))
        assert (final["answer"], asked(final)) == ("Vellin", [])
        assert sorted(judge.judged) == ["a", "b", "m", "n"], "the verdicts of siblings are kept"
        assert graph.invoke(Command(resume="yes"), thread("t")) == final, "a finished thread is returned"
        found = [node.chunks[0].verdict_label for node in SearchTree.from_history(graph, "t").query_nodes()]
        assert found == ["1", "2"]


def test_several_interrupts_are_answered_by_their_ids_one_after_the_other() -> None:
    judge = AskingJudge("a", "n", "b", "m")
    graph = build_judge_rag(context=context_with(judge))
    state = graph.invoke(ROOT, thread("t"))
    ids = {each.value: each.id for each in state["__interrupt__"]}  # type: ignore[typeddict-item]
    assert sorted(ids) == ["Judge a?", "Judge n?"]
    with pytest.raises(SettingsError, match=r"waits for 2 answers.*Judge"):
        graph.invoke(Command(resume="yes"), thread("t"))
    assert asked(graph.invoke(Command(resume={ids["Judge n?"]: "no"}), thread("t"))) == ["Judge a?"]
    state = graph.invoke(Command(resume={ids["Judge a?"]: "yes"}), thread("t"))
    assert sorted(asked(state)) == ["Judge b?", "Judge m?"], "both of the sub-run"
    ids = {each.value: each.id for each in state["__interrupt__"]}  # type: ignore[typeddict-item]
    assert asked(graph.invoke(Command(resume={ids["Judge b?"]: "yes"}), thread("t"))) == ["Judge m?"]
    assert graph.invoke(Command(resume="no"), thread("t"))["answer"] == "Vellin"
    assert sorted(judge.judged) == ["a", "b"]


@pytest.mark.parametrize("store", ["memory", "sqlite"])
@pytest.mark.parametrize("streamed", [False, True])
def test_an_answer_pays_no_call_twice(tmp_path: Path, store: str, streamed: bool) -> None:
    """The judge's call comes before its interrupt, so that its node is run twice."""
    url = "memory:" if store == "memory" else f"sqlite:///{tmp_path / 'c.sqlite'}"
    with ScriptedServer() as server:
        llm = llm_at(as_new(server).base_url)
        context = context_with(AskingJudge("b", llm=llm), llm)
        graph = build_judge_rag(checkpointer=url, context=context)

        def run(given: Any) -> None:
            if streamed:
                list(graph.stream(given, thread("t"), stream_mode="custom"))
            else:
                graph.invoke(given, thread("t"))

        run(ROOT)
        assert server.requests.total() == 4, "one for each chunk, and no answer yet"
        run(Command(resume="yes"))
        tree = SearchTree.from_history(graph, "t")
        assert (tree.root.status, tree.usage["llm_calls"], server.requests.total()) == ("finished", 6, 6)
        graph.close()


class FirstAsked(bushy.BushyJudge):
    """The judge of the bushy world, which asks a person about the first chunk of each sub-question."""

    async def judge(self, query: str, chunk: Document, *, meter: CallMeter, expand: bool = True) -> Verdict:
        if query != bushy.ROOT and chunk.metadata["rank"] == 0:
            interrupt(chunk.metadata["chunk_id"])
        return await super().judge(query, chunk, meter=meter, expand=expand)


@pytest.mark.parametrize("policy", ["breadth", "best_first", "mcts"])
@pytest.mark.parametrize("limit", [24, 30])
def test_sub_runs_that_wait_for_a_person_keep_their_calls_and_their_place(policy: str, limit: int) -> None:
    """Further rounds were granted their calls: the tree exceeded its limit, or ended without a call for its answer."""
    context = bushy.bushy_context(policy, seed=3, suffices=0.0, max_rec_depth=2, max_llm_calls=limit)
    trees = []
    for judge in (context.judge, FirstAsked(3, bushy.Timing(0), suffices=0.0)):
        graph = build_judge_rag(context=replace(context, judge=judge))
        state = graph.invoke(bushy.ROOT, thread("t"))
        while waiting := state.get("__interrupt__"):
            state = graph.invoke(Command(resume={each.id: "go on" for each in waiting}), thread("t"))  # type: ignore[attr-defined]
        trees.append(SearchTree.from_history(graph, "t"))
    assert bushy.outline(trees[1]) == bushy.outline(trees[0])
    assert trees[1].usage["llm_calls"] == trees[0].usage["llm_calls"] <= limit


async def confirm(state: RagState, runtime: Runtime[RunContext]) -> dict[str, object]:
    """Ask twice, in one node."""
    first = interrupt({"evidence": state["evidence"]})
    return {"evidence": f"{first} {interrupt('Sure?')}"}


def build_confirmed(**options: Any) -> RagGraph:
    builder = StateGraph(RagState, context_schema=RunContext)
    for node in (nodes.retrieve, nodes.augment, confirm, nodes.generate):
        builder.add_node(node.__name__, node)
    for edge in ((START, "retrieve"), ("retrieve", "augment"), ("augment", "confirm"), ("confirm", "generate")):
        builder.add_edge(*edge)
    builder.add_edge("generate", END)
    return RagGraph(builder, system="confirmed", **options)


def test_an_own_node_asks_twice_and_streams_its_interrupt() -> None:
    reader = FakeLLM(lambda messages: messages[1][1])
    graph = build_confirmed(context=context_with(AskingJudge(), reader))
    updates = list(graph.stream(ROOT, thread("t"), stream_mode="updates"))
    [waiting] = updates[-1]["__interrupt__"]
    assert "KS-1 is class Delta." in waiting.value["evidence"]
    assert asked(graph.invoke(Command(resume={"my": "mapping"}), thread("t"))) == ["Sure?"]
    assert graph.invoke(Command(resume="yes"), thread("t"))["evidence"] == "{'my': 'mapping'} yes"


def test_what_is_no_answer_is_refused() -> None:
    graph = build_confirmed(context=context_with(AskingJudge()))
    with pytest.raises(UnknownThread):
        graph.invoke(Command(resume="yes"), thread("t"))
    graph.invoke(ROOT, thread("t"))
    for command in (Command(), Command(update={"answer": "x"}, resume=1), Command(goto="generate")):
        with pytest.raises(SettingsError, match="does not only resume"):
            graph.invoke(command, thread("t"))


def test_a_thread_that_failed_waits_for_no_answer() -> None:
    def reply(messages: Sequence[Message]) -> str:
        raise ValueError("broken")

    graph = build_confirmed(context=context_with(AskingJudge(), FakeLLM(reply)))
    graph.invoke(ROOT, thread("t"))
    graph.invoke(Command(resume=1), thread("t"))
    with pytest.raises(ValueError, match="broken"):
        graph.invoke(Command(resume=2), thread("t"))
    with pytest.raises(SettingsError, match="waits for no answer"):
        graph.invoke(Command(resume=2), thread("t"))


@pytest.mark.parametrize("watched", [False, True])
def test_a_session_says_what_a_question_waits_for_and_takes_the_answer(tmp_path: Path, watched: bool) -> None:
    listener: Any = (lambda event: None) if watched else None
    settings = load_settings(checkpoints="memory:", home=tmp_path)
    with RagSession(context=context_with(AskingJudge("b")), settings=settings) as session:
        result = session.ask(ROOT, thread_id="t", on_event=listener)
        assert (result.answer, result.status, result.tree.root.status) == ("", "interrupted", "open")
        assert "'Judge b?'" in result.error
        document = json.loads(json.dumps(result.to_document()))
        assert [each["value"] for each in document["interrupts"]] == ["Judge b?"]
        result = session.ask(Command(resume="yes"), thread_id="t", on_event=listener)
        assert (result.answer, result.status, result.interrupts) == ("Vellin", "answered", ())
        with pytest.raises(UnknownThread):
            session.ask(Command(resume="yes"))


def test_a_question_that_waits_says_what_it_has_paid(tmp_path: Path) -> None:
    settings = load_settings(checkpoints=f"sqlite:///{tmp_path / 'c.sqlite'}", home=tmp_path)
    with ScriptedServer() as server:
        llm = llm_at(as_new(server).base_url)
        with RagSession(context=context_with(AskingJudge("a", llm=llm), llm), settings=settings) as session:
            waiting = session.ask(ROOT, thread_id="t")
            paid = server.requests.total()
            assert (waiting.usage["llm_calls"], waiting.usage_this_run["llm_calls"]) == (paid, paid)
            done = session.ask(Command(resume="yes"), thread_id="t")
            assert done.usage["llm_calls"] == server.requests.total() == paid + done.usage_this_run["llm_calls"]


# --- update_state ---


def test_an_updated_state_is_what_the_next_run_goes_on_from() -> None:
    reader = FakeLLM(lambda messages: messages[1][1])
    graph = build_confirmed(context=context_with(AskingJudge(), reader))
    graph.invoke(ROOT, thread("t"))
    graph.update_state(thread("t"), {"evidence": "Vellin it is."}, as_node="confirm")
    assert graph.get_state(thread("t")).next == ("generate",)
    assert "Vellin it is." in graph.invoke(None, thread("t"))["answer"]


def test_a_route_of_an_updated_state_has_the_services_of_its_graph() -> None:
    judge = AskingJudge()
    graph = build_judge_rag(context=context_with(judge))
    first = graph.invoke(ROOT, thread("t"))
    config = graph.update_state(thread("t"), {"similar_chunks": first["similar_chunks"][:1]}, as_node="retrieve")
    assert config["configurable"].keys() == {"thread_id", "checkpoint_ns", "checkpoint_id"}
    assert graph.get_state(thread("t")).next == ("judge", "judge")
    calls = len(judge.judged)
    assert graph.invoke(None, thread("t"))["answer"] == "Vellin"
    assert len(judge.judged) == calls + 2, "the sub-run is finished and judges nothing again"
    with pytest.raises(SettingsError, match="No services"):
        bare = build_judge_rag()
        bare.invoke(ROOT, thread("t"), context=context_with(judge))
        bare.update_state(thread("t"), {}, as_node="retrieve")
