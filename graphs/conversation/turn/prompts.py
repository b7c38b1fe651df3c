"""The prompts of a turn, each within what a prompt may have, however long turns, passages or questions are."""

from __future__ import annotations

from collections.abc import Callable

from ....modules.calls.messages import Message
from ....modules.calls.tokens import message_tokens, shortened, text_tokens
from ....modules.memory.messages import build_context_messages, fitting_passages, history_text
from ....modules.memory.prompts import (
    KNOWLEDGE_SYSTEM,
    assess_messages,
    both_forms,
    condense_messages,
    select_messages,
    summary_messages,
)
from ....modules.memory.turns import QaPair
from .context import TurnContext
from .state import TurnState

Messages = list[Message]


def selection_prompt(state: TurnState, context: TurnContext) -> Messages:
    """Ask which turns matter."""
    return _about_turns(select_messages, state, context)


def condensation_prompt(state: TurnState, context: TurnContext) -> Messages:
    """Ask for the question as it stands alone, by the turns that matter, or by all where that is not known."""
    return _about_turns(condense_messages, state, context, of_own_rendering=True)


def assessment_prompt(state: TurnState, context: TurnContext) -> Messages:
    """Ask what turns and passages give; passages have half the room, or more where the turns leave it."""
    query = shown_query(state, context)
    room = _room(assess_messages("", "", query), context)
    passages = shown_passages(state["passages"], room // 2)
    history = _history(state, context, room - text_tokens(passages), of_own_rendering=True)
    return assess_messages(history, passages, query)


def summary_prompt(state: TurnState, context: TurnContext) -> Messages:
    """Ask for one summary of the summary before and the turns that it is due to take in."""
    room = _room(summary_messages(""), context)
    return summary_messages(history_text(state["to_fold"], summary=state["summary"], max_tokens=room))


def knowledge_prompt(state: TurnState, context: TurnContext) -> Messages:
    """Ask for an answer from the conversation and general knowledge."""
    return build_context_messages(
        system=KNOWLEDGE_SYSTEM,
        question=shortened(reader_query(state, context), context.limits.max_tokens // 2),
        recent=state["history"],
        summary=state["summary"],
        token_budget=context.limits.max_tokens,
    )


def shown_passages(passages: str, max_tokens: int) -> str:
    """As many whole passages as fit, or else the ends of them."""
    return fitting_passages(passages, max_tokens) or shortened(passages, max_tokens)


def shown_query(state: TurnState, context: TurnContext) -> str:
    """The question in the user's words; one that would fill a quarter of a prompt loses its middle."""
    return shortened(state["open_turn"]["query"], context.limits.max_tokens // 4)


def reader_query(state: TurnState, context: TurnContext) -> str:
    """The question for a reader: in the user's words and as understood, or without that, as the options say."""
    query = state["open_turn"]["query"]
    return both_forms(query, state.get("standalone_query", "")) if context.options.rephrase_question else query


def _about_turns(
    build: Callable[[str, str], Messages], state: TurnState, context: TurnContext, *, of_own_rendering: bool = False
) -> Messages:
    query = shown_query(state, context)
    room = _room(build("", query), context)
    return build(_history(state, context, room, of_own_rendering=of_own_rendering), query)


def _history(state: TurnState, context: TurnContext, max_tokens: int, *, of_own_rendering: bool) -> str:
    """The turns that matter, or all where that is not known."""
    numbers = state.get("selected")
    turns: list[QaPair] = [turn for turn in state["history"] if numbers is None or turn["turn_number"] in numbers]
    render = context.options.get_chat_history if of_own_rendering else None
    return history_text(turns, summary=state["summary"], max_tokens=max_tokens, render=render)


def _room(without: Messages, context: TurnContext) -> int:
    return max(0, context.limits.max_tokens - message_tokens(without) - _ROUNDING)


_ROUNDING = 4
"""Tokens by which the parts of a prompt, each rounded up, may fall short of the whole."""
