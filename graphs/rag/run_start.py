"""What a run of a graph starts from: its input, and what is made of it before the first node."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypedDict

from langchain_core.documents import Document
from langchain_core.runnables import RunnableConfig
from langgraph.types import StateSnapshot

from ...modules.errors import SettingsError, UnknownThread
from ...modules.formats import check_text
from ..threads.context import RunContext
from ..threads.fingerprint import EXTRA_INPUTS, extra_inputs
from ..threads.state import RagState

Options = dict[str, Any]


class RagInput(TypedDict, total=False):
    """What a run starts from."""

    query: str
    reader_query: str
    """What the reader is asked, where that is not the query that is searched for."""
    kept_chunks: list[Document]
    """Chunks that join those found, as if they had been found last."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """One prepared invocation."""

    context: RunContext
    config: RunnableConfig
    options: Options
    """Further keyword arguments for LangGraph, as the caller gave them."""
    start: RagState | None
    """None resumes an open thread."""
    finished: RagState | None
    """The final state, if the thread has already run to its end."""


def start_of(given: RagInput | str | None, thread_id: str, known: StateSnapshot | None) -> RagInput:
    """What a run starts from: as it was given, or the question of the thread that is to be resumed.

    Raises:
        UnknownThread: Nothing was given, and the thread was never written.
        SettingsError: The question is empty or no text.
    """
    if given is None:
        if known is None:
            raise UnknownThread(f"Thread {thread_id!r} was never written, so there is nothing to resume.")
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


def extra_inputs_of(given: RagInput | str | None, start: RagInput, known: StateSnapshot | None) -> dict[str, str]:
    """What a run starts from besides its query, for its fingerprint; a resumed thread's as it was stored."""
    if given is not None or known is None:
        return extra_inputs(start.get("reader_query", ""), start.get("kept_chunks", []))
    stored: dict[str, str] = known.values.get("fingerprint") or {}
    return {name: stored[name] for name in EXTRA_INPUTS if name in stored}
