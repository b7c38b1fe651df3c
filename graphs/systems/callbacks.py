"""Searches that LangChain's callbacks hear of, as they do of searches by LangChain's own retrievers."""

from __future__ import annotations

from langchain_core.documents import Document

from ...modules.callbacks import run_callbacks
from ...modules.calls.usage import CallMeter
from ...modules.retriever.contract import ChunkRetriever


async def search_with_callbacks(
    retriever: ChunkRetriever, query: str, meter: CallMeter
) -> list[tuple[Document, float]]:
    """Search, between ``on_retriever_start`` and ``on_retriever_end`` of the handlers of the current run.

    Without handlers it costs nothing. A retriever with a true ``calls_back`` tells them itself.
    """
    manager = run_callbacks()
    if manager is None or not manager.handlers or getattr(retriever, "calls_back", False):
        return await retriever.asearch(query, meter=meter)
    run = await manager.on_retriever_start(None, query, name=type(retriever).__name__)
    try:
        hits = await retriever.asearch(query, meter=meter)
    except Exception as error:
        await run.on_retriever_error(error)
        raise
    await run.on_retriever_end([chunk for chunk, _ in hits])
    return hits
