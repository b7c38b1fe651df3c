"""The turns that a prompt shows, from the state and the memory, and the chunks that turns rest on."""

from __future__ import annotations

import asyncio
import logging
from collections import defaultdict
from collections.abc import Awaitable, Sequence
from typing import TypeVar

from langchain_core.documents import Document

from ....modules.errors import MilvusFailure, ModelCallError, ModelSetupError
from ....modules.memory.turns import (
    ChunkRef,
    OpenTurn,
    QaPair,
    given_id,
    imported_turn,
    is_on_path,
    path_spans,
    utc_now,
)
from ...rag.graph import RagGraph
from .context import TurnContext, TurnLimits
from .state import TurnState

logger = logging.getLogger(__name__)

T = TypeVar("T")


async def chunks_of(refs: Sequence[ChunkRef], rag: RagGraph) -> list[Document]:
    """Read the chunks of the refs, in their order, without those of web searches and deleted trees.

    It reads the newest state of each search tree.
    """
    by_thread: defaultdict[str, set[str]] = defaultdict(set)
    for ref in refs:
        if ref["thread_id"]:
            by_thread[ref["thread_id"]].add(ref["chunk_id"])
    found: dict[str, Document] = {}
    for thread_id, wanted in by_thread.items():
        snapshot = await rag.aget_state({"configurable": {"thread_id": thread_id}})
        for chunk in snapshot.values.get("similar_chunks", ()):
            if chunk.metadata["chunk_id"] in wanted:
                found[str(chunk.metadata["chunk_id"])] = chunk
    return [found[ref["chunk_id"]] for ref in refs if ref["chunk_id"] in found]


async def load_history(context: TurnContext, turn: OpenTurn, given: Sequence[tuple[str, str]]) -> TurnState:
    """Make the initial state of a turn: its question, and its history from the path or as ``given`` by the caller.

    It first adds turns that the memory is missing. If the memory or its embedder cannot be reached, the turn is
    answered from what the state of the conversation has, which then keeps all its turns.

    Raises:
        CollectionError: The memory is not one, or comes from another embedder.
        ModelSetupError: The embedder's key, model or address is wrong.
    """
    is_there = await _unless_down(_keep_in_memory(context), if_down=False)
    loaded = await _load(context, turn, given, is_there=is_there)
    return loaded if is_there else loaded | {"unremembered": True}


async def _load(context: TurnContext, turn: OpenTurn, given: Sequence[tuple[str, str]], *, is_there: bool) -> TurnState:
    """Make the initial state, from the conversation's state alone if the memory is not there."""
    if given:
        return TurnState(open_turn=turn, history=_given_turns(given), summary="", to_fold=[])
    state = context.conversation
    last = turn["turn_number"] - 1
    spans = path_spans(state["branches"], turn["branch_id"], last)
    if not spans:
        return TurnState(open_turn=turn, history=[], summary="", to_fold=[])
    limits, folds = context.limits, context.options.summary_memory
    wanted = turns_of_state(limits, folds=folds)
    path = {pair["turn_number"]: pair for pair in state["chat_history"] if is_on_path(pair, spans)}
    if is_there and len(path) < min(wanted, last):
        reading = asyncio.to_thread(context.memory.get_recent_history, context.conversation_id, wanted, spans=spans)
        older = await _unless_down(reading, if_down=[])
        path = {pair["turn_number"]: pair for pair in older} | path  # the state is newer than the memory
    ordered = [path[number] for number in sorted(path)][-wanted:]
    summary, recent = _after_summary(ordered) if folds else ("", ordered)
    to_fold: list[QaPair] = []
    if folds and len(recent) >= 2 * limits.max_recent_turns:
        to_fold = first_within(recent[: -limits.max_recent_turns], limits.max_tokens // 2)
    recent = newest_within(recent[-limits.max_recent_turns :] if to_fold else recent, limits.max_tokens // 4)
    below = recent[0]["turn_number"] if recent else last + 1
    relevant = await _unless_down(_relevant(context, turn["query"], spans, below), if_down=[]) if is_there else []
    return TurnState(open_turn=turn, history=[*relevant, *recent], summary=summary, to_fold=to_fold)


def _given_turns(pairs: Sequence[tuple[str, str]]) -> list[QaPair]:
    """Make turns of (question, answer) pairs, all else unknown."""
    turns: list[QaPair] = []
    for number, (query, answer) in enumerate(pairs, start=1):
        parent = turns[-1] if turns else None
        turns.append(imported_turn(query, answer, parent=parent, turn_id=given_id(number), timestamp=utc_now()))
    return turns


async def _unless_down(reading: Awaitable[T], *, if_down: T) -> T:
    """Return what the memory gives, or ``if_down``, with a warning, if it or its embedder cannot be reached."""
    try:
        return await reading
    except ModelSetupError:
        raise
    except (MilvusFailure, ModelCallError) as error:
        logger.warning("The memory cannot be reached, and the turn is answered without it (%s)", error)
        return if_down


async def _keep_in_memory(context: TurnContext) -> bool:
    """Add the turns of the state that the memory is missing, since a crash may fall between saving and remembering.

    Returns True.
    """
    by_id = {turn["turn_id"]: turn for turn in context.conversation["chat_history"]}
    missing = await asyncio.to_thread(context.memory.missing, context.conversation_id, list(by_id))
    if missing:
        late = [turn for turn_id, turn in by_id.items() if turn_id in missing]
        await asyncio.to_thread(context.memory.add_turns, context.conversation_id, late)
    return True


def _after_summary(path: list[QaPair]) -> tuple[str, list[QaPair]]:
    """Return the newest summary on the path, and the turns after those it covers."""
    for place in range(len(path) - 1, -1, -1):
        if path[place]["summary"]:
            return path[place]["summary"], path[place + 1 :]
    return "", path


def turns_of_state(limits: TurnLimits, *, folds: bool) -> int:
    """Return the number of turns of a path that a turn reads: those a prompt shows, and with a summary those to fold.

    A fold is due every ``max_recent_turns`` turns, once there are twice as many. A failed fold is repeated at the next
    turn, which then has more turns to read.
    """
    return limits.max_recent_turns * (4 if folds else 1)


def first_within(turns: Sequence[QaPair], tokens: int) -> list[QaPair]:
    """Return as many of the first turns as ``tokens`` allow, at least one."""
    kept: list[QaPair] = []
    for turn in turns:
        tokens -= turn["token_count"]
        if kept and tokens < 0:
            break
        kept.append(turn)
    return kept


def newest_within(turns: Sequence[QaPair], tokens: int) -> list[QaPair]:
    """Return as many of the newest turns as ``tokens`` allow, at least one."""
    return first_within(turns[::-1], tokens)[::-1]


def path_order(*turns: QaPair) -> list[QaPair]:
    """Return turns of one path, each once, in the order of the path."""
    by_number = {turn["turn_number"]: turn for turn in turns}
    return [by_number[number] for number in sorted(by_number)]


async def _relevant(context: TurnContext, query: str, spans: dict[str, int], below_number: int) -> list[QaPair]:
    """Return older turns of the path that are most similar to the question, in the order of the path."""
    wanted = context.limits.max_relevant_turns
    if below_number <= 1 or not wanted:
        return []
    found = await asyncio.to_thread(
        context.memory.retrieve_relevant_history,
        context.conversation_id,
        query,
        wanted,
        spans=spans,
        below_number=below_number,
    )
    return path_order(*first_within([turn for turn, _ in found], context.limits.max_tokens // 8))
