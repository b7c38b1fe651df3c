"""What a prompt shows of a conversation, in which order, and what a budget leaves of it."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.documents import Document
from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, HumanMessage, SystemMessage, ToolMessage

from judgetree.modules.calls.messages import Message
from judgetree.modules.errors import SettingsError
from judgetree.modules.memory.messages import (
    KNOWLEDGE_HEADING,
    SUMMARY_HEADING,
    GivenHistory,
    build_context_messages,
    pairs_of,
)
from judgetree.modules.memory.turns import QaPair, count_tokens
from judgetree.modules.reader.evidence import render_evidence
from judgetree.modules.reader.prompts import REFUSAL
from tests.modules.turn_factory import make_turn

PLENTY = 100_000
SIZES = [3, 400, 20, 90, 5, 250, 60, 1, 130]
TURNS = st.integers(1, 9).map(lambda number: make_turn(number, f"question {number} ", "x" * SIZES[number - 1]))
HISTORY = st.lists(TURNS, max_size=6)
PASSAGES = st.lists(st.integers(1, 400).map(lambda size: f"text\n\n{'y' * size}"), max_size=5)


def evidence(texts: list[str]) -> str:
    return render_evidence(Document(text, metadata={"source": f"{n}.md"}) for n, text in enumerate(texts, start=1))


def cost(messages: list[Message]) -> int:
    return count_tokens(*(text for _, text in messages))


def questions(messages: list[Message]) -> list[str]:
    """Of the turns shown, in order."""
    return [messages[at - 1][1] for at, (role, _) in enumerate(messages) if role == "assistant"]


def test_all_stands_in_its_order() -> None:
    messages = build_context_messages(
        system="Answer.",
        question="And his?",
        relevant=[make_turn(3, "third"), make_turn(1, "first")],
        recent=[make_turn(7, "seventh"), make_turn(8, "eighth")],
        knowledge=evidence(["Oslo."]),
        summary="They spoke.",
        token_budget=PLENTY,
    )
    assert messages == [
        ("system", "Answer."),
        ("user", f"{SUMMARY_HEADING}\nThey spoke."),
        *[("user", "first"), ("assistant", "answer 1"), ("user", "third"), ("assistant", "answer 3")],
        *[("user", "seventh"), ("assistant", "answer 7"), ("user", "eighth"), ("assistant", "answer 8")],
        ("user", f"{KNOWLEDGE_HEADING}\n[1] 1.md\nOslo."),
        ("user", "And his?"),
    ]


def test_without_anything_there_are_instructions_and_question() -> None:
    messages = build_context_messages(system="Answer.", question="Who?", token_budget=PLENTY)
    assert messages == [("system", "Answer."), ("user", "Who?")]


def test_a_turn_is_shown_in_the_users_words_and_never_empty() -> None:
    turn: QaPair = {**make_turn(1, "And his?"), "standalone_query": "Where was he born?", "answer": ""}
    messages = build_context_messages(system="", question="Who?", recent=[turn], token_budget=PLENTY)
    assert messages[1:3] == [("user", "And his?\nUnderstood as: Where was he born?"), ("assistant", REFUSAL)]


def test_a_turn_in_both_histories_is_a_recent_one() -> None:
    both, old = make_turn(2, "second"), make_turn(3, "third")
    messages = build_context_messages(
        system="", question="Who?", relevant=[both, old, both], recent=[both], token_budget=PLENTY
    )
    assert questions(messages) == ["third", "second"]


def test_what_does_not_fit_is_left_out_whole_and_the_next_is_tried() -> None:
    recent = [make_turn(1, "first"), make_turn(2, "second", "x" * 4000), make_turn(3, "third")]
    messages = build_context_messages(system="", question="Who?", recent=recent, token_budget=100)
    assert questions(messages) == ["first", "third"]


def test_knowledge_comes_before_summary_then_recent_then_relevant() -> None:
    """Each thing is larger than the one before it, so that none slips into what is left for a greater one."""
    words = ["Oslo", "They spoke", "second", "first", "third", "fourth"]
    turns = {word: make_turn(number, word, "x" * 100 * number) for number, word in enumerate(words[2:], start=2)}

    def shown(token_budget: int) -> list[str]:
        messages = build_context_messages(
            system="",
            question="Who?",
            knowledge="Oslo.",
            summary="They spoke of it. They spoke of it.",
            recent=[turns["first"], turns["second"]],
            relevant=[turns["third"], turns["fourth"]],
            token_budget=token_budget,
        )
        return [word for word in words if word in str(messages)]

    seen = [shown(budget) for budget in range(1000)]
    changes = [there for there, _ in itertools.groupby(seen)]
    assert changes == [words[:count] for count in range(len(words) + 1)]


@pytest.mark.parametrize(
    ("knowledge", "kept"),
    [
        (evidence(["a", "b" * 400]), "[1] 1.md\na"),
        (evidence(["a\n\nb", "c" * 400]), "[1] 1.md\na\nb"),
        (evidence(["a\n\n[3] no number of ours", "c" * 400]), "[1] 1.md\na\n    [3] no number of ours"),
        (evidence(["a" * 400, "b"]), ""),
        (f"A digest.\n\n{'d' * 400}", "A digest."),
        ("", ""),
    ],
)
def test_knowledge_is_cut_at_the_end_of_a_passage(knowledge: str, kept: str) -> None:
    messages = build_context_messages(system="", question="Who?", knowledge=knowledge, token_budget=60)
    assert messages[1:-1] == ([("user", f"{KNOWLEDGE_HEADING}\n{kept}")] if kept else [])


@given(relevant=HISTORY, recent=HISTORY, texts=PASSAGES, summary=st.text(max_size=80), budget=st.integers(0, 900))
def test_laws(relevant: list[QaPair], recent: list[QaPair], texts: list[str], summary: str, budget: int) -> None:
    def build(token_budget: int) -> list[Message]:
        return build_context_messages(
            system="Answer.",
            question="Who?",
            relevant=relevant,
            recent=recent,
            knowledge=evidence(texts),
            summary=summary,
            token_budget=token_budget,
        )

    messages = build(budget)
    assert cost(messages) <= max(budget, cost([("system", "Answer."), ("user", "Who?")]))
    assert (messages[0][0], messages[-1]) == ("system", ("user", "Who?"))
    assert messages[0][1].startswith("Answer.")
    numbers = [int(question.split()[1]) for question in questions(messages)]
    assert len(numbers) == len(set(numbers))
    given_recent = {turn["turn_number"] for turn in recent}
    as_relevant = [number for number in numbers if number not in given_recent]
    assert numbers[: len(as_relevant)] == sorted(as_relevant)
    assert set(as_relevant) <= {turn["turn_number"] for turn in relevant}
    everything = build(PLENTY)
    assert {text for _, text in messages[1:-1] if not text.startswith(KNOWLEDGE_HEADING)} <= {t for _, t in everything}
    shown = [text for _, text in messages if text.startswith(KNOWLEDGE_HEADING)]
    assert shown in ([], *([f"{KNOWLEDGE_HEADING}\n{evidence(texts[:count])}"] for count in range(1, len(texts) + 1)))


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
