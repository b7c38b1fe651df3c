"""All turns of the project's own dialogues with the scripted model, and each turn's question alone.

The scripted model knows the meaning of each question and the content of each passage, so this proves the machinery, not
the method: a wrong turn was not found by the search, or was lost between turns.
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from judgetree.evaluation.datasets.standards_dialogues import Dialogue, WrittenTurn, load_dialogues
from judgetree.graphs.conversation.turn.result import TurnResult
from judgetree.graphs.conversations import Conversations
from judgetree.modules.settings import Settings

from .corpus import COLLECTION, DATA, scripted_standards
from .measurement import Row
from .played import ask_alone, chunk_ids, play_all, saved, turn_is_right

SYSTEM_NAMES: tuple[str, ...] = ("judge", "naive")
TOPK = 5
CALLS_FROM_HISTORY = 3


class Asked(NamedTuple):
    """Results of a turn, in its dialogue and alone."""

    dialogue: Dialogue
    turn: WrittenTurn
    is_right: bool
    is_right_alone: bool
    result: TurnResult
    alone: TurnResult


def measure() -> list[Row]:
    """Measure each system."""
    dialogues = load_dialogues(DATA / "standards_dialogues.jsonl")
    with scripted_standards(dialogues=dialogues) as (_, settings):
        return [row for system in SYSTEM_NAMES for row in _rows_of(system, ask_turns(system, dialogues, settings))]


def own_store(settings: Settings, name: str) -> Settings:
    """Return the settings with a checkpoint store and a memory of that name."""
    store = f"sqlite:///{settings.home / name}.sqlite"
    return settings.model_copy(update={"checkpoints": store, "conversation_collection": f"talks_{name}"})


def ask_turns(system: str, dialogues: Sequence[Dialogue], settings: Settings) -> list[Asked]:
    """Ask all turns of all dialogues at once, then each turn's stand-alone question by itself."""
    with Conversations(COLLECTION, system=system, topk=TOPK, settings=own_store(settings, system)) as talks:
        played, alone = asyncio.run(play_all(talks, dialogues)), asyncio.run(ask_alone(talks, dialogues))
    return [
        Asked(
            dialogue,
            turn,
            turn_is_right(dialogue, turn, played[dialogue.id]),
            turn_is_right(dialogue, turn, alone[dialogue.id]),
            played[dialogue.id][turn.turn],
            alone[dialogue.id][turn.turn],
        )
        for dialogue in dialogues
        for turn in dialogue.turns
    ]


def _rows_of(system: str, asked: Sequence[Asked]) -> list[Row]:
    lost = [each for each in asked if each.is_right_alone and not each.is_right]
    switches = [each for each in asked if each.turn.topic_switch]
    strangers = [each for each in switches if not chunk_ids(each.result) <= chunk_ids(each.alone)]
    from_history = [each for each in asked if each.turn.from_history and each.is_right]
    searched = [each for each in from_history if _searched_or_dear(each.result)]
    right, alone = sum(each.is_right for each in asked), sum(each.is_right_alone for each in asked)
    return [
        Row(f"{system}, turns answered right", f"{right}/{len(asked)}", note=f"their questions alone {alone}"),
        Row(f"{system}, right alone and wrong in its dialogue", f"{len(lost)}/{alone}", "none", holds=not lost),
        Row(
            f"{system}, topic switches that use a chunk which their own search does not find",
            f"{len(strangers)}/{len(switches)}",
            "none",
            holds=not strangers,
        ),
        Row(
            f"{system}, right turns from history that searched or took over {CALLS_FROM_HISTORY} calls",
            f"{len(searched)}/{len(from_history)}",
            "none",
            holds=not searched,
        ),
    ]


def _searched_or_dear(result: TurnResult) -> bool:
    turn = saved(result)
    return bool(turn["rag_thread_id"]) or turn["usage"]["llm_calls"] > CALLS_FROM_HISTORY
