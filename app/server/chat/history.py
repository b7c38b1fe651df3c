"""Where in a conversation the messages of a chat client end, so that an edited or repeated one becomes a branch."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from ....graphs.conversation.conversation import FIRST
from ....modules.memory.messages import pairs_of
from ....modules.memory.turns import QaPair
from .requests import Message
from .sources import without_list


@dataclass(frozen=True, kw_only=True)
class ConversationPlace:
    """Where a question belongs."""

    parent_turn_id: str
    """Turn that it follows; ``FIRST`` for none."""
    is_repeated: bool
    """Whether a turn with the same question follows that turn already."""
    foreign_history: list[tuple[str, str]]
    """The client's history, if the conversation has no such path; else empty."""


def place_of(messages: Sequence[Message], turns: Sequence[QaPair]) -> ConversationPlace:
    """Find the place of the last message among the turns of a conversation, in the order of their answers.

    A path that the client changed, such as an edited answer, is none of the conversation's: the question then follows
    the last turn that both have, and brings the client's history along.
    """
    pairs = pairs_of([{"role": message.role, "content": _said(message)} for message in messages[:-1]])
    parents, parent = {FIRST}, FIRST
    for question, answer in pairs:
        found = [t for t in turns if t["parent_turn_id"] in parents and _is_same(t, question, answer)]
        if not found:
            return ConversationPlace(parent_turn_id=parent, is_repeated=False, foreign_history=pairs)
        parents, parent = {turn["turn_id"] for turn in found}, found[-1]["turn_id"]
    siblings = [turn for turn in turns if turn["parent_turn_id"] == parent]
    asked = messages[-1].text
    return ConversationPlace(
        parent_turn_id=parent, is_repeated=any(turn["query"] == asked for turn in siblings), foreign_history=[]
    )


def _is_same(turn: QaPair, question: str, answer: str) -> bool:
    return turn["query"] == question and answer.strip() == turn["answer"].strip()


def _said(message: Message) -> str:
    """Return what a message says: the list of sources behind an answer is the server's, with links of its own."""
    return without_list(message.text) if message.role == "assistant" else message.text
