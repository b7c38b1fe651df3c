"""What the reader of a tree that was written by hand was shown."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from langchain_core.documents import Document

from judgetree.graphs.tree.nodes import ChunkNode
from judgetree.modules.reader.evidence import render_evidence
from judgetree.modules.reader.evidence_choice import EvidenceChoice


def evidence_text(chunks: Sequence[ChunkNode]) -> str:
    """The evidence that a judged query hands to its reader."""
    found = [Document(page_content=chunk.text, metadata=dict(chunk.metadata)) for chunk in chunks]
    return render_evidence(EvidenceChoice().of_chunks(found))


def with_places(chunks: Sequence[ChunkNode]) -> tuple[ChunkNode, ...]:
    """The chunks with their places in that evidence."""
    usable = [chunk for chunk in chunks if chunk.score != 0] or list(chunks)
    places = {chunk.chunk_id: place for place, chunk in enumerate(usable, start=1)}
    return tuple(
        replace(chunk, metadata={**chunk.metadata, "shown_place": places.get(chunk.chunk_id)}) for chunk in chunks
    )
