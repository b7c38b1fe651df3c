"""Histories that callers keep, as pairs."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given
from hypothesis import strategies as st
from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, HumanMessage, SystemMessage, ToolMessage

from judgetree.modules.errors import SettingsError
from judgetree.modules.memory.messages import GivenHistory, pairs_of

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
