"""Turns that another program wrote without saying what they follow, put in a line."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from .memory import ConversationMemory
from .turns import MAIN_BRANCH, QaPair


def backfill(memory: ConversationMemory, session_id: str | None = None, *, dry_run: bool = False) -> int:
    """Chain the turns without a parent in the order of their times (of one time, by id); how many there are.

    Each follows the one before it, the first of a session the last turn of its main branch; where there is none, it
    becomes a first turn. Done again it finds nothing to do, and after an interruption it goes on where it stopped.

    Args:
        memory: Where the turns are.
        session_id: One session; None for all.
        dry_run: Count, and change nothing.

    Raises:
        CollectionError: The memory cannot be used.
    """
    unlinked = memory.records_without_parent(session_id)
    if not dry_run:
        for session, turns in unlinked.items():
            ids = {turn["turn_id"] for turn in turns}
            last = _last_of_main(turn for turn in memory.turns_of(session) if turn["turn_id"] not in ids)
            memory.set_parents(session, chained(turns, after=last))
    return sum(map(len, unlinked.values()))


def chained(turns: Sequence[QaPair], *, after: QaPair | None) -> list[QaPair]:
    """The turns on the main branch, each as the child of the one before it; ``after`` stands before the first."""
    chain: list[QaPair] = []
    for turn in turns:
        parent = chain[-1] if chain else after
        chain.append(
            {
                **turn,
                "parent_turn_id": parent["turn_id"] if parent else "",
                "branch_id": MAIN_BRANCH,
                "turn_number": parent["turn_number"] + 1 if parent else 1,
            }
        )
    return chain


def _last_of_main(turns: Iterable[QaPair]) -> QaPair | None:
    main = (turn for turn in turns if turn["branch_id"] == MAIN_BRANCH)
    return max(main, key=lambda turn: (turn["turn_number"], turn["turn_id"]), default=None)
