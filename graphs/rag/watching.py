"""Watching a search tree grow, whichever process runs it. No model is called."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from dataclasses import dataclass

from ...modules.errors import UnknownThread
from ..tree.following import TreeFollower
from ..tree.history import StateHistory
from .model_calls import transcripts_of
from .search_tree import SearchTree


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How often a watched tree is read."""

    least_s: float = 0.1
    """Pause after a change."""
    most_s: float = 1.0
    """Longest pause; each without a change is half as long again as the one before."""
    share: float = 0.2
    """Largest part of the time that is spent on reading."""
    failed_s: float = 3.0
    """Time without a change after which a failed tree is taken for ended."""
    appear_s: float = 0.0
    """Time in which a thread may appear that does not exist yet."""


async def watch_tree(graph: StateHistory, thread_id: str, pace: Pace | None = None) -> AsyncGenerator[SearchTree]:
    """Yield the tree as it is, then again after each change, until its root has finished, or has failed and rests.

    A tree that is open and that nothing runs is watched for as long as the caller wants. What is seen is what is saved:
    with the durability ``exit``, each thread as a whole once it has ended.

    Raises:
        UnknownThread: The thread does not exist, or was deleted meanwhile.
    """
    pace = pace or Pace()
    follower = TreeFollower(graph, thread_id)
    pause, changed_at = pace.least_s, time.monotonic()
    tree: SearchTree | None = None
    while True:
        began = time.monotonic()
        try:
            saved = await follower.read()
        except UnknownThread:
            if tree is not None or began - changed_at >= pace.appear_s:
                raise
            saved = None
        ended = time.monotonic()
        pause = min(pause * 1.5, pace.most_s)
        if saved is not None:
            pause, changed_at = pace.least_s, ended
            tree = SearchTree(root=saved[0], fingerprint=saved[1], transcripts=transcripts_of(graph))
            yield tree
        if tree is not None and _is_over(tree, rested_s=ended - changed_at, pace=pace):
            return
        await asyncio.sleep(max(pause, (ended - began) / pace.share))


def _is_over(tree: SearchTree, *, rested_s: float, pace: Pace) -> bool:
    status = tree.root.status
    return status == "finished" or (status == "failed" and rested_s >= pace.failed_s)
