"""Which turns a prompt shows, from the state and from the memory, and the chunks that turns rest on."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass

from langchain_core.documents import Document

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


async def chunks_of(refs: Sequence[ChunkRef], rag: RagGraph) -> list[Document]:
    """The chunks of the refs, in their order; those of a web search, and of a tree that is gone, are left out.

    Costs one reading of the newest state for each search tree.
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
    """What a turn starts from: its question, and the turns before it along its path, or as the caller gave them.

    Brings the memory up to date first.

    Raises:
        CollectionError: The memory cannot be read or written.
    """
    await _keep_in_memory(context)
    read = _History(turns=_given_turns(given, utc_now())) if given else await _read_history(context, turn)
    return TurnState(open_turn=turn, history=read.turns, summary=read.summary, to_fold=list(read.to_fold))


@dataclass(frozen=True, kw_only=True)
class _History:
    """The turns before a question, as far as a prompt shows them."""

    turns: list[QaPair]
    """Along the path; there may be gaps."""
    summary: str = ""
    """Of the turns before the newest ones."""
    to_fold: tuple[QaPair, ...] = ()
    """Turns that the summary is due to take in, in their order."""


async def _read_history(context: TurnContext, turn: OpenTurn) -> _History:
    state = context.conversation
    last = turn["turn_number"] - 1
    spans = path_spans(state["branches"], turn["branch_id"], last)
    if not spans:
        return _History(turns=[])
    limits, folds = context.limits, context.options.summary_memory
    wanted = turns_of_state(limits, folds=folds)
    path = {pair["turn_number"]: pair for pair in state["chat_history"] if is_on_path(pair, spans)}
    if len(path) < min(wanted, last):
        older = await asyncio.to_thread(context.memory.get_recent_history, context.conversation_id, wanted, spans=spans)
        path = {pair["turn_number"]: pair for pair in older} | path  # what the state says is newer
    ordered = [path[number] for number in sorted(path)][-wanted:]
    summary, recent = _after_summary(ordered) if folds else ("", ordered)
    to_fold: list[QaPair] = []
    if folds and len(recent) >= 2 * limits.max_recent_turns:
        to_fold = first_within(recent[: -limits.max_recent_turns], limits.max_tokens // 2)
    recent = newest_within(recent[-limits.max_recent_turns :] if to_fold else recent, limits.max_tokens // 4)
    relevant = await _relevant(context, turn["query"], spans, recent[0]["turn_number"] if recent else last + 1)
    return _History(turns=[*relevant, *recent], summary=summary, to_fold=tuple(to_fold))


def _given_turns(pairs: Sequence[tuple[str, str]], timestamp: str) -> list[QaPair]:
    """No more is known of them than what was said."""
    turns: list[QaPair] = []
    for number, (query, answer) in enumerate(pairs, start=1):
        parent = turns[-1] if turns else None
        turns.append(imported_turn(query, answer, parent=parent, turn_id=given_id(number), timestamp=timestamp))
    return turns


async def _keep_in_memory(context: TurnContext) -> None:
    """A turn is saved before it is remembered; what a crash kept from being remembered is made up for here."""
    by_id = {turn["turn_id"]: turn for turn in context.conversation["chat_history"]}
    missing = await asyncio.to_thread(context.memory.missing, context.conversation_id, list(by_id))
    if missing:
        late = [turn for turn_id, turn in by_id.items() if turn_id in missing]
        await asyncio.to_thread(context.memory.add_turns, context.conversation_id, late)


def _after_summary(path: list[QaPair]) -> tuple[str, list[QaPair]]:
    """The newest summary on the path, and the turns after the one that it reaches to."""
    for place in range(len(path) - 1, -1, -1):
        if path[place]["summary"]:
            return path[place]["summary"], path[place + 1 :]
    return "", path


def turns_of_state(limits: TurnLimits, *, folds: bool) -> int:
    """How many turns of a path are looked at: what a prompt shows, and with a summary what that may have to take in.

    A fold is due every ``max_recent_turns`` turns, once there are twice as many; one that fails is tried again at the
    next turn, so that there are some more.
    """
    return limits.max_recent_turns * (4 if folds else 1)


def first_within(turns: Sequence[QaPair], tokens: int) -> list[QaPair]:
    """The first turns, as many as have no more tokens together, and the very first in any case."""
    kept: list[QaPair] = []
    for turn in turns:
        tokens -= turn["token_count"]
        if kept and tokens < 0:
            break
        kept.append(turn)
    return kept


def newest_within(turns: Sequence[QaPair], tokens: int) -> list[QaPair]:
    """The newest turns, as many as have no more tokens together, and the very newest in any case."""
    return first_within(turns[::-1], tokens)[::-1]


def in_line(*turns: QaPair) -> list[QaPair]:
    """Turns of one path, each once, in the order of the path."""
    by_number = {turn["turn_number"]: turn for turn in turns}
    return [by_number[number] for number in sorted(by_number)]


async def _relevant(context: TurnContext, query: str, spans: dict[str, int], below_number: int) -> list[QaPair]:
    """Older turns of the path that are most like the question, in the order of the path."""
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
    return in_line(*first_within([turn for turn, _ in found], context.limits.max_tokens // 8))
