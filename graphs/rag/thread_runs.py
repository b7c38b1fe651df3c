"""How a thread is run: started, resumed or read, and by one caller at a time in a process."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass, replace
from typing import cast

from langchain_core.runnables import RunnableConfig
from langgraph.runtime import Runtime
from langgraph.types import StateSnapshot

from ...modules.background_loop import BackgroundLoop, background_loop
from ...modules.errors import BudgetSpent, ModelCallError
from ...modules.formats import check_id
from ..threads.branches import Branches
from ..threads.checkpoints import Saver
from ..threads.context import Compiled, RunContext
from ..threads.snapshots import ThreadStatus, is_finished, is_unasked, status_of
from ..threads.state import AnswerStatus, RagState


def thread_config(context: RunContext) -> RunnableConfig:
    """A fresh config for the thread of ``context``.

    Made anew rather than spread from the parent's: that would save a sub-run under the parent's namespace, where its
    own thread has no history.
    """
    return {"configurable": {"thread_id": context.thread_id}, "metadata": dict(context.metadata())}


def check_thread(config: RunnableConfig) -> None:
    """Do nothing if every store can keep the thread's id.

    Raises:
        SettingsError: It is too long, or holds NUL or half a surrogate pair.
    """
    check_id("The thread id", config.get("configurable", {}).get("thread_id", ""))


@dataclass(frozen=True, kw_only=True)
class ThreadSummary:
    """One root thread in a line."""

    thread_id: str
    query: str
    system: str
    status: ThreadStatus
    answer_status: AnswerStatus | None
    created_at: str
    """ISO 8601, UTC; of the newest checkpoint."""


async def list_root_threads(graph: Compiled, limit: int) -> list[ThreadSummary]:
    """The newest ``limit`` root threads of a graph's store, newest first; reads every root checkpoint's header."""
    saver = cast(Saver, graph.checkpointer)
    thread_ids: dict[str, str] = {}
    async for saved in saver.alist(None, filter={"depth": 0}):
        thread_ids.setdefault(str(saved.config["configurable"]["thread_id"]), saved.checkpoint["ts"])
    newest = sorted(thread_ids, key=lambda thread_id: thread_ids[thread_id], reverse=True)[:limit]
    return [
        _summary(thread_id, await graph.aget_state({"configurable": {"thread_id": thread_id}})) for thread_id in newest
    ]


def _summary(thread_id: str, snapshot: StateSnapshot) -> ThreadSummary:
    values = snapshot.values
    return ThreadSummary(
        thread_id=thread_id,
        query=str(values.get("query", "")),
        system=str(values.get("fingerprint", {}).get("system", "")),
        status=status_of(snapshot),
        answer_status=values.get("status"),
        created_at=snapshot.created_at or "",
    )


async def run_sub_thread(query: str, thread_id: str, runtime: Runtime[RunContext]) -> RagState:
    """The final state of a sub-question's thread, in as few calls as its checkpoints allow: none if it is finished.

    Raises:
        BudgetSpent: No call is left for its answer.
        ModelCallError: Its answer failed after the last attempt; its thread stays open for a resume.
    """
    parent = runtime.context
    child = replace(
        parent,
        thread_id=thread_id,
        parent_thread_id=parent.thread_id,
        depth=parent.depth + 1,
        branches=Branches(),
        calls=parent.calls.of_thread(thread_id) if parent.calls else None,
        emit_to=parent.emit_to or runtime.stream_writer,
    )
    config = thread_config(child)
    snapshot = await parent.graph.aget_state(config) if parent.graph.checkpointer else None
    is_new = snapshot is None or is_unasked(snapshot)
    if snapshot is not None and not is_new and is_finished(snapshot):
        parent.budget.release(thread_id)
        return cast(RagState, snapshot.values)
    if not parent.budget.hold(thread_id):
        raise BudgetSpent(f"not asked: the budget of {parent.budget.limit} model calls is spent")
    try:
        final = await parent.graph.ainvoke(
            RagState(query=query) if is_new else None,
            config,
            context=child,
            durability=parent.durability if parent.graph.checkpointer else None,
        )
    finally:
        parent.budget.release(thread_id)
    return cast(RagState, final)


ThreadKey = tuple[str, str]
"""The store, and the thread in it."""

_HELD: ContextVar[frozenset[ThreadKey]] = ContextVar("_HELD", default=frozenset())


class _Entry:
    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.users = 0
        self.failures = 0
        self.failure: ModelCallError | None = None


class Turn:
    """The right to run a thread."""

    def __init__(self, entry: _Entry, failures_seen: int) -> None:
        self._entry = entry
        self._failures_seen = failures_seen

    def check(self) -> None:
        """Raise what ended the run that was waited for.

        Raises:
            ModelCallError: That run failed, so that the same would fail again.
        """
        if self._entry.failure is not None and self._entry.failures > self._failures_seen:
            raise self._entry.failure

    def fail(self, failure: ModelCallError) -> None:
        """Tell those who wait that the run has failed."""
        self._entry.failures += 1
        self._entry.failure = failure


class ThreadRuns:
    """The threads that are being run on one event loop."""

    def __init__(self) -> None:
        self._entries: dict[ThreadKey, _Entry] = {}

    @asynccontextmanager
    async def turn(self, key: ThreadKey) -> AsyncIterator[Turn]:
        """Wait until no one else runs the thread, then hold it; at once where the caller ``holds`` it already."""
        if key in _HELD.get():
            yield Turn(_Entry(), 0)
            return
        entry = self._entries.setdefault(key, _Entry())
        entry.users += 1
        failures_seen = entry.failures
        try:
            async with entry.lock:
                yield Turn(entry, failures_seen)
        finally:
            entry.users -= 1
            if not entry.users:
                self._entries.pop(key, None)

    @asynccontextmanager
    async def held(self, key: ThreadKey) -> AsyncIterator[Turn]:
        """``turn`` for a coroutine that calls others which take turns at the same thread. Not for generators."""
        async with self.turn(key) as turn:
            token = _HELD.set(_HELD.get() | {key})
            try:
                yield turn
            finally:
                _HELD.reset(token)


def thread_runs() -> ThreadRuns:
    """Those of this process."""
    return _on(background_loop())


@functools.cache
def _on(loop: BackgroundLoop) -> ThreadRuns:
    return ThreadRuns()
