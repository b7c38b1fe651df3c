"""The model calls of a turn: its own, those of its search, and those that no checkpoint has yet."""

from __future__ import annotations

from collections.abc import Sequence

from ...modules.calls.journal import CallJournal
from ...modules.calls.record import CallRecord
from ..rag.search_tree import SearchTree
from ..threads.state import merge_usage


def calls_of_turn(own: Sequence[CallRecord], tree: SearchTree | None) -> tuple[CallRecord, ...]:
    """Return a turn's own calls and those that its search paid for."""
    nodes = tree.query_nodes() if tree else ()
    return (*own, *(record for node in nodes for record in node.paid))


async def calls_so_far(
    own: Sequence[CallRecord], tree: SearchTree | None, journal: CallJournal | None, *roots: str
) -> tuple[CallRecord, ...]:
    """Return all calls of an unfinished turn, those in flight when it ended by their estimates.

    ``own`` and ``tree`` are what the checkpoints have; the journal of calls adds what the ``roots``, the threads of the
    turn and of its search, had made since.
    """
    saved = calls_of_turn(own, tree)
    if journal is None:
        return saved
    known = {record["call_id"] for record in saved}
    known |= {record["call_id"] for node in (tree.query_nodes() if tree else ()) for record in node.usage}
    journaled: list[CallRecord] = []
    for root in roots:
        calls = await journal.calls_of(root)
        journaled += [record for call in calls.values() for record in call.records]
    return (*saved, *(record for record in merge_usage([], journaled) if record["call_id"] not in known))
