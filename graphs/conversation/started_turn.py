"""A turn that a call has started, and what it came to."""

from __future__ import annotations

from dataclasses import dataclass

from ...modules.calls.record import CallRecord
from ...modules.calls.usage import UsageTotals
from ...modules.memory.turns import OpenTurn, QaPair
from ..rag.search_tree import SearchTree
from .turn.state import ConversationState


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
