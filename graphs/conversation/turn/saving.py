"""Saves an answered turn: in the conversation's state, which stays small, and in the memory."""

from __future__ import annotations

import asyncio
import logging
import uuid
from collections.abc import Mapping, Sequence

from ....modules.calls.usage import sum_usage, total_usage
from ....modules.errors import CollectionError, ModelCallError, ThreadMoved, UnknownConversation
from ....modules.memory.costs import used_models
from ....modules.memory.turns import Branch, QaPair, count_tokens, free_name, new_branch, utc_now
from .context import TurnContext, TurnLimits, TurnMemory
from .history import turns_of_state
from .state import ConversationState, TurnState

logger = logging.getLogger(__name__)


async def save_answered(state: TurnState, context: TurnContext) -> tuple[QaPair, list[QaPair]]:
    """Save an answered turn; returns it, and all changed turns with it. A repeated call changes nothing."""
    conversation = context.conversation
    open_turn = state["open_turn"]
    known = _saved_in(conversation, open_turn["turn_id"])
    if known is not None:
        return known, [known]
    turn = _pair_of(state)
    if context.stream is not None and context.stream.thinking:
        turn["thinking"] = context.stream.thinking
    folded = _folded_into(state)
    turn = await _append(turn, folded, state, context)
    return turn, [*folded.values(), turn]


async def _append(turn: QaPair, folded: Mapping[str, QaPair], state: TurnState, context: TurnContext) -> QaPair:
    """Save a turn at the end of its branch; returns it as saved.

    The lock of the conversation keeps its state as it is while a turn runs. If the lock failed, and another turn was
    saved meanwhile, this one is added to what is there: in its branch, or where that has gone on, in a new one.
    """
    known = context.conversation
    while True:
        earlier = (*state["history"], *context.conversation["chat_history"], *known["chat_history"])
        turn, branch = _placed(turn, known, earlier)
        turns = [*(folded.get(each["turn_id"], each) for each in known["chat_history"]), turn]
        limits, folds, waiting = context.limits, context.options.summary_memory, known["open_turn"]
        changes = ConversationState(
            title=known["title"] or turn["query"],
            chat_history=turns if state.get("unremembered") else within_limits(turns, limits, folds=folds),
            branches={**known["branches"], turn["branch_id"]: branch},
            active_branch=turn["branch_id"],
            open_turn=None if waiting is None or waiting["turn_id"] == turn["turn_id"] else waiting,
        )
        try:
            await context.store.save(known, changes)
            return turn
        except ThreadMoved as error:
            newest = await context.store.load(known["name"])
            if newest is None or newest["conversation_id"] != known["conversation_id"]:
                raise UnknownConversation(
                    f"The conversation {known['name']!r} was deleted while its question was answered. Ask again."
                ) from error
            logger.warning("%r was changed while a question was answered, although it was locked", known["name"])
            known = newest
            if (saved := _saved_in(known, turn["turn_id"])) is not None:
                return saved  # by a process that resumed it


def _saved_in(state: ConversationState, turn_id: str) -> QaPair | None:
    return next((each for each in state["chat_history"] if each["turn_id"] == turn_id), None)


def _placed(turn: QaPair, state: ConversationState, earlier: Sequence[QaPair]) -> tuple[QaPair, Branch]:
    """Return a turn with the branch that ends with it: its own if that still ends with its parent, else a new one."""
    branch = state["branches"].get(turn["branch_id"])
    if branch is None or branch["head_turn_id"] != turn["parent_turn_id"]:
        parent = next((each for each in earlier if each["turn_id"] == turn["parent_turn_id"]), None)
        branch = new_branch(uuid.uuid4().hex[:12], free_name(state["branches"]), forked_from=parent)
    placed = turn | {"branch_id": branch["branch_id"]}
    return placed, branch | {"head_turn_id": turn["turn_id"], "head_number": turn["turn_number"]}


async def remember(memory: TurnMemory, conversation_id: str, turns: Sequence[QaPair]) -> None:
    """Add saved turns to the memory. If the memory or its embedder fails, the next turn adds them."""
    try:
        await asyncio.to_thread(memory.add_turns, conversation_id, turns)
    except (CollectionError, ModelCallError) as error:
        logger.warning("%r has turns that will be remembered at the next one (%s)", conversation_id, error)


def within_limits(turns: Sequence[QaPair], limits: TurnLimits, *, folds: bool) -> list[QaPair]:
    """Return the newest turns that a state holds, within ``max_tokens``, at least one.

    All but the last turn must be in the memory.
    """
    kept: list[QaPair] = []
    tokens = 0
    for turn in reversed(turns[-(turns_of_state(limits, folds=folds) + 1) :]):
        tokens += turn["token_count"]
        if kept and tokens > limits.max_tokens:
            break
        kept.append(turn)
    return kept[::-1]


def _folded_into(state: TurnState) -> dict[str, QaPair]:
    """Return the last folded turn with the new summary, by its id; empty if no summary was made."""
    if not state.get("folded"):
        return {}
    last = state["to_fold"][-1]
    return {last["turn_id"]: last | {"summary": state["summary"]}}


def _pair_of(state: TurnState) -> QaPair:
    open_turn = state["open_turn"]
    turn = QaPair(
        turn_id=open_turn["turn_id"],
        parent_turn_id=open_turn["parent_turn_id"],
        branch_id=open_turn["branch_id"],
        turn_number=open_turn["turn_number"],
        query=open_turn["query"],
        standalone_query=state.get("standalone_query") or open_turn["query"],
        rewrite_problem=state.get("rewrite_problem", ""),
        answer=state["answer"],
        status=state["status"],
        answered_from=state["answered_from"],
        chunks=state.get("chunks", []),
        needed_chat_history=_needed(state),
        collection=open_turn["collection"],
        timestamp=utc_now(),
        token_count=count_tokens(open_turn["query"], state["answer"]),
        rag_thread_id=state.get("rag_thread_id", ""),
        request_id=open_turn["request_id"],
        summary="",
        usage=sum_usage(filter(None, [total_usage(state.get("usage", ())), state.get("rag_usage")])),
    )
    turn["models"] = [*used_models(state.get("usage", ())), *state.get("rag_models", ())]
    if overrides := open_turn.get("overrides"):
        turn["overrides"] = overrides
    if given := open_turn.get("given_history"):
        turn["given_history"] = given
    if system := open_turn.get("system"):
        turn["system"] = system
    if (report := state.get("insert_block")) is not None:
        turn["insert_block"] = report
    return turn


def _needed(state: TurnState) -> list[str] | None:
    """Return the ids of the selected turns; empty without history, None without a selection."""
    if not state["history"] and not state["summary"]:
        return []
    selected = state.get("selected")
    if selected is None:
        return None
    return [turn["turn_id"] for turn in state["history"] if turn["turn_number"] in selected]
