"""Conversations as messages: histories from callers, earlier turns within a budget, and the messages of a prompt."""

from __future__ import annotations

import re
from bisect import bisect_left
from collections.abc import Callable, Mapping, Sequence
from typing import Literal

from langchain_core.messages import AIMessage, BaseMessage, ChatMessage, FunctionMessage, HumanMessage, ToolMessage

from ..calls.messages import Message
from ..calls.tokens import fair_shares, is_longer, message_tokens, shortened, text_tokens
from ..errors import SettingsError
from ..reader.evidence import as_material
from ..reader.prompts import REFUSAL
from .prompts import both_forms, render_turns
from .turns import QaPair

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
    """Return the (question, answer) pairs of a history, without system and tool messages.

    Consecutive messages of one side are joined. A missing answer is ``""``, and so is the question of a greeting at the
    start.

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


HistoryRenderer = Callable[[Sequence[tuple[str, str]]], str]
"""A function that renders (question, answer) pairs for a prompt."""

_LEAST_OF_A_TURN = 40
"""Least tokens of a shortened turn; older turns are dropped instead."""


def history_text(
    turns: Sequence[QaPair], *, summary: str = "", max_tokens: int, render: HistoryRenderer | None = None
) -> str:
    """Return turns, after the summary of those before, in at most ``max_tokens`` tokens.

    Turns are given and shown oldest first. The longest texts are shortened first, and every turn keeps its start and
    its end. The oldest turns are dropped if they cannot all fit. The summary gets at most a third of the room.
    ``render`` renders the turns in place of ``render_turns``, without the summary.
    """
    if render is None:
        summary = shortened(summary, max_tokens // 3)
        fitting = fitting_turns(turns, max_tokens - text_tokens(render_turns((), summary=summary)))
        text = render_turns(fitting, summary=summary)
    else:
        text = render([(turn["query"], turn["answer"]) for turn in fitting_turns(turns, max_tokens)])
    return shortened(text, max_tokens)


def fitting_turns(turns: Sequence[QaPair], max_tokens: int) -> list[QaPair]:
    """Return the turns, shortened as needed; the oldest are dropped where all cannot fit."""
    bounded = [_bounded(turn, max_tokens) for turn in turns]
    if sum(map(_cost, bounded)) <= max_tokens:
        return bounded
    most = max(max_tokens, 0) // _LEAST_OF_A_TURN
    kept = bounded[-most:] if most else []
    rooms = fair_shares([_cost(turn) for turn in kept], max_tokens)
    return [_shortened_turn(turn, room) for turn, room in zip(kept, rooms, strict=True)]


def _bounded(turn: QaPair, max_tokens: int) -> QaPair:
    """Return the turn with each text shortened to the whole room, so that further work is fast."""
    return turn | {
        "query": shortened(turn["query"], max_tokens),
        "standalone_query": shortened(turn["standalone_query"], max_tokens),
        "answer": shortened(turn["answer"], max_tokens),
    }


def _cost(turn: QaPair) -> int:
    return text_tokens(render_turns([turn])) + 2  # the blank line after it


def _shortened_turn(turn: QaPair, max_tokens: int) -> QaPair:
    if _cost(turn) <= max_tokens:
        return turn
    is_rewritten = turn["standalone_query"] != turn["query"]
    texts = [turn["query"], turn["standalone_query"] if is_rewritten else "", turn["answer"]]
    frame = _cost(turn | {"query": "", "standalone_query": "?" if is_rewritten else "", "answer": ""})
    rooms = fair_shares([text_tokens(text) for text in texts], max(0, max_tokens - frame))
    query, standalone, answer = (shortened(text, room) for text, room in zip(texts, rooms, strict=True))
    return turn | {"query": query, "standalone_query": standalone if is_rewritten else query, "answer": answer}


SUMMARY_HEADING = "Summary of the conversation so far:"


def build_context_messages(
    *, instructions: Sequence[Message], question: str, recent: Sequence[QaPair], summary: str, token_budget: int
) -> list[Message]:
    """Build the messages: instructions, summary, history, question.

    A turn is a pair of messages: "user" with its question and interpretation, and "assistant" with its answer. The
    summary comes from a model, so it is a message of the user, not of the system.

    Instructions and question are always included. The rest of the budget goes to the summary, then to the turns from
    the newest; ``recent`` is oldest first. What does not fit is left out whole. All messages together have at most
    ``token_budget`` tokens by ``calls.tokens.message_tokens``.
    """
    left = token_budget - message_tokens([*instructions, ("user", question)])
    summarised = [("user", f"{SUMMARY_HEADING}\n{as_material(summary)}")] if summary else []
    shown: list[list[Message]] = []
    for part in (summarised, *map(_turn_messages, reversed(recent))):
        fits = (cost := message_tokens(part)) <= left
        shown.append(part if fits else [])
        left -= cost if fits else 0
    return [
        *instructions,
        *shown[0],
        *(message for turn in reversed(shown[1:]) for message in turn),
        ("user", question),
    ]


def _turn_messages(turn: QaPair) -> list[Message]:
    pair = [("user", both_forms(turn["query"], turn["standalone_query"])), ("assistant", turn["answer"] or REFUSAL)]
    return [message for message in pair if message[1]]  # endpoints refuse the empty question of a greeting


def fitting_passages(knowledge: str, max_tokens: int) -> str:
    """Return the first passages that fit as a whole; ``""`` if the first is too long."""
    ends = _passage_ends(knowledge)
    fitting = bisect_left(ends, True, key=lambda end: is_longer(knowledge[:end], max_tokens))
    return knowledge[: ends[fitting - 1]] if fitting else ""


def _passage_ends(knowledge: str) -> list[int]:
    """Return the ends of passages: before the next number, or at empty lines if they have no numbers."""
    if not knowledge.startswith("[1] "):
        return [*(match.start() for match in re.finditer("\n\n", knowledge)), len(knowledge)]
    ends: list[int] = []
    position = 0
    while (position := knowledge.find(f"\n\n[{len(ends) + 2}] ", position)) >= 0:
        ends.append(position)
    return [*ends, len(knowledge)]
