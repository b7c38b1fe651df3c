"""Dialogues played through conversations, turn by turn, and figures of the results."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Mapping

from judgetree.evaluation.datasets.standards_dialogues import Dialogue, WrittenTurn, standalone_question
from judgetree.graphs.conversation.turn.result import TurnResult
from judgetree.graphs.conversations import Conversations
from tests.graphs.conversation.talk import saved

from .corpus import is_right

Played = Mapping[int, TurnResult]
"""Results by the number of the turn in its dialogue."""


async def play(talks: Conversations, dialogue: Dialogue, name: str) -> Played:
    """Ask all turns of a dialogue in one conversation, each after its parent."""
    talk, results = talks.conversation(name), dict[int, TurnResult]()
    for turn in dialogue.turns:
        parent = results[turn.parent].turn_id if turn.parent else None
        results[turn.turn] = await talk.aask(turn.question, parent_turn_id=parent)
    return results


async def play_all(talks: Conversations, dialogues: Iterable[Dialogue]) -> dict[str, Played]:
    """Ask all dialogues at once, each in a conversation of its own; returns the results by dialogue."""
    rows = list(dialogues)
    played = await asyncio.gather(*(play(talks, dialogue, dialogue.id) for dialogue in rows))
    return {dialogue.id: results for dialogue, results in zip(rows, played, strict=True)}


async def ask_alone(talks: Conversations, dialogues: Iterable[Dialogue]) -> dict[str, Played]:
    """Ask each stand-alone question in a conversation of its own; returns the results by dialogue."""
    rows = [(dialogue, turn) for dialogue in dialogues for turn in dialogue.turns]
    results = await asyncio.gather(
        *(talks.conversation(f"{dialogue.id}/{turn.turn}").aask(turn.standalone) for dialogue, turn in rows)
    )
    alone: dict[str, dict[int, TurnResult]] = {}
    for (dialogue, turn), result in zip(rows, results, strict=True):
        alone.setdefault(dialogue.id, {})[turn.turn] = result
    return dict(alone)


def turn_is_right(dialogue: Dialogue, turn: WrittenTurn, played: Played) -> bool:
    """Whether the answer is the gold one, or a refusal if nothing can be known."""
    result = played[turn.turn]
    return is_right(standalone_question(dialogue, turn.turn), result.answer, result.status)


def chunk_ids(result: TurnResult) -> set[str]:
    """Return the ids of the chunks in the evidence of the answer."""
    return {ref["chunk_id"] for ref in saved(result)["chunks"]}
