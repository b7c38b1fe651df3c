"""Answers about search trees, as OpenAPI describes them."""

from __future__ import annotations

from pydantic import BaseModel, ConfigDict, Field

from ....graphs.tree.nodes import ChunkNode, QueryNode, VerdictLabel
from ....modules.judge.contract import Score, VerdictStatus


class ChunkAnswer(BaseModel):
    """One chunk of a query, with its verdict."""

    model_config = ConfigDict(
        json_schema_extra={"examples": [{"thread_id": "t1", "chunk_id": "c1", "text": "Norm A names the drum."}]}
    )

    thread_id: str = Field(description="Thread of the query that found the chunk.")
    query: str
    chunk_id: str
    text: str
    source: str = Field(description="File or record of the chunk; empty if unknown.")
    title: str = Field(description="Title of its document; empty if the name of its file says as much.")
    verdict: VerdictStatus
    label: VerdictLabel = Field(description="The score as text, or the verdict's status.")
    score: Score | None = Field(
        description="2: answers the query alone; 1: holds a needed fact; 0: does not help; null: not judged."
    )
    reason: str = Field(description="The judge's reason; empty if it gave none.")
    p_needed: float | None = Field(description="Probability in [0, 1] that the chunk holds a needed fact.")
    rank: int | None = Field(description="Rank in the retriever's order, 1 for the best, as everywhere.")
    retrieval_score: float | None
    shown_place: int | None = Field(description="Number of its passage in the evidence, from 1.")
    next_query: str = Field(description="Its supplementary question; empty without one.")
    next_thread_id: str = Field(description="Thread of the sub-run; empty without one.")
    sub_answer: str = Field(description="Answer of the sub-run; empty without one, and for one that was cut off.")

    @classmethod
    def of(cls, query: QueryNode, chunk: ChunkNode) -> ChunkAnswer:
        """Describe a chunk of a query."""
        return cls(
            thread_id=query.thread_id,
            query=query.query,
            chunk_id=chunk.chunk_id,
            text=chunk.text,
            source=chunk.source,
            title=chunk.title,
            verdict=chunk.verdict,
            label=chunk.verdict_label,
            score=chunk.score,
            reason=chunk.reason,
            p_needed=chunk.p_needed,
            rank=chunk.position,
            retrieval_score=chunk.retrieval_score,
            shown_place=chunk.shown_place,
            next_query=chunk.next_query,
            next_thread_id=chunk.next_rag_thread_id,
            sub_answer=chunk.sub_answer,
        )


class TreeAnswer(BaseModel):
    """A search tree: its root query, with chunks, sub-queries and model calls below it."""

    model_config = ConfigDict(extra="allow")

    format: str = Field(description="Name and number of the format.", examples=["judgetree-search-tree/7"])
    fingerprint: dict[str, str] = Field(description="Everything that determined the run, by name.")
    root: dict[str, object] = Field(
        description="The query, its answer, and its chunks with their sub-runs. The metadata of a chunk is as the "
        "search keeps it: rank counts from 0 there."
    )


class DiffAnswer(BaseModel):
    """Two trees compared: the first tree is ``a``, the other one ``b``."""

    threads: list[str | None]
    first: dict[str, object] | None = Field(description="Where the two searches part; null if they are alike.")
    differences: list[dict[str, object]]
    gained: list[str] = Field(description="Chunks of the other tree alone.")
    lost: list[str] = Field(description="Chunks of the first tree alone.")
    settings: dict[str, list[str]] = Field(description="Settings that differ, each with its two values.")
    usage: list[dict[str, object]]
