"""The registry of systems, and what holds for all that search in rounds: depth, budget, resume, garbage."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgetree.graphs.config.limits import Limits
from judgetree.graphs.rag.graph import RagGraph
from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.systems.registry import SYSTEMS
from judgetree.graphs.threads.context import RagContext
from judgetree.graphs.threads.state import Step, merge_steps
from judgetree.modules.calls.messages import Message
from judgetree.modules.errors import ModelCallError
from judgetree.modules.reader.multistep_prompts import (
    DRAFT_SYSTEM,
    FINAL_ANSWER,
    FINAL_THOUGHT,
    FINISH,
    FOLLOW_UP,
    FOLLOW_UP_SYSTEM,
    REACT_SYSTEM,
    SEARCH,
    THOUGHT_SYSTEM,
)
from judgetree.modules.reader.prompts import READER_SYSTEM, REFUSAL
from judgetree.modules.reader.step_prompts import STEP_VERSIONS
from judgetree.modules.reader.tagged_prompts import SEARCH_R1_SYSTEM
from tests.graphs.fakes import FakeLLM, TableRetriever, chunk, thread
from tests.graphs.two_steps import ROOT, SUB

IN_ROUNDS: tuple[str, ...] = ("ircot", "iter_retgen", "self_ask", "react", "search_r1")
CLASS, OIL, NOISE = chunk("a", "KS-1 is class Delta."), chunk("b", "Delta needs Vellin."), chunk("n", "noise")
TABLE = {ROOT: [CLASS, NOISE], SUB: [OIL, CLASS], f"{ROOT} {SUB}": [OIL, CLASS]}

Reply = Callable[[Sequence[Message]], str]


@pytest.mark.parametrize("system", tuple(SYSTEMS))
def test_nodes_and_routes_stay_on_the_loop(system: str) -> None:
    """LangGraph runs plain functions in a thread, where they wait behind searches."""
    with SYSTEMS[system].build() as graph:
        nodes = {name: node.runnable for name, node in graph._stored.builder.nodes.items()}
        routes = {
            name: branch.path for routes in graph._stored.builder.branches.values() for name, branch in routes.items()
        }
    assert [name for name, work in (nodes | routes).items() if getattr(work, "func", None) is not None] == []


def asking(messages: Sequence[Message], question: str) -> str:
    """The question as the system of this prompt wants it written."""
    forms = {
        FOLLOW_UP_SYSTEM: f"{FOLLOW_UP} {question}",
        REACT_SYSTEM: f"{SEARCH}[{question}]",
        SEARCH_R1_SYSTEM: f"<think>More.</think> <search>{question}</search>",
    }
    return forms.get(messages[0][1], question)


def good_model(messages: Sequence[Message]) -> str:
    """Asks on once, and knows the oil as soon as it stands in what it is given."""
    (_, system), (_, user) = messages
    knows = "Vellin" in user
    if system == READER_SYSTEM:
        return "Vellin" if knows else REFUSAL
    if system == THOUGHT_SYSTEM:
        return f"{FINAL_THOUGHT} Vellin" if knows else SUB
    if system == FOLLOW_UP_SYSTEM:
        return f"{FINAL_ANSWER} Vellin" if knows else asking(messages, SUB)
    if system == REACT_SYSTEM:
        return f"{FINISH}[Vellin]" if knows else asking(messages, SUB)
    if system == SEARCH_R1_SYSTEM:
        return "<answer>Vellin</answer>" if knows else asking(messages, SUB)
    assert system == DRAFT_SYSTEM
    return SUB


def endless_model() -> Reply:
    """Always has another thing to ask."""
    numbers = itertools.count(1)

    def reply(messages: Sequence[Message]) -> str:
        return asking(messages, f"Which oil does class {next(numbers)} need?")

    return reply


def context_of(reader: FakeLLM, *, depth: int = 3, calls: int = 60) -> RagContext:
    limits = Limits(max_rec_depth=depth, max_llm_calls=calls)
    return RagContext(reader=reader, retriever=TableRetriever(TABLE), limits=limits)


def graph_of(system: str, reply: Reply = good_model, *, depth: int = 3, calls: int = 60) -> RagGraph:
    return SYSTEMS[system].build(context=context_of(FakeLLM(reply), depth=depth, calls=calls))


# --- the registry ---


def test_every_mode_is_a_system_and_builds_the_graph_of_its_name() -> None:
    assert [system.build().system for system in SYSTEMS.values()] == list(SYSTEMS)


def test_only_the_closed_book_has_no_retrieval_and_two_judge() -> None:
    assert [name for name, system in SYSTEMS.items() if not system.retrieves] == ["llm"]
    assert [name for name, system in SYSTEMS.items() if system.judges] == ["crag", "judge"]
    assert [name for name, system in SYSTEMS.items() if system.asks_sub_questions] == ["judge"]


def test_systems_with_prompts_of_their_own_name_their_versions() -> None:
    assert set(STEP_VERSIONS) == {*IN_ROUNDS, "crag"}


# --- the steps ---


def step_of(number: int, text: str) -> Step:
    return Step(round=number, query="q", chunk_ids=[], text=text, next_query="", tool="", next_tool="")


step_lists = st.lists(st.builds(step_of, st.integers(0, 3), st.text(max_size=3)))


@given(step_lists, step_lists)
def test_steps_are_one_a_round_in_order_and_the_later_version_holds(steps: list[Step], new: list[Step]) -> None:
    merged = merge_steps(steps, new)
    assert [step["round"] for step in merged] == sorted({step["round"] for step in (*steps, *new)})
    assert merge_steps(merged, []) == merged == merge_steps(merged, new)
    assert all(step in merged for step in {step["round"]: step for step in new}.values())


# --- all that search in rounds ---


@pytest.mark.parametrize("system", IN_ROUNDS)
def test_a_two_step_question_is_answered_with_origins(system: str) -> None:
    graph = graph_of(system, depth=1)
    final = graph.invoke(ROOT, thread("t"))
    assert (final["answer"], final["status"]) == ("Vellin", "answered")
    assert [found.metadata["chunk_id"] for found in final["similar_chunks"]] == ["a", "n", "b"]
    assert [found.metadata["rank"] for found in final["similar_chunks"]] == [0, 1, 2]
    assert [found.metadata["recursion_depth"] for found in final["similar_chunks"]] == [0, 0, 1]
    second = final["steps"][1]["query"]
    assert [found.metadata["found_by"] for found in final["similar_chunks"]] == [ROOT, ROOT, second]
    assert [step["chunk_ids"] for step in final["steps"]] == [["a", "n"], ["b", "a"]]
    tree = SearchTree.from_history(graph, "t")
    assert [node.chunk_id for node in tree.chunk_nodes()] == ["a", "n", "b"]
    assert tree.root.evidence == final["evidence"]
    assert SearchTree.from_json(tree.to_json()) == tree


@pytest.mark.parametrize("system", IN_ROUNDS)
def test_the_version_of_its_prompt_stands_in_the_fingerprint(system: str) -> None:
    fingerprint = graph_of(system).invoke(ROOT)["fingerprint"]
    assert fingerprint[f"{system}.prompt"] == STEP_VERSIONS[system]
    assert f"{system}.prompt" not in graph_of("naive").invoke(ROOT)["fingerprint"]


class FailsOnce:
    """A model whose call of one number fails the first time."""

    def __init__(self, failing: int) -> None:
        self.failing = failing
        self.answered: list[str] = []

    def __call__(self, messages: Sequence[Message]) -> str:
        if len(self.answered) == self.failing:
            self.failing = -1
            raise ModelCallError("endpoint down")
        self.answered.append("\n".join(text for _, text in messages))
        return good_model(messages)


@pytest.mark.parametrize("failing", range(4))
@pytest.mark.parametrize("system", IN_ROUNDS)
def test_a_run_that_fails_midway_pays_nothing_twice(system: str, failing: int, tmp_path: Path) -> None:
    unbroken = FailsOnce(-1)
    whole = graph_of(system, unbroken).invoke(ROOT)
    model, retriever = FailsOnce(min(failing, len(unbroken.answered) - 1)), TableRetriever(TABLE)
    context = RagContext(reader=FakeLLM(model), retriever=retriever)
    url = f"sqlite:///{tmp_path / 'c.sqlite'}"
    with SYSTEMS[system].build(checkpointer=url, context=context) as graph:
        with pytest.raises(ModelCallError, match="endpoint down"):
            graph.invoke(ROOT, thread("t"))
        assert SearchTree.from_history(graph, "t").root.status == "failed"
    with SYSTEMS[system].build(checkpointer=url, context=context) as graph:
        resumed = graph.invoke(None, thread("t"))
    assert model.answered == unbroken.answered
    assert retriever.queries == [step["query"] for step in whole["steps"]]
    assert (resumed["answer"], resumed["steps"], resumed["similar_chunks"]) == (
        whole["answer"],
        whole["steps"],
        whole["similar_chunks"],
    )


@pytest.mark.parametrize("depth", range(4))
@pytest.mark.parametrize(
    ("system", "calls_a_round"), [("ircot", 1), ("iter_retgen", 1), ("self_ask", 2), ("react", 1), ("search_r1", 1)]
)
def test_depth_counts_the_rounds_after_the_first(system: str, calls_a_round: int, depth: int) -> None:
    reader = FakeLLM(endless_model())
    final = SYSTEMS[system].build(context=context_of(reader, depth=depth)).invoke(ROOT)
    assert [step["round"] for step in final["steps"]] == list(range(depth + 1))
    assert len(reader.calls) == depth * calls_a_round + 1, "no call is paid whose query could not be searched for"
    assert final["status"] == "answered"


@pytest.mark.parametrize("calls", range(1, 5))
@pytest.mark.parametrize("system", IN_ROUNDS)
def test_a_spent_budget_is_held_and_told_and_the_question_is_answered(system: str, calls: int) -> None:
    reader = FakeLLM(endless_model())
    graph = SYSTEMS[system].build(context=context_of(reader, depth=9, calls=calls))
    final = graph.invoke(ROOT, thread("t"))
    tree = SearchTree.from_history(graph, "t")
    assert len(reader.calls) == tree.usage["llm_calls"] == calls
    assert reader.calls[-1][0] == ("system", READER_SYSTEM)
    assert final["status"] == "answered"
    assert tree.budget_spent


@pytest.mark.parametrize("system", IN_ROUNDS)
def test_without_depth_a_system_is_naive(system: str) -> None:
    naive, final = graph_of("naive").invoke(ROOT), graph_of(system, depth=0).invoke(ROOT)
    assert (final["answer"], final["evidence"]) == (naive["answer"], naive["evidence"])


@pytest.mark.parametrize("system", IN_ROUNDS)
def test_what_was_searched_for_before_is_not_searched_for_again(system: str) -> None:
    def reply(messages: Sequence[Message]) -> str:
        return REFUSAL if messages[0][1] == READER_SYSTEM else asking(messages, SUB.upper())

    final = graph_of(system, reply).invoke(ROOT)
    assert len(final["steps"]) == 2
    assert final["status"] == "refused"


@pytest.mark.parametrize("system", IN_ROUNDS)
@given(garbage=st.text(max_size=80))
@settings(max_examples=15, deadline=None)
def test_garbage_ends_the_rounds_and_not_the_run(system: str, garbage: str) -> None:
    final = graph_of(system, lambda messages: garbage, depth=2).invoke(ROOT)
    assert final["status"] in {"answered", "refused"}
    assert len(final["steps"]) <= 3


@pytest.mark.parametrize("system", IN_ROUNDS)
def test_a_question_that_finds_nothing_is_answered_too(system: str) -> None:
    context = RagContext(reader=FakeLLM(good_model), retriever=TableRetriever({}), limits=Limits(max_llm_calls=2))
    final = SYSTEMS[system].build(context=context).invoke(ROOT)
    assert (final["status"], final["similar_chunks"], final["evidence"]) == ("refused", [], "")


@pytest.mark.parametrize("system", IN_ROUNDS)
def test_rounds_are_live_events(system: str) -> None:
    events = list(graph_of(system, depth=1).stream(ROOT, stream_mode="custom"))
    shown = [event["chunk_ids"] for event in events if event["event"] == "chunks"]
    assert shown == [["a", "n"], ["a", "n", "b"]]
    assert {event["query"] for event in events if event["event"] == "chunks"} == {ROOT}
    assert next(event["next_query"] for event in events if event["event"] == "step")
