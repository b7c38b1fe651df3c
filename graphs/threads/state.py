"""What a run remembers: the state of each graph as plain data, and the reducers that merge what nodes return."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Annotated, Literal, TypedDict

from langchain_core.documents import Document

from ...modules.calls.usage import CallRecord

JsonScalar = str | int | float | bool | None
AnswerStatus = Literal["answered", "refused", "failed"]


class ChunkPatch(TypedDict):
    """New values for some metadata keys of one chunk; what a parallel branch returns instead of changing the chunk."""

    chunk_id: str
    changes: dict[str, JsonScalar]


def merge_chunks(chunks: list[Document], patches: Sequence[Document | ChunkPatch]) -> list[Document]:
    """Chunks with the patches applied field by field, sorted by rank. Neither argument is changed.

    An empty list of patches changes nothing; the same patch twice is the same as once; patches of disjoint keys
    may come in any order. A ``Document`` in ``patches`` replaces the chunk of its id, or is added. A patch for a
    chunk that is not there is dropped: it belongs to a retrieval that has been replaced.
    """
    merged = {str(chunk.metadata["chunk_id"]): chunk for chunk in chunks}
    for patch in patches:
        if isinstance(patch, Document):
            merged[str(patch.metadata["chunk_id"])] = patch
        elif patch["chunk_id"] in merged:
            chunk = merged[patch["chunk_id"]]
            merged[patch["chunk_id"]] = chunk.model_copy(update={"metadata": {**chunk.metadata, **patch["changes"]}})
    return sorted(merged.values(), key=lambda chunk: (chunk.metadata["rank"], chunk.metadata["chunk_id"]))


def merge_usage(records: list[CallRecord], new: Sequence[CallRecord]) -> list[CallRecord]:
    """Union by ``call_id``, in order of first appearance; a later record of the same call replaces the earlier."""
    merged = {record["call_id"]: record for record in records}
    merged.update((record["call_id"], record) for record in new)
    return list(merged.values())


class Step(TypedDict):
    """One round of a system that searches in rounds: what it searched for, found, and made of it."""

    round: int
    """0 for the search with the question itself."""
    query: str
    chunk_ids: list[str]
    """What the query found, best first, chunks of earlier rounds included."""
    text: str
    """What the model wrote in this round: a sentence of reasoning, a draft, a follow-up's answer; ``""`` if nothing."""
    next_query: str
    """What the next round searches for; ``""`` until that is known, and where this round is the last."""


def merge_steps(steps: list[Step], new: Sequence[Step]) -> list[Step]:
    """Union by round, in the order of rounds; a later version of a round replaces the earlier."""
    merged = {step["round"]: step for step in (*steps, *new)}
    return sorted(merged.values(), key=lambda step: step["round"])


class RagState(TypedDict, total=False):
    """One thread: one query and what came of it."""

    query: str
    reader_query: str
    """What the reader is asked, where that is not the query that was searched for."""
    kept_chunks: list[Document]
    """Chunks that the caller brought along, until the first search has joined them to what it found."""
    similar_chunks: Annotated[list[Document], merge_chunks]
    steps: Annotated[list[Step], merge_steps]
    """Of systems that search in rounds; empty for the others."""
    evidence: str
    """As the reader saw it."""
    answer: str
    status: AnswerStatus
    usage: Annotated[list[CallRecord], merge_usage]
    fingerprint: dict[str, str]
    """Everything that determines the run, by name (see ``fingerprint.py``)."""


class JudgeState(TypedDict):
    """What one judge branch is sent."""

    old_query: str
    similar_chunk: Document


class CallNewRagState(TypedDict):
    """What one branch that asks a sub-question is sent."""

    query_for_next_rag: str
    similar_chunk: Document
