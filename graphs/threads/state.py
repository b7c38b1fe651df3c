"""State of the graphs as plain data, and the reducers that merge what nodes return."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Annotated, Any, Literal, NotRequired, cast

from langchain_core.documents import Document
from langgraph.types import Overwrite
from typing_extensions import TypedDict

from ...modules.calls.usage import CallRecord
from ...modules.errors import LimitName

JsonScalar = str | int | float | bool | None
AnswerStatus = Literal["answered", "refused", "failed"]


class Try(TypedDict):
    """One of several sub-questions that a chunk asked."""

    query: str
    thread_id: str
    answer: str
    error: str
    round: int
    """Round of the search in which it was granted."""
    priority: int
    """Place in the round."""


class ChunkPatch(TypedDict):
    """New values for metadata keys of one chunk, returned by parallel branches."""

    chunk_id: str
    changes: Mapping[str, JsonScalar | list[Try]]


def merge_chunks(chunks: list[Document], patches: Sequence[Document | ChunkPatch]) -> list[Document]:
    """Apply patches to chunks, key by key, and sort by rank. The arguments are not changed.

    No patches change nothing, repeated patches change nothing more, and patches of different keys commute. A
    ``Document`` in ``patches`` replaces the chunk of its id, or is added. A patch for a missing chunk belongs to a
    replaced retrieval and is dropped.
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
    """Merge records by ``call_id``, in order of first appearance; a later record of a call replaces the earlier."""
    merged = {record["call_id"]: record for record in records}
    merged.update((record["call_id"], record) for record in new)
    return list(merged.values())


class Search(TypedDict):
    """One search of a thread, with its time."""

    query: str
    chunk_ids: list[str]
    """Hits, best first."""
    seconds: float
    """Wall time, embedding and reranking included."""
    ended_at: float
    """Unix time."""
    spent_limit: NotRequired[LimitName]
    """The limit of the tree that cut it off."""


def merge_searches(searches: list[Search], new: Sequence[Search]) -> list[Search]:
    """Add searches by their end, in its order; one that is there already is not added again."""
    merged = {(each["ended_at"], each["query"]): each for each in (*searches, *new)}
    return [merged[key] for key in sorted(merged)]


class Step(TypedDict):
    """One round of a system that searches in rounds: query, chunks, and the model's text."""

    round: int
    """Number of the round; 0 for the search with the question itself."""
    query: str
    chunk_ids: list[str]
    """Chunks found by the query, best first, those of earlier rounds included."""
    text: str
    """The model's text in this round: a thought, a draft, a follow-up's answer; ``""`` without one."""
    next_query: str
    """Query of the next round; ``""`` while unknown, in the last round, and before a tool without an input."""
    tool: str
    """Name of the tool whose input the query is; ``""`` for the search."""
    next_tool: str
    """Tool of the next round; ``""`` for the search."""


def merge_steps(steps: list[Step], new: Sequence[Step]) -> list[Step]:
    """Merge steps by round, in the order of rounds; a later version of a round replaces the earlier."""
    merged = {step["round"]: step for step in (*steps, *new)}
    return sorted(merged.values(), key=lambda step: step["round"])


class RagState(TypedDict, total=False):
    """State of one thread: a query and its outcome."""

    query: str
    reader_query: str
    """Question for the reader, if it differs from the query."""
    kept_chunks: list[Document]
    """Chunks given by the caller, until the first search adds them to its hits."""
    similar_chunks: Annotated[list[Document], merge_chunks]
    set_suffices: bool | None
    """Whether the chunks together answer the query; None if the judge does not say."""
    p_suffices: float | None
    """The judge's probability that they do; None if it gives none."""
    steps: Annotated[list[Step], merge_steps]
    """Rounds of systems that search in rounds; empty for others."""
    evidence: str
    """The evidence shown to the reader."""
    answer: str
    status: AnswerStatus
    usage: Annotated[list[CallRecord], merge_usage]
    searches: Annotated[list[Search], merge_searches]
    fingerprint: dict[str, str]
    """Everything that determines the run, by name (see ``fingerprint``)."""
    config: dict[str, Any]
    """Keys of ``RagConfig`` that the run was given, as JSON; a later process resumes it with them."""


_REDUCERS = {
    "similar_chunks": merge_chunks,
    "steps": merge_steps,
    "usage": merge_usage,
    "searches": merge_searches,
}


def updated(state: RagState, update: Mapping[str, object]) -> RagState:
    """Return a state with what a node has returned, as LangGraph would merge it; the arguments are not changed."""
    values: dict[str, object] = dict(state)
    for key, value in update.items():
        if isinstance(value, Overwrite):
            values[key] = value.value
        elif key in _REDUCERS:
            values[key] = _REDUCERS[key](values.get(key, []), value)  # type: ignore[operator]
        else:
            values[key] = value
    return cast(RagState, values)


class JudgeState(TypedDict):
    """Input of a judge branch."""

    old_query: str
    similar_chunk: Document
    expand: NotRequired[bool]
    """Whether a chunk with a score of 1 may ask a sub-question; default: True."""


class JudgeSetState(TypedDict):
    """Input of the branch that judges all chunks of a query together."""

    old_query: str
    similar_chunks: list[Document]
    expand: NotRequired[bool]
    """Whether chunks with a score of 1 may ask sub-questions; default: True."""


class CallNewRagState(TypedDict):
    """Input of a branch that asks a sub-question."""

    query_for_next_rag: str
    old_query: str
    """Query that found the chunk."""
    similar_chunk: Document
    expected_calls: int
    """Model calls that the sub-run is expected to take, its answer included."""
    expected_share: list[float]
    """Tokens and US dollars that it is expected to take, then those of its answer; empty unless they are limited."""
