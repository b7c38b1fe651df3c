"""Watching a search tree grow, also in another process. No model is called."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial

from ...modules.digests import text_digest
from ..threads.checkpoints import thread_marks
from ..tree.following import TreeFollower
from .graph import RagGraph
from .search_tree import SearchTree

_DIGEST_DIGITS = 32


@dataclass(frozen=True, kw_only=True)
class Pace:
    """How often a watched tree is read."""

    least_s: float = 0.1
    """Pause after a change."""
    most_s: float = 1.0
    """Longest pause; each without a change is half as long again as the one before."""
    share: float = 0.2
    """Part of the time that is spent on reading, unless that makes pauses longer than ``longest_s``."""
    longest_s: float = 5.0
    failed_s: float = 3.0
    """Time without a change after which a failed tree is taken for ended."""


@dataclass(frozen=True, kw_only=True)
class TreeState:
    """One state of a tree that grows."""

    tree: SearchTree
    text: str
    """Its JSON document."""
    digest: str
    """Digest of the document, the same in every process."""

    @classmethod
    def of(cls, tree: SearchTree) -> TreeState:
        """Write the document of a tree; 1,000 chunks take some 0.1 s."""
        text = tree.to_json()
        return cls(tree=tree, text=text, digest=text_digest(text).hex()[:_DIGEST_DIGITS])


class TreeWatch:
    """One tree, read again and again as long as somebody watches it. Use it on judgetree's own loop."""

    def __init__(self, graph: RagGraph, thread_id: str, pace: Pace | None = None) -> None:
        """Read nothing yet; the graph is of the system that wrote the thread."""
        self._graph = graph
        self._thread_id = thread_id
        self._pace = pace or Pace()
        self._watchers = 0
        self._reading: asyncio.Task[None] | None = None
        self._nudge = asyncio.Event()
        self._changed = asyncio.Condition()
        self._begun = self._read = self._number = 0
        """Reads that were begun, the last one that was completed, and states."""
        self._state: TreeState | None = None
        self._error: Exception | None = None
        self._is_over = False

    @property
    def watchers(self) -> int:
        """Number of current watchers."""
        return self._watchers

    async def states(self) -> AsyncGenerator[TreeState]:
        """Yield the tree as it is now, then its newest state after each change, until it has ended.

        That is when its root has finished, or has failed and rests. A tree that is open and that nothing runs has no
        end. What is seen is what is saved: with the durability ``exit``, each thread as a whole once it has ended. A
        watcher who is slow is spared the states in between.

        Raises:
            UnknownThread: The thread does not exist, or was deleted meanwhile.
        """
        self._watchers += 1
        try:
            self._start()
            seen, fresh = 0, self._begun + 1  # what an earlier read has seen may be older than what the watcher knows
            self._nudge.set()
            while True:
                async with self._changed:
                    while not (self._is_over or self._has_news(seen, fresh)):
                        await self._changed.wait()
                    number, state = self._number, self._state
                if number > seen and state is not None and self._error is None:
                    seen = number
                    yield state
                elif self._is_over:
                    break
            if self._error is not None:
                raise self._error
        finally:
            self._watchers -= 1
            if not self._watchers and self._reading is not None:
                self._reading.cancel()
                self._reading = None  # who comes next does not wait for one that ends

    def _start(self) -> None:
        if self._reading is None or self._is_over:
            self._is_over, self._error = False, None
            self._reading = asyncio.create_task(self._read_on())

    def _has_news(self, seen: int, fresh: int) -> bool:
        return self._number > seen and self._read >= fresh

    async def _read_on(self) -> None:
        """Read until the tree has ended; errors are kept for the watchers."""
        try:
            store = await self._graph.aopen_store()
            follower = TreeFollower(self._graph, self._thread_id, marks=partial(thread_marks, store) if store else None)
            pause, changed_at = self._pace.least_s, time.monotonic()
            while not self._is_over:
                self._nudge.clear()
                self._begun += 1
                took = time.monotonic()
                has_changed = await self._read_once(follower)
                took, now = time.monotonic() - took, time.monotonic()
                changed_at = now if has_changed else changed_at
                pause = self._pace.least_s if has_changed else min(pause * 1.5, self._pace.most_s)
                self._is_over = self._has_ended(rested_s=now - changed_at)
                self._read = self._begun
                await self._notify()
                await self._rest(max(pause, min(took / self._pace.share, self._pace.longest_s)))
        except Exception as error:  # noqa: BLE001 - raised again for each watcher
            self._error = error
        if self._reading is asyncio.current_task():
            self._is_over = True
            await self._notify()

    async def _read_once(self, follower: TreeFollower) -> bool:
        """Read the tree; returns whether its document has changed."""
        saved = await follower.read()
        if saved is None:
            return False
        tree = SearchTree(root=saved[0], fingerprint=saved[1], transcripts=self._graph.transcripts)
        state = await asyncio.to_thread(TreeState.of, tree)
        if self._state is not None and state.digest == self._state.digest:
            return False
        self._state = state
        self._number += 1
        return True

    def _has_ended(self, *, rested_s: float) -> bool:
        status = self._state.tree.root.status if self._state else "open"
        return status == "finished" or (status == "failed" and rested_s >= self._pace.failed_s)

    async def _rest(self, seconds: float) -> None:
        """Wait, but no longer than until somebody begins to watch."""
        if not self._is_over:
            with suppress(TimeoutError):
                async with asyncio.timeout(seconds):
                    await self._nudge.wait()

    async def _notify(self) -> None:
        async with self._changed:
            self._changed.notify_all()
