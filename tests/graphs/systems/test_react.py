"""ReAct: a thought and a search a round, each observation shown; the reader sees the passages of all rounds."""

from __future__ import annotations

import pytest

from judgetree.graphs.systems.react import build_react
from judgetree.graphs.threads.state import RagState
from judgetree.modules.reader.multistep_prompts import FINISH, REACT_SYSTEM, SEARCH, Observed, react_messages
from judgetree.modules.reader.prompts import reader_messages
from tests.graphs.fakes import FakeLLM
from tests.graphs.systems.test_rounds import context_of
from tests.graphs.two_steps import ROOT, SUB

FOUND = "[1] a.md\nKS-1 is class Delta.\n\n[2] n.md\nnoise"
FOUND_NEXT = "[1] b.md\nDelta needs Vellin.\n\n[2] a.md\nKS-1 is class Delta."
ELSEWHERE = "oils of class Gamma"


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
