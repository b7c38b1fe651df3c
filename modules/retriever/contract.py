"""The contracts of retrievers, and of what a ``Retriever`` searches."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Protocol, runtime_checkable

from langchain_core.documents import Document

from ..calls.usage import CallMeter

if TYPE_CHECKING:
    from pymilvus.client.abstract import BaseRanker

    from .search import FieldSearch, Hits, Vectors


class ChunkRetriever(Protocol):
    """Protocol of a retriever of chunks, such as ``Retriever``.

    ::

        class OneChunk:
            def fingerprint(self):
                return {"version": "1"}

            async def asearch(self, query, *, meter):
                return [(Document(page_content="…", metadata={"chunk_id": "1", "source": "a.md"}), 1.0)]
    """

    def fingerprint(self) -> dict[str, str]:
        """Return everything that affects the results, such as the digest of the collection's content."""
        ...

    async def asearch(self, query: str, *, meter: CallMeter) -> list[tuple[Document, float]]:
        """Return (chunk, retrieval score), best first; chunk metadata contains ``chunk_id`` and ``source``."""
        ...


@runtime_checkable
class Embeds(Protocol):
    """A retriever that can say how similar questions are; needed for ``sharing="similar"`` alone."""

    async def aembed(self, question: str) -> Sequence[float]:
        """Return the vector of a question; similar questions have a cosine similarity near 1."""
        ...


class Searcher(Protocol):
    """A collection that can be searched: the store, or a snapshot with the same hits."""

    def search(self, request: FieldSearch, limit: int) -> Hits:
        """Search one field for at most ``limit`` hits; they come best first."""
        ...

    def fused_search(self, requests: Sequence[FieldSearch], ranker: BaseRanker, limit: int) -> Hits:
        """Search several fields for ``limit`` hits each and fuse them; at most ``limit`` come, best first."""
        ...

    def vectors(self, field: str, chunk_ids: Sequence[str]) -> Vectors:
        """Return the vectors of chunks in a dense field by chunk id; a chunk that is not there has none."""
        ...

    def chunks(self, chunk_ids: Sequence[str], expr: str = "") -> dict[str, Document]:
        """Return chunks by id; those that are not there, or that the filter leaves out, are missing."""
        ...
