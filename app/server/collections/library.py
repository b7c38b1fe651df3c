"""The collections of a server as they are searched: one open index for each."""

from __future__ import annotations

import asyncio
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Annotated, cast

from fastapi import Depends, Request

from ....modules.calls.usage import CallMeter
from ....modules.index.factory import open_index
from ....modules.retriever.retriever import Retriever
from ....modules.retriever.search import Hits
from ....modules.settings import Settings
from ...stores.patience import Patience
from ..serving.errors import NoAnswerInTime
from ..serving.options import ServerOptions


@dataclass(frozen=True, kw_only=True)
class SideBySide:
    """The hits of one query by three searches, best first; higher scores are better, and differ in their ranges."""

    dense: Hits
    """By embeddings; a score is a cosine in [-1, 1] unless the collection's index has another metric."""
    sparse: Hits
    """By words; a score is BM25's, from 0 on."""
    fused: Hits
    """Both, fused by reciprocal ranks, as questions are searched."""


class Library:
    """Retrievers over the collections, each opened at its first search and shared by all requests.

    In this process they share an embedded Milvus Lite with the conversations.
    """

    def __init__(self, settings: Settings, options: ServerOptions) -> None:
        self._settings = settings
        self._patience = Patience(options.max_search_seconds, NoAnswerInTime)
        self._retrievers: dict[str, Retriever] = {}
        self._opening = asyncio.Lock()
        self._resources = ExitStack()

    async def search(self, collection: str, query: str, *, topk: int) -> SideBySide:
        """Search an existing collection in three ways; it costs at most two embeddings of the query.

        Raises:
            CollectionError: The collection has another embedder, or cannot be searched in time.
            ModelCallError: The query could not be embedded.
        """
        async with self._opening:
            if collection not in self._retrievers:
                self._retrievers[collection] = await self._patience.call(self._open, collection)
        return await self._patience.call(_search, self._retrievers[collection], query, topk)

    async def close(self) -> None:
        """Close the indexes; the next search opens its own again."""
        self._retrievers.clear()
        await asyncio.to_thread(self._resources.close)

    def _open(self, collection: str) -> Retriever:
        index = self._resources.enter_context(open_index(collection, self._settings))
        return Retriever(index, search_type="hybrid")


def _search(shared: Retriever, query: str, topk: int) -> SideBySide:
    shared.fingerprint()  # notices indexes that another process changed
    retriever = shared.model_copy(update={"topk": topk})
    meter = CallMeter(node="search")
    return SideBySide(
        dense=retriever.dense_search(query, meter=meter),
        sparse=retriever.sparse_search(query, meter=meter),
        fused=retriever.hybrid_search(query, meter=meter),
    )


def library_of(request: Request) -> Library:
    """Return the library of the application."""
    return cast(Library, request.app.state.library)


LibraryBy = Annotated[Library, Depends(library_of)]
