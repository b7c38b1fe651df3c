"""Search-R1: a thought and a search a round between tags; the reader sees the passages of all rounds."""

from __future__ import annotations

import pytest

from judgetree.graphs.systems.search_r1 import build_search_r1
from judgetree.graphs.threads.state import RagState
from judgetree.modules.reader.multistep_prompts import Observed
from judgetree.modules.reader.prompts import reader_messages
from judgetree.modules.reader.tagged_prompts import SEARCH_R1_SYSTEM, STOPS, search_r1_messages
from tests.graphs.fakes import FakeLLM
from tests.graphs.systems.test_rounds import context_of
from tests.graphs.two_steps import ROOT, SUB

FOUND = "[1] a.md\nKS-1 is class Delta.\n\n[2] n.md\nnoise"
FOUND_NEXT = "[1] b.md\nDelta needs Vellin.\n\n[2] a.md\nKS-1 is class Delta."
ASKS = f"<think>The class is Delta.</think>\n<search>{SUB}</search>"
ANSWERS = "<think>Vellin it is.</think>\n<answer>something else</answer>"


def run(*replies: str, depth: int = 3, calls: int = 60) -> tuple[RagState, FakeLLM]:
    """A model that says ``replies``, in order, and a reader that says "Vellin"."""
    said = iter(replies)
    llm = FakeLLM(lambda messages: next(said) if messages[0][1] == SEARCH_R1_SYSTEM else "Vellin")
    return build_search_r1(context=context_of(llm, depth=depth, calls=calls)).invoke(ROOT), llm


def test_each_search_is_a_round_until_it_answers() -> None:
    final, llm = run(ASKS, ANSWERS)
    assert [step["query"] for step in final["steps"]] == [ROOT, SUB]
    assert [step["text"] for step in final["steps"]] == ["The class is Delta.", "Vellin it is."]
    assert [options.stop for options in llm.options[:2]] == [STOPS, STOPS]


def test_it_sees_each_search_with_its_thought_and_all_that_it_found() -> None:
    _, llm = run(ASKS, ANSWERS)
    observed = [
        Observed(query=ROOT, passages=FOUND),
        Observed(query=SUB, passages=FOUND_NEXT, thought="The class is Delta."),
    ]
    assert llm.calls[:2] == [search_r1_messages(ROOT, observed[:shown]) for shown in (1, 2)]


def test_a_thought_without_its_end_may_hold_the_search() -> None:
    final, _ = run(f"<think>The class is Delta. <search>{SUB}</search>\n<information>made up", ANSWERS)
    assert [step["query"] for step in final["steps"]] == [ROOT, SUB]
    assert final["steps"][0]["text"] == "The class is Delta."


def test_the_reader_sees_the_passages_of_all_rounds_alone_and_answers() -> None:
    final, llm = run(ASKS, ANSWERS)
    assert final["evidence"] == f"{FOUND}\n\n[3] b.md\nDelta needs Vellin."
    assert llm.calls[-1] == reader_messages(ROOT, final["evidence"])
    assert final["answer"] == "Vellin"


@pytest.mark.parametrize("calls", [1, 2, 3])
@pytest.mark.parametrize(
    "reply", [ASKS[:end] for end in range(0, len(ASKS), 7)] + [ASKS * 2, f"`{ASKS}`", "<search>" * 9]
)
def test_a_reply_of_any_shape_ends_within_the_budget(reply: str, calls: int) -> None:
    final, llm = run(*[reply] * 9, calls=calls)
    assert len(llm.calls) <= calls
    assert (final["answer"], final["status"]) == ("Vellin", "answered")
