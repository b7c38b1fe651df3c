"""Runs of threads: sub-runs, the list of root threads, and leases that let one caller at a time run a thread."""

from __future__ import annotations

import asyncio
import functools
import logging
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any, cast

from langchain_core.runnables import RunnableConfig
from langgraph.types import StateSnapshot

from ...modules.background_loop import BackgroundLoop, background_loop
from ...modules.errors import BudgetSpent, LostParts, ModelCallError
from ..threads.amounts import keep_for_answer
from ..threads.candidates import findings_of, sub_runs_to_come
from ..threads.checkpoints import Saver, lists_as_saved
from ..threads.context import Compiled, RunContext
from ..threads.interrupts import interrupts_in, own_answers, raise_interrupts
from ..threads.snapshots import ThreadStatus, is_finished, is_new_thread, status_of
from ..threads.state import AnswerStatus, RagState
from ..tree.fork_record import Fork
from .nested import forward_own_stream

logger = logging.getLogger(__name__)


def thread_id_in(config: RunnableConfig) -> object:
    """Return the thread id of a config; an empty text if it has none."""
    return config.get("configurable", {}).get("thread_id", "")


@dataclass(frozen=True, kw_only=True)
class ThreadSummary:
    """Summary of a root thread."""

    thread_id: str
    query: str
    system: str
    status: ThreadStatus
    answer_status: AnswerStatus | None
    created_at: str
    """Time of the newest checkpoint: ISO 8601, UTC."""
    fork: str = ""
    """What a fork changed of which thread, in words; ``""`` for other threads."""


async def list_root_threads(graph: Compiled, limit: int) -> list[ThreadSummary]:
    """List the newest ``limit`` root threads of a graph's store, newest first; reads every root checkpoint's header.

    A thread of which the store has lost parts is left out, with a warning.
    """
    saver = cast(Saver, graph.checkpointer)
    thread_ids: dict[str, str] = {}
    async for saved in saver.alist(None, filter={"depth": 0}):
        thread_ids.setdefault(str(saved.config["configurable"]["thread_id"]), saved.checkpoint["ts"])
    # Savers that a caller gave may list thread by thread.
    newest = list(thread_ids) if lists_as_saved(saver) else sorted(thread_ids, key=thread_ids.__getitem__, reverse=True)
    found: list[ThreadSummary] = []
    for thread_id in newest[:limit]:
        try:
            found.append(_summary(thread_id, await graph.aget_state({"configurable": {"thread_id": thread_id}})))
        except LostParts as error:
            logger.warning("left out of the list: %s", error)
    return found


def _summary(thread_id: str, snapshot: StateSnapshot) -> ThreadSummary:
    values = snapshot.values
    return ThreadSummary(
        thread_id=thread_id,
        query=str(values.get("query", "")),
        system=str(values.get("fingerprint", {}).get("system", "")),
        status=status_of(snapshot),
        answer_status=values.get("status"),
        created_at=snapshot.created_at or "",
        fork=str(Fork.of_fingerprint(values.get("fingerprint", {})) or ""),
    )


async def saved_thread(thread_id: str, context: RunContext) -> StateSnapshot | None:
    """Return the newest checkpoint of a sub-run that an earlier run began; None for a new one."""
    if context.is_new or context.is_served or not context.graph.checkpointer:
        return None
    snapshot = await context.graph.aget_state({"configurable": {"thread_id": thread_id}})
    return None if is_new_thread(snapshot) else snapshot


async def run_sub_thread(query: str, child: RunContext, saved: StateSnapshot | None) -> RagState:
    """Start or resume the thread of a sub-question and return its final state; a finished thread costs no model call.

    Args:
        query: The sub-question.
        child: The context of its thread.
        saved: Its newest checkpoint; None for a new thread.

    Raises:
        BudgetSpent: No model call is left for the answer.
        GraphInterrupt: The sub-run waits for an answer, and so do the runs above it.
        ModelCallError: The answer failed after its last attempt; the thread stays open and can be resumed.
    """
    if child.is_served:
        return await _run_subgraph(query, child)
    if saved is not None:
        if is_finished(saved):
            _count_awaited(saved.values, child)
        announce_saved(saved, child)
        if is_finished(saved):
            return cast(RagState, saved.values)
    if not child.budget.reserve_answer(child.thread_id):
        raise BudgetSpent(f"not asked: the budget of {child.budget.limit} model calls is spent")
    # Nothing is copied from the parent's config: its namespace would hide the sub-run from its thread's history.
    config: RunnableConfig = {
        "configurable": {"thread_id": child.thread_id, **forward_own_stream()},
        "metadata": dict(child.metadata()),
    }
    waits = False
    try:
        final = await child.graph.ainvoke(
            RagState(query=query) if saved is None else own_answers(saved, child.answers),
            config,
            context=child,
            durability=child.durability if child.graph.checkpointer else None,
        )
        _count_awaited(final, child)
        waits = bool(interrupts_in(final))
    finally:
        if not waits:  # one that waits needs its calls once it is answered
            child.budget.release(child.thread_id)
    raise_interrupts(final)
    return cast(RagState, final)


def _count_awaited(state: Mapping[str, Any], child: RunContext) -> None:
    """Count the saved calls of a sub-run that none of its nodes came to again, such as the answer of one that ended."""
    for record in state.get("usage", ()):
        child.budget.count_replayed(record["call_id"], of=child.thread_id)


def announce_saved(saved: StateSnapshot, context: RunContext) -> None:
    """Tell the frontier what is saved of a resumed thread's search, as far as its nodes will not say it again."""
    to_come = [] if is_finished(saved) else sub_runs_to_come(saved)
    context.judge_calls.restore(saved, context.services.stop)
    if to_come is None:
        return
    state = cast(RagState, saved.values)
    if not is_finished(saved):
        keep_for_answer(state, context, to_ask=len(to_come))
    if context.frontier is not None:
        context.frontier.announce_candidates(context.thread_id, to_come, findings_of(state))


async def _run_subgraph(query: str, child: RunContext) -> RagState:
    """Run a sub-question as a subgraph of the current node: LangGraph resumes it and raises its interrupts."""
    if not child.budget.reserve_answer(child.thread_id):
        raise BudgetSpent(f"not asked: the budget of {child.budget.limit} model calls is spent")
    try:
        final = await child.graph.ainvoke(RagState(query=query), {"metadata": dict(child.metadata())}, context=child)
    finally:
        child.budget.release(child.thread_id)
    return cast(RagState, final)


ThreadKey = tuple[str, str]
"""Store and thread id."""

_HELD: ContextVar[frozenset[ThreadKey]] = ContextVar("_HELD", default=frozenset())


class _Entry:
    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.users = 0
        self.failures = 0
        self.failure: ModelCallError | None = None


class Lease:
    """The right to run a thread."""

    def __init__(self, entry: _Entry, failures_seen: int) -> None:
        self._entry = entry
        self._failures_seen = failures_seen

    def check(self) -> None:
        """Check that no other run of the thread failed while this lease waited.

        Raises:
            ModelCallError: Another run failed, so that the same model call would fail again.
        """
        if self._entry.failure is not None and self._entry.failures > self._failures_seen:
            raise self._entry.failure

    def fail(self, failure: ModelCallError) -> None:
        """Let ``check`` of all leases that are waiting raise ``failure``."""
        self._entry.failures += 1
        self._entry.failure = failure


class ThreadRuns:
    """The threads that are running on one event loop."""

    def __init__(self) -> None:
        self._entries: dict[ThreadKey, _Entry] = {}

    @asynccontextmanager
    async def leased(self, key: ThreadKey) -> AsyncIterator[Lease]:
        """Wait for the thread's lease and hold it inside; a caller inside ``held`` has the lease already."""
        if key in _HELD.get():
            yield Lease(_Entry(), 0)
            return
        entry = self._entries.setdefault(key, _Entry())
        entry.users += 1
        failures_seen = entry.failures
        try:
            async with entry.lock:
                yield Lease(entry, failures_seen)
        finally:
            entry.users -= 1
            if not entry.users:
                self._entries.pop(key, None)

    @asynccontextmanager
    async def held(self, key: ThreadKey) -> AsyncIterator[Lease]:
        """Hold the lease and share it with the coroutines awaited inside. Not for generators.

        A generator may resume in another context, where the context variable cannot be reset.
        """
        async with self.leased(key) as lease:
            token = _HELD.set(_HELD.get() | {key})
            try:
                yield lease
            finally:
                _HELD.reset(token)


def lock_of_thread(thread_id: str) -> str:
    """Return the name of the lock that the run of a root thread holds among the processes of its store."""
    return f"thread {thread_id}"


def thread_runs() -> ThreadRuns:
    """Return the running threads of this process."""
    return _on(background_loop())


@functools.cache
def _on(loop: BackgroundLoop) -> ThreadRuns:
    return ThreadRuns()
