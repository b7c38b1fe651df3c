"""Checks the input of a run, before its first node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypedDict, cast

from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig
from langgraph.types import Command, StateSnapshot

from ...modules.calls.journal import forget_calls
from ...modules.errors import SettingsError, UnknownThread
from ...modules.storage.texts import check_text
from ..threads.context import RunContext
from ..threads.fingerprint import EXTRA_INPUTS, extra_inputs
from ..threads.interrupts import INTERRUPTS, interrupts_in, raise_interrupts
from ..threads.snapshots import is_finished
from ..threads.state import RagState

Options = dict[str, Any]


class RagInput(TypedDict, total=False):
    """Input of a run."""

    query: str
    reader_query: str
    """Question for the reader, if it differs from the query."""
    kept_chunks: list[Document]
    """Chunks to add to those of the first search, ranked last."""


Given = RagInput | str | Command[Any] | None
"""Input of a run, which resumes a thread by ``Command(resume=…)`` or None."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """A prepared run of the compiled graph."""

    context: RunContext
    config: RunnableConfig
    options: Options
    """Keyword arguments for LangGraph."""
    start: RagState | Command[Any] | None
    """Initial state, or the answers to the interrupts of an open thread, which None resumes without answers."""
    finished: RagState | None
    """Final state of a thread that has already run to its end; None for other threads."""
    outer: Mapping[str, Any] | None = None
    """The node of another graph that the run is in; None outside of nodes."""

    async def flush(self) -> None:
        """Write the transcripts of the run's calls."""
        if self.context.calls is not None and self.context.calls.transcripts is not None:
            await self.context.calls.transcripts.flush()

    async def forget(self) -> None:
        """Delete the journaled calls of the run, after their transcripts: these could not be made without them."""
        await self.flush()
        await forget_calls(self.context.calls)

    async def forget_left(self) -> None:
        """Delete the journaled calls of a finished thread, which its run has left if it was killed at its end."""
        if self.finished is not None and self.context.calls is not None and self.context.calls.known:
            await self.forget()

    async def forget_if_finished(self) -> None:
        """Delete the journaled calls of a streamed run unless it ended with an interrupt, which goes on outwards."""
        if self.context.calls is None:
            return
        snapshot = await self.context.graph.aget_state(self.config)
        if is_finished(snapshot):
            await self.forget()
        elif self.outer is not None:
            raise_interrupts({INTERRUPTS: snapshot.interrupts})

    def returned(self, state: RagState) -> RagState:
        """Return a final state for the caller, with the key ``rag_thread_id`` inside nodes of other graphs."""
        if INTERRUPTS in state:
            state = cast(RagState, {**state, INTERRUPTS: [*interrupts_in(state)]})
        if self.outer is None:
            return state
        return cast(RagState, {**state, "rag_thread_id": self.context.thread_id})


def start_of(given: Given, thread_id: str, known: StateSnapshot | None) -> RagInput:
    """Check the input of a run; None and a command take the question of the ``known`` thread.

    Raises:
        UnknownThread: ``given`` is None or a command, and the thread does not exist.
        SettingsError: The question is empty or not a string.
    """
    if given is None or isinstance(given, Command):
        if known is None:
            raise UnknownThread(f"Thread {thread_id!r} does not exist. Give a question to start it.")
        return RagInput(query=str(known.values["query"]))
    start = RagInput(query=given) if isinstance(given, str) else given
    query: object = start.get("query", "") if isinstance(start, Mapping) else start
    if not isinstance(query, str):
        raise SettingsError(f'The question is {query!r}, which is no text. Give a string, or {{"query": "…"}}.')
    if not query.strip():
        raise SettingsError('The question is empty. Give a string, or {"query": "…"}.')
    for name in ("query", "reader_query"):
        check_text(name, start.get(name, ""))
    return start


def extra_inputs_of(given: Given, start: RagInput, known: StateSnapshot | None) -> dict[str, str]:
    """Describe the inputs besides the query for the fingerprint; a resumed thread keeps its stored description."""
    if known is None or not (given is None or isinstance(given, Command)):
        return extra_inputs(start.get("reader_query", ""), start.get("kept_chunks", []))
    stored: dict[str, str] = known.values.get("fingerprint") or {}
    return {name: stored[name] for name in EXTRA_INPUTS if name in stored}
