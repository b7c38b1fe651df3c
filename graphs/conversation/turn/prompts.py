"""The prompts of a turn; each fits ``TurnLimits.max_tokens`` with turns, passages and questions of any length."""

from __future__ import annotations

from collections.abc import Callable

from ....modules.calls.messages import Message
from ....modules.calls.prompts import Prompts
from ....modules.calls.tokens import message_tokens, shortened, text_tokens
from ....modules.memory.messages import build_context_messages, fitting_passages, history_text
from ....modules.memory.prompts import (
    KNOWLEDGE,
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
    """Ask for a stand-alone question, given the turns that matter, or all turns if that is unknown."""
    return _about_turns(condense_messages, state, context, of_own_rendering=True)


def assessment_prompt(state: TurnState, context: TurnContext) -> Messages:
    """Ask for an answer from turns and passages; passages have up to half the room, turns the rest."""
    query, prompts = shown_query(state, context), context.services.prompts
    room = _room(assess_messages("", "", query, prompts), context)
    passages = shown_passages(state["passages"], room // 2)
    history = _history(state, context, room - text_tokens(passages), of_own_rendering=True)
    return assess_messages(history, passages, query, prompts)


def summary_prompt(state: TurnState, context: TurnContext) -> Messages:
    """Ask for one summary of the last summary and the turns to fold."""
    prompts = context.services.prompts
    room = _room(summary_messages("", prompts), context)
    return summary_messages(history_text(state["to_fold"], summary=state["summary"], max_tokens=room), prompts)


def knowledge_prompt(state: TurnState, context: TurnContext) -> Messages:
    """Ask for an answer from the conversation and general knowledge."""
    question = shortened(reader_query(state, context), context.limits.max_tokens // 2)
    *instructions, (_, asked) = context.services.prompts.messages(KNOWLEDGE, query=question)
    return build_context_messages(
        instructions=instructions,
        question=asked,
        recent=state["history"],
        summary=state["summary"],
        token_budget=context.limits.max_tokens,
    )


def shown_passages(passages: str, max_tokens: int) -> str:
    """Return as many whole passages as fit; if none fits, the text without its middle."""
    return fitting_passages(passages, max_tokens) or shortened(passages, max_tokens)


def shown_query(state: TurnState, context: TurnContext) -> str:
    """Return the question in the user's words; one of more than a quarter of a prompt loses its middle."""
    return shortened(state["open_turn"]["query"], context.limits.max_tokens // 4)


def reader_query(state: TurnState, context: TurnContext) -> str:
    """Return the question for a reader: the user's words, with the stand-alone question if the options ask for it."""
    query = state["open_turn"]["query"]
    return both_forms(query, state.get("standalone_query", "")) if context.options.rephrase_question else query


def _about_turns(
    build: Callable[[str, str, Prompts], Messages],
    state: TurnState,
    context: TurnContext,
    *,
    of_own_rendering: bool = False,
) -> Messages:
    query, prompts = shown_query(state, context), context.services.prompts
    room = _room(build("", query, prompts), context)
    return build(_history(state, context, room, of_own_rendering=of_own_rendering), query, prompts)


def _history(state: TurnState, context: TurnContext, max_tokens: int, *, of_own_rendering: bool) -> str:
    """Render the turns that matter, or all turns if that is unknown."""
    numbers = state.get("selected")
    turns: list[QaPair] = [turn for turn in state["history"] if numbers is None or turn["turn_number"] in numbers]
    render = context.options.get_chat_history if of_own_rendering else None
    return history_text(turns, summary=state["summary"], max_tokens=max_tokens, render=render)


def _room(without: Messages, context: TurnContext) -> int:
    return max(0, context.limits.max_tokens - message_tokens(without) - _ROUNDING)


_ROUNDING = 4
"""Tokens by which rounding may make the estimates of a prompt's parts fall short of the whole."""
