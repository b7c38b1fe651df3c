"""ReAct: a thought and a search a round, each observation shown; the reader sees the passages of all rounds."""

from __future__ import annotations

from dataclasses import replace

import pytest
from langchain_core.tools import tool
from langgraph.types import Command, interrupt

from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.systems.react import build_react
from judgetree.graphs.threads.state import RagState
from judgetree.modules.errors import ThreadMismatch
from judgetree.modules.reader.multistep_prompts import (
    FINISH,
    REACT_SYSTEM,
    REACT_TOOLS_SYSTEM,
    SEARCH,
    Observed,
    react_messages,
)
from judgetree.modules.reader.prompts import reader_messages
from judgetree.modules.settings import Settings
from judgetree.modules.tools.factory import create_tools
from tests.graphs.fakes import FakeLLM, thread
from tests.graphs.systems.test_rounds import context_of
from tests.graphs.two_steps import ROOT, SUB

FOUND = "[1] a.md\nKS-1 is class Delta.\n\n[2] n.md\nnoise"
FOUND_NEXT = "[1] b.md\nDelta needs Vellin.\n\n[2] a.md\nKS-1 is class Delta."
ELSEWHERE = "oils of class Gamma"
CALCULATES = "computes an arithmetic expression such as (212 - 32) * 5 / 9"


def run(*replies: str, depth: int = 3, calls: int = 60) -> tuple[RagState, FakeLLM]:
    """An agent that says ``replies``, in order, and a reader that says "Vellin"."""
    said = iter(replies)
    agent = FakeLLM(lambda messages: next(said) if messages[0][1] == REACT_SYSTEM else "Vellin")
    return build_react(context=context_of(agent, depth=depth, calls=calls)).invoke(ROOT), agent


def test_each_search_is_a_round_until_it_finishes() -> None:
    final, agent = run(f"Thought: one\n{SEARCH}[{ELSEWHERE}]", f"Thought: two\n{SEARCH}[{SUB}]", f"{FINISH}[Vellin]")
    assert [step["query"] for step in final["steps"]] == [ROOT, ELSEWHERE, SUB]
    assert [step["text"] for step in final["steps"]] == ["one", "two", f"{FINISH}[Vellin]"]
    assert len(agent.calls) == 4


def test_the_agent_sees_each_search_with_its_thought_and_all_that_it_found() -> None:
    _, agent = run(f"Thought: one\n{SEARCH}[{ELSEWHERE}]", f"Thought: two\n{SEARCH}[{SUB}]", f"{FINISH}[Vellin]")
    observed = [
        Observed(query=ROOT, passages=FOUND),
        Observed(query=ELSEWHERE, passages="", thought="one"),
        Observed(query=SUB, passages=FOUND_NEXT, thought="two"),
    ]
    assert agent.calls[:3] == [react_messages(ROOT, observed[:shown]) for shown in (1, 2, 3)]


def test_the_reader_sees_the_passages_of_all_rounds_alone() -> None:
    final, agent = run(f"Thought: secret\n{SEARCH}[{SUB}]", f"{FINISH}[something else]")
    assert final["evidence"] == f"{FOUND}\n\n[3] b.md\nDelta needs Vellin."
    assert agent.calls[-1] == reader_messages(ROOT, final["evidence"])
    assert final["answer"] == "Vellin"


@pytest.mark.parametrize(
    "reply",
    [f"{FINISH}[Vellin]", f"{FINISH}[]", "I wonder about oils.", f"{SEARCH}[{ROOT.lower()}]", f"{SEARCH}[]", ""],
)
def test_what_is_no_new_search_ends_the_rounds_after_one_call(reply: str) -> None:
    final, agent = run(reply)
    assert [step["query"] for step in final["steps"]] == [ROOT]
    assert (len(agent.calls), final["status"]) == (2, "answered")


def test_a_spent_budget_leaves_the_passages_that_were_found() -> None:
    final, agent = run(f"{SEARCH}[{SUB}]", depth=9, calls=2)
    assert len(agent.calls) == 2
    assert "Delta needs Vellin." in final["evidence"]


# --- tools ---


def calculating(*replies: str, depth: int = 3) -> tuple[RagState, FakeLLM]:
    said = iter(replies)
    agent = FakeLLM(lambda messages: next(said) if messages[0][1] == REACT_TOOLS_SYSTEM else "Vellin")
    made = create_tools(["calculator"], Settings(_env_file=None))
    return build_react(context=replace(context_of(agent, depth=depth), tools=made)).invoke(ROOT), agent


def test_the_result_of_a_tool_is_observed_and_is_evidence() -> None:
    final, agent = calculating("Thought: one\nAction: Calculator[6 * 7]\nObservation: 41", f"{FINISH}[42]")
    assert [(step["tool"], step["query"], step["text"]) for step in final["steps"]] == [
        ("", ROOT, "one"),
        ("calculator", "6 * 7", f"{FINISH}[42]"),
    ]
    shown = [
        Observed(query=ROOT, passages=FOUND),
        Observed(query="6 * 7", passages="[1] calculator: 6 * 7\n42", thought="one", tool="calculator"),
    ]
    assert agent.calls[1] == react_messages(ROOT, shown, tools={"calculator": CALCULATES})
    assert final["evidence"] == f"{FOUND}\n\n[3] calculator: 6 * 7\n42"
    assert [chunk.metadata.get("tool") for chunk in final["similar_chunks"]] == [None, None, "calculator"]


def test_a_tool_is_drawn_as_a_round_of_its_own() -> None:
    agent = FakeLLM(lambda messages: "Action: calculator[6 * 7]" if messages[0][1] == REACT_TOOLS_SYSTEM else "42")
    made = create_tools(["calculator"], Settings(_env_file=None))
    with build_react(context=replace(context_of(agent), tools=made), checkpointer="memory:") as graph:
        graph.invoke(ROOT, thread("tools"))
        tree = SearchTree.from_history(graph, "tools")
    assert [chunk.found_by for chunk in tree.chunk_nodes()][-1] == "calculator[6 * 7]"
    assert "found by: calculator[6 * 7]" in tree.to_dot()


@pytest.mark.parametrize("again", ["Action: calculator[ 6  * 7]", "Action: hammer[6]", "calculator: 6 * 7"])
def test_the_same_input_again_and_an_unknown_tool_end_the_rounds(again: str) -> None:
    final, agent = calculating("Action: calculator[6 * 7]", again)
    assert len(final["steps"]) == 2
    assert len(agent.calls) == 3


def test_one_text_may_be_searched_for_and_given_to_a_tool() -> None:
    final, _ = calculating(
        f"Action: calculator[{ROOT}]", f"{SEARCH}[{SUB}]", f"Action: calculator[{SUB}]", f"{FINISH}[x]", depth=9
    )
    assert [step["tool"] for step in final["steps"]] == ["", "calculator", "", "calculator"]
    assert final["similar_chunks"][2].page_content.startswith("The tool failed: ValueError: 'Which oil")


def test_a_tool_without_arguments_needs_no_input() -> None:
    @tool
    def today() -> str:
        """Tell the day."""
        return "Monday"

    said = iter(["Action: today[]", "Action: today[]"])
    agent = FakeLLM(lambda messages: next(said) if messages[0][1] == REACT_TOOLS_SYSTEM else "Vellin")
    made = create_tools([today], Settings(_env_file=None))
    final = build_react(context=replace(context_of(agent), tools=made)).invoke(ROOT)
    assert [(step["tool"], step["query"]) for step in final["steps"]] == [("", ROOT), ("today", "")]
    assert final["evidence"].endswith("today\nMonday")


def test_no_end_of_a_long_input_is_lost() -> None:
    final, _ = calculating(f"Action: calculator[{' + '.join(['1111'] * 100)}]", f"{FINISH}[x]")
    assert "\n111100" in final["evidence"]


def test_an_interrupt_in_a_tool_waits_for_its_answer_and_pays_no_call_twice() -> None:
    @tool
    def ask_a_human(question: str) -> str:
        """Ask."""
        return str(interrupt(question))

    said = iter(["Action: ask_a_human[Which oil?]", f"{FINISH}[x]"])
    agent = FakeLLM(lambda messages: next(said) if messages[0][1] == REACT_TOOLS_SYSTEM else "Vellin")
    made = create_tools([ask_a_human], Settings(_env_file=None))
    with build_react(context=replace(context_of(agent), tools=made), checkpointer="memory:") as graph:
        graph.invoke(ROOT, thread("human"))
        assert [each.value for each in graph.get_state(thread("human")).interrupts] == ["Which oil?"]
        final = graph.invoke(Command(resume="Vellin, of course"), thread("human"))
    assert "Vellin, of course" in final["evidence"]
    assert len(agent.calls) == 3


def test_another_tool_is_another_run() -> None:
    with build_react(context=context_of(FakeLLM(lambda messages: "Vellin")), checkpointer="memory:") as graph:
        graph.invoke(ROOT, thread("one"))
        made = create_tools(["calculator"], Settings(_env_file=None))
        with pytest.raises(ThreadMismatch, match=r"tool\.calculator"):
            graph.invoke(ROOT, thread("one"), context=replace(context_of(FakeLLM(lambda messages: "")), tools=made))
