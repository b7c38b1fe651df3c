"""A turn that a call has started, and what it came to."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass

from ...modules.calls.record import CallRecord
from ...modules.calls.usage import UsageTotals
from ...modules.memory.turns import OpenTurn, QaPair, rag_thread_of
from ..rag.search_tree import SearchTree
from .delivery import Delivery
from .services import OpenStores
from .turn.state import ConversationState
from .turn.store import turn_thread


@dataclass(frozen=True, kw_only=True)
class StartedTurn:
    """A turn that was opened now, resumed, or saved by an earlier call."""

    turn: OpenTurn | QaPair
    resumed: bool
    state: ConversationState
    saved: QaPair | None = None
    """The turn, if an earlier call saved it."""

    @property
    def branch(self) -> str:
        """Name of its branch."""
        return self.state["branches"][self.turn["branch_id"]]["name"]


@dataclass(frozen=True, kw_only=True)
class Outcome:
    """What a turn came to: it is saved, or stays open with an error."""

    saved: QaPair | None = None
    error: str = ""
    standalone_query: str
    tree: SearchTree | None
    usage: UsageTotals
    calls: tuple[CallRecord, ...] = ()


async def delete_delivered_thread(started: StartedTurn, delivery: Delivery | None, opened: OpenStores) -> None:
    """Delete the thread of a saved turn once its answer has arrived: until then the same question finds the turn by it.

    Hold the conversation meanwhile, so that a question asked again on purpose is not taken for one of a lost answer.
    """

    async def forget() -> None:
        if delivery is None or await delivery.wait():
            conversation_id, turn_id = started.state["conversation_id"], started.turn["turn_id"]
            await opened.store.delete_threads([turn_thread(rag_thread_of(conversation_id, turn_id))])
            opened.finished_turns[conversation_id] = turn_id

    forgetting = asyncio.create_task(forget())
    try:
        await asyncio.shield(forgetting)
    except asyncio.CancelledError:  # by a caller who leaves, mostly with the answer
        if delivery is not None:
            delivery.give_up()
        await asyncio.gather(forgetting, return_exceptions=True)
        raise
