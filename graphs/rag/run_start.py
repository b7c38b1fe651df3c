"""Checks the input of a run, before its first node."""

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
    """Input of a run."""

    query: str
    reader_query: str
    """Question for the reader, if it differs from the query."""
    kept_chunks: list[Document]
    """Chunks to add to those of the first search, ranked last."""


@dataclass(frozen=True, kw_only=True)
class Run:
    """A prepared run of the compiled graph."""

    context: RunContext
    config: RunnableConfig
    options: Options
    """Keyword arguments for LangGraph."""
    start: RagState | None
    """Initial state; None resumes an open thread."""
    finished: RagState | None
    """Final state of a thread that has already run to its end; None for other threads."""


def start_of(given: RagInput | str | None, thread_id: str, known: StateSnapshot | None) -> RagInput:
    """Check the input of a run; None takes the question of the ``known`` thread.

    Raises:
        UnknownThread: ``given`` is None and the thread does not exist.
        SettingsError: The question is empty or not a string.
    """
    if given is None:
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


def extra_inputs_of(given: RagInput | str | None, start: RagInput, known: StateSnapshot | None) -> dict[str, str]:
    """Describe the inputs besides the query for the fingerprint; a resumed thread keeps its stored description."""
    if given is not None or known is None:
        return extra_inputs(start.get("reader_query", ""), start.get("kept_chunks", []))
    stored: dict[str, str] = known.values.get("fingerprint") or {}
    return {name: stored[name] for name in EXTRA_INPUTS if name in stored}
