"""What the reader of a tree that was written by hand was shown."""

from __future__ import annotations

from collections.abc import Sequence

from langchain_core.documents import Document

from judgetree.graphs.tree.nodes import ChunkNode
from judgetree.modules.reader.evidence import render_evidence, usable_chunks


def evidence_text(chunks: Sequence[ChunkNode]) -> str:
    """The evidence that a judged query hands to its reader."""
    found = [Document(page_content=chunk.text, metadata=dict(chunk.metadata)) for chunk in chunks]
    return render_evidence(usable_chunks(found))
