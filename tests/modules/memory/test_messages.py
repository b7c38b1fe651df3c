"""What a prompt shows of a conversation, in which order, and what a budget leaves of it."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from operator import itemgetter

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, HumanMessage, SystemMessage, ToolMessage

from judgetree.modules.calls.messages import Message
from judgetree.modules.calls.tokens import message_tokens
from judgetree.modules.errors import SettingsError
from judgetree.modules.memory.messages import (
    SUMMARY_HEADING,
    GivenHistory,
    build_context_messages,
    fitting_passages,
    pairs_of,
)
from judgetree.modules.memory.turns import QaPair
from judgetree.modules.reader.evidence import render_evidence
from judgetree.modules.reader.prompts import REFUSAL
from tests.modules.turn_factory import make_turn

PLENTY = 100_000
SIZES = [3, 400, 20, 90, 5, 250, 60, 1, 130]
TURNS = st.integers(1, 9).map(lambda number: make_turn(number, f"question {number} ", "x" * SIZES[number - 1]))
HISTORY = st.lists(TURNS, max_size=6, unique_by=itemgetter("turn_number"))


def build(recent: Sequence[QaPair] = (), *, summary: str = "", budget: int = PLENTY) -> list[Message]:
    return build_context_messages(
        instructions=[("system", "Answer.")], question="Who?", recent=recent, summary=summary, token_budget=budget
    )


def evidence(*texts: str) -> str:
    return render_evidence(Document(text, metadata={"source": f"{n}.md"}) for n, text in enumerate(texts, start=1))


def questions(messages: list[Message]) -> list[str]:
    """Of the turns shown, in order."""
    return [messages[at - 1][1] for at, (role, _) in enumerate(messages) if role == "assistant"]


def test_all_stands_in_its_order() -> None:
    assert build([make_turn(7, "seventh"), make_turn(8, "eighth")], summary="They spoke.") == [
        ("system", "Answer."),
        ("user", f"{SUMMARY_HEADING}\nThey spoke."),
        *[("user", "seventh"), ("assistant", "answer 7"), ("user", "eighth"), ("assistant", "answer 8")],
        ("user", "Who?"),
    ]
    assert build() == [("system", "Answer."), ("user", "Who?")]


def test_a_turn_is_shown_in_the_users_words_and_never_empty() -> None:
    turn: QaPair = {**make_turn(1, "And his?"), "standalone_query": "Where was he born?", "answer": ""}
    assert build([turn])[1:3] == [("user", "And his?\nUnderstood as: Where was he born?"), ("assistant", REFUSAL)]


def test_what_does_not_fit_is_left_out_whole_and_the_next_is_tried() -> None:
    recent = [make_turn(1, "first"), make_turn(2, "second", "x" * 4000), make_turn(3, "third")]
    assert questions(build(recent, budget=100)) == ["first", "third"]


def test_the_summary_comes_before_the_newest_turns() -> None:
    """Each thing is larger than the one before it, so that none slips into what is left for a greater one."""
    words = ["They spoke", "second", "first"]
    recent = [make_turn(1, "first", "x" * 300), make_turn(2, "second", "x" * 200)]

    def shown(budget: int) -> list[str]:
        messages = build(recent, summary="They spoke of it. They spoke of it.", budget=budget)
        return [word for word in words if word in str(messages)]

    changes = [there for there, _ in itertools.groupby(map(shown, range(1000)))]
    assert changes == [words[:count] for count in range(len(words) + 1)]


@pytest.mark.parametrize(
    ("knowledge", "kept"),
    [
        (evidence("a", "b" * 400), "[1] 1.md\na"),
        (evidence("a\n\nb", "c" * 400), "[1] 1.md\na\nb"),
        (evidence("a\n\n[3] no number of ours", "c" * 400), "[1] 1.md\na\n    [3] no number of ours"),
        (evidence("a" * 400, "b"), ""),
        (f"A digest.\n\n{'d' * 400}", "A digest."),
        ("", ""),
    ],
)
def test_passages_are_cut_at_the_end_of_one(knowledge: str, kept: str) -> None:
    assert fitting_passages(knowledge, 40) == kept


@given(recent=HISTORY, summary=st.text(max_size=80), budget=st.integers(0, 900))
def test_laws(recent: list[QaPair], summary: str, budget: int) -> None:
    messages = build(recent, summary=summary, budget=budget)
    assert message_tokens(messages) <= max(budget, message_tokens(build()))
    assert (messages[0], messages[-1]) == (("system", "Answer."), ("user", "Who?"))
    everything = iter(build(recent, summary=summary))
    assert all(message in everything for message in messages), "they stand in their order"


# --- histories that callers keep ---

MESSAGES = st.lists(st.sampled_from([HumanMessage, AIMessage, SystemMessage]), max_size=8)
CALLS = [{"name": "search", "args": {}, "id": "1"}]


@pytest.mark.parametrize(
    ("history", "pairs"),
    [
        ([], []),
        ([("q", "a"), ("r", "")], [("q", "a"), ("r", "")]),
        ([HumanMessage("q"), AIMessage("a"), HumanMessage("r")], [("q", "a"), ("r", "")]),
        ([SystemMessage("s"), HumanMessage("q"), SystemMessage("s"), AIMessage("a")], [("q", "a")]),
        ([HumanMessage("q"), HumanMessage("r"), AIMessage("a"), AIMessage("b")], [("q\nr", "a\nb")]),
        ([("q", "a"), HumanMessage("r"), AIMessage("b")], [("q", "a"), ("r", "b")]),
        ([HumanMessage("q"), ("r", "b"), HumanMessage("s")], [("q", ""), ("r", "b"), ("s", "")]),
        ([HumanMessage([{"type": "text", "text": "q"}])], [("q", "")]),
        ([AIMessage("Hello!"), HumanMessage("q"), AIMessage("a")], [("", "Hello!"), ("q", "a")]),
        ([{"role": "user", "content": "q"}, {"role": "assistant", "content": "a"}], [("q", "a")]),
        ([{"role": "developer", "content": "s"}, {"role": "human", "content": "q"}], [("q", "")]),
        ([{"role": "user", "content": [{"type": "text", "text": "q"}]}], [("q", "")]),
        ([ChatMessage("q", role="user"), ChatMessage("s", role="system")], [("q", "")]),
        (
            [HumanMessage("q"), AIMessage("", tool_calls=CALLS), ToolMessage("x", tool_call_id="1"), AIMessage("a")],
            [("q", "a")],
        ),
        (
            [
                {"role": "user", "content": "q"},
                {"role": "assistant", "content": None, "tool_calls": []},
                {"role": "tool", "content": "x", "tool_call_id": "1"},
                {"role": "assistant", "content": "a"},
            ],
            [("q", "a")],
        ),
    ],
)
def test_a_history_becomes_pairs(history: GivenHistory, pairs: list[tuple[str, str]]) -> None:
    assert pairs_of(history) == pairs


@given(sides=MESSAGES)
def test_nothing_that_was_said_is_lost(sides: list[type[BaseMessage]]) -> None:
    said = [side(f"{position}") for position, side in enumerate(sides)]
    shown = [message for message in said if not isinstance(message, SystemMessage)]
    pairs = pairs_of(said)
    runs = [side for side, _ in itertools.groupby(type(message) for message in shown)]
    assert len(pairs) == runs.count(HumanMessage) + (runs[:1] == [AIMessage])
    assert "\n".join(text for pair in pairs for text in pair if text) == "\n".join(str(m.text) for m in shown)


@pytest.mark.parametrize(
    "wrong", ["text", ("q",), ("q", 1), None, {"role": "narrator", "content": "x"}, {"role": "user", "content": 1}]
)
def test_anything_else_is_refused(wrong: object) -> None:
    with pytest.raises(SettingsError, match=r"chat_history holds .* Allowed: \(question, answer\) tuples"):
        pairs_of([("q", "a"), wrong])  # type: ignore[list-item]
