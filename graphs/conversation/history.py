"""Which turns a prompt shows: the newest of a path from the conversation's state, older ones from the memory."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from ...modules.turns import OpenTurn, QaPair, imported_turn, is_on_path, path_spans, utc_now
from .context import TurnContext
from .state import TurnState


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
    wanted = 2 * limits.max_recent_turns if folds else limits.max_recent_turns
    path = [pair for pair in state["chat_history"] if is_on_path(pair, spans)]
    path.sort(key=lambda pair: pair["turn_number"])
    if len(path) < min(wanted, last):
        path = await asyncio.to_thread(context.memory.get_recent_history, context.conversation_id, wanted, spans=spans)
    summary, recent = _after_summary(path[-wanted:]) if folds else ("", path[-wanted:])
    to_fold: tuple[QaPair, ...] = ()
    if folds and len(recent) >= wanted:
        to_fold = tuple(recent[: -limits.max_recent_turns])
        recent = recent[-limits.max_recent_turns :]
    recent = _within(recent, limits.max_tokens // 4)
    relevant = await _relevant(context, turn["query"], spans, recent[0]["turn_number"] if recent else last + 1)
    return _History(turns=[*relevant, *recent], summary=summary, to_fold=to_fold)


def _given_turns(pairs: Sequence[tuple[str, str]], timestamp: str) -> list[QaPair]:
    """No more is known of them than what was said."""
    turns: list[QaPair] = []
    for number, (query, answer) in enumerate(pairs, start=1):
        parent = turns[-1] if turns else None
        turns.append(imported_turn(query, answer, parent=parent, turn_id=f"given-{number}", timestamp=timestamp))
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


def _within(turns: list[QaPair], tokens: int) -> list[QaPair]:
    """The newest turns that have no more tokens together, and the newest in any case."""
    kept: list[QaPair] = []
    for turn in reversed(turns):
        tokens -= turn["token_count"]
        if kept and tokens < 0:
            break
        kept.insert(0, turn)
    return kept


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
    return sorted((turn for turn, _ in found), key=lambda turn: turn["turn_number"])
