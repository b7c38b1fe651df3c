"""The chunks that turns rest on, read back from the search trees that found them."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence

from langchain_core.documents import Document

from ....modules.memory.turns import ChunkRef
from ...rag.graph import RagGraph


async def chunks_of(refs: Sequence[ChunkRef], rag: RagGraph) -> list[Document]:
    """The chunks of the refs, in their order; those of a web search, and of a tree that is gone, are left out.

    Costs one reading of the newest state for each search tree.
    """
    by_thread: defaultdict[str, set[str]] = defaultdict(set)
    for ref in refs:
        if ref["thread_id"]:
            by_thread[ref["thread_id"]].add(ref["chunk_id"])
    found: dict[str, Document] = {}
    for thread_id, wanted in by_thread.items():
        snapshot = await rag.aget_state({"configurable": {"thread_id": thread_id}})
        for chunk in snapshot.values.get("similar_chunks", ()):
            if chunk.metadata["chunk_id"] in wanted:
                found[str(chunk.metadata["chunk_id"])] = chunk
    return [found[ref["chunk_id"]] for ref in refs if ref["chunk_id"] in found]
