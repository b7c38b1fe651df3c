"""The history of a conversation that a caller keeps, in the forms that callers have it in, as pairs of texts."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Literal

from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, FunctionMessage, HumanMessage, ToolMessage

from ..errors import SettingsError

GivenTurn = tuple[str, str] | BaseMessage | Mapping[str, object]
GivenHistory = Sequence[GivenTurn]
"""Earlier turns, oldest first: (question, answer) tuples, messages of LangChain, or ``{"role": …, "content": …}``."""

_Side = Literal["question", "answer", "neither"]
_ROLES: Mapping[str, _Side] = {
    "user": "question",
    "human": "question",
    "assistant": "answer",
    "ai": "answer",
    "system": "neither",
    "developer": "neither",
    "tool": "neither",
    "function": "neither",
}


def pairs_of(history: GivenHistory) -> list[tuple[str, str]]:
    """(question, answer) of a history; messages of the system and of tools are left out.

    Several messages of one side in a row are one question, or one answer. A question without an answer has ``""``, and
    so has an answer without a question: a greeting at the beginning.

    Raises:
        SettingsError: An element has none of the forms of ``GivenHistory``.
    """
    pairs: list[tuple[str, str]] = []
    last: _Side = "neither"
    for said in history:
        if isinstance(said, tuple) and len(said) == 2 and all(isinstance(text, str) for text in said):
            pairs.append(said)
            last = "answer"
            continue
        side, text = _said(said)
        if side == "neither" or (side == "answer" and not text):  # an answer without text only calls tools
            continue
        _add(pairs, side, text, is_new=side == "question" and last != "question")
        last = side
    return pairs


def _add(pairs: list[tuple[str, str]], side: _Side, text: str, *, is_new: bool) -> None:
    if is_new or not pairs:
        pairs.append((text, "") if side == "question" else ("", text))
        return
    question, answer = pairs[-1]
    if side == "question":
        pairs[-1] = (f"{question}\n{text}", answer)
    else:
        pairs[-1] = (question, f"{answer}\n{text}" if answer else text)


def _said(said: object) -> tuple[_Side, str]:
    """Who said an element of a history, and its text."""
    if isinstance(said, ChatMessage):
        side = _ROLES.get(said.role)
    elif isinstance(said, BaseMessage):
        side = _side_of(said)
    elif isinstance(said, Mapping) and isinstance(content := said.get("content") or "", str | list):
        side = _ROLES.get(str(said.get("role")))
        said = HumanMessage(content)
    else:
        side = None
    if side is None:
        roles = ", ".join(_ROLES)
        raise SettingsError(
            f"chat_history holds {said!r:.80}. Allowed: (question, answer) tuples of two texts, LangChain's messages, "
            f'and {{"role": …, "content": …}} with a role of {roles}.'
        )
    assert isinstance(said, BaseMessage)
    return side, str(said.text)


def _side_of(message: BaseMessage) -> _Side | None:
    if isinstance(message, HumanMessage):
        return "question"
    if isinstance(message, AIMessage):
        return "answer"
    return "neither" if isinstance(message, ToolMessage | FunctionMessage) or message.type == "system" else None
