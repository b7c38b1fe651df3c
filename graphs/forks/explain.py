"""Explains a search tree: asks the readers again, each time without one chunk or branch of the evidence."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from langchain_core.documents import Document

from ...modules.calls.record import CallRecord
from ...modules.calls.usage import CallMeter
from ...modules.errors import SettingsError
from ...modules.judge.contract import Verdict
from ...modules.reader.evidence import render_evidence
from ..systems.shown_evidence import as_evidence
from ..threads.context import RunContext
from ..threads.fingerprint import sub_thread_id
from ..threads.state import RagState, updated
from .leaving_out import Ablation
from .threads import PathThread, answered, context_of_thread, with_sub_answer


@dataclass(frozen=True, kw_only=True)
class ExplainRun:
    """Asks the readers of a tree again, each time without one part of its evidence."""

    context: RunContext
    """Context whose thread is that of the explanation."""
    threads: Mapping[str, PathThread]
    """The finished threads of the tree, by the ids of their queries."""

    async def run(self, wanted: Sequence[Ablation]) -> list[tuple[str, list[CallRecord]]]:
        """Return the root's answer without each of these, and the calls that it took; answers[i] belongs to wanted[i].

        Raises:
            ModelCallError: The reader failed; running it again makes only the calls that are missing.
        """
        tasks = [asyncio.ensure_future(self._without(each)) for each in wanted]
        try:
            return list(await asyncio.gather(*tasks))
        finally:
            await asyncio.gather(*tasks, return_exceptions=True)  # others are paid for and journaled

    async def _without(self, left_out: Ablation) -> tuple[str, list[CallRecord]]:
        """Answer again from the query of the chunk up to the root, as far as the evidence changes."""
        calls: list[CallRecord] = []
        path, state = left_out.place.path, RagState()
        for depth in reversed(range(len(path))):
            thread = self.threads[path[depth].thread_id]
            shown = _shown(thread.state)
            if depth == len(path) - 1:
                now = _without(shown, left_out)
            else:
                below = path[depth + 1].thread_id
                asked_by = self.threads[below].asked_by
                now = _shown(with_sub_answer(thread.state, asked_by, below, below, state))
            if render_evidence(now) == render_evidence(shown):
                return str(self.threads[path[0].thread_id].state["answer"]), calls
            name = f"{left_out.place.name} {left_out.part}"
            own_id = sub_thread_id(self.context.thread_id, left_out.chunk.chunk_id, name, path[depth].thread_id)
            context = context_of_thread(self.context, own_id, parent="", depth=depth)
            state = await answered(_to_be_answered(thread.state, now), context)
            calls += state["usage"]
        return state["answer"], calls


def _shown(state: RagState) -> list[Document]:
    """Return the chunks that the reader was shown, in the order of the evidence."""
    shown = [chunk for chunk in state["similar_chunks"] if chunk.metadata.get("shown_place")]
    return sorted(shown, key=lambda chunk: int(chunk.metadata["shown_place"]))


def _without(shown: list[Document], left_out: Ablation) -> list[Document]:
    """Return the shown chunks without one, or without its sub-questions."""
    changed = left_out.chunk.chunk_id
    if left_out.part == "chunk":
        return [chunk for chunk in shown if chunk.metadata["chunk_id"] != changed]
    unasked = {"sub_answer": "", "tries": None}
    return [
        Document(page_content=chunk.page_content, metadata={**chunk.metadata, **unasked})
        if chunk.metadata["chunk_id"] == changed
        else chunk
        for chunk in shown
    ]


def _to_be_answered(state: RagState, chunks: list[Document]) -> RagState:
    """Return the state with these chunks as its evidence, without calls."""
    start = RagState(query=state["query"], similar_chunks=chunks, usage=[])
    if reader_query := state.get("reader_query"):
        start["reader_query"] = reader_query
    return updated(start, as_evidence(chunks))


class NoJudge:
    """In place of the judge of a tree, for a session that explains it: no judge is called."""

    def fingerprint(self) -> dict[str, str]:
        """Return nothing: it determines no answer."""
        return {}

    async def judge(self, query: str, chunk: Document, *, meter: CallMeter, expand: bool = True) -> Verdict:
        """Refuse to judge.

        Raises:
            SettingsError: Always.
        """
        raise SettingsError("This session explains trees and has no judge. Make one with judge=… to ask questions.")
