"""The chunks that others are linked with, by the graph of links that ``judgetree index --graph links`` made."""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path
from typing import Protocol

from langchain_core.documents import Document
from langchain_milvus import Milvus

from ..errors import SettingsError
from ..index.index import Index
from ..structure.links import KIND, Links, Neighbour
from ..structure.opened import OpenedGraph
from .own import OwnRetriever
from .search import SearchTarget
from .searched import describe_target


@dataclass(frozen=True, kw_only=True)
class LinkedChunk:
    """A chunk that was reached by a link."""

    chunk: Document
    linked_from: str
    """Id of the chunk that led there."""
    name: str
    """The title by which they are linked."""


class ChunkLinks(Protocol):
    """Protocol of an object that knows which chunks are linked, such as ``LinkedChunks``."""

    def fingerprint(self) -> dict[str, str]:
        """Return everything that affects the results, such as the digest of a graph; it may block."""
        ...

    async def linked(self, chunk_ids: Sequence[str], *, without: Collection[str], most: int) -> list[LinkedChunk]:
        """Return at most ``most`` chunks that these are linked with, each once, those most worth judging first.

        None of them is in ``without``. The same arguments give the same chunks.
        """
        ...


class LinkedChunks:
    """The links of one collection; a ``ChunkLinks``.

    ::

        links = LinkedChunks(index, load_settings().home)
        context = RagContext(reader=llm, retriever=retriever, judge=judge, links=links, limits=Limits(expansion="link"))
    """

    def __init__(self, index: Index, home: Path, *, expr: str | None = None) -> None:
        """``home`` is the data folder that has the graph; it is read at the first use.

        With ``expr``, a filter of Milvus, other chunks are left out.
        """
        self._expr = expr
        self._index = index
        self._opened = OpenedGraph(index, home, KIND, Links)
        self._described: tuple[Milvus, SearchTarget] | None = None

    def fingerprint(self) -> dict[str, str]:
        """Return kind and digest of the graph.

        Raises:
            CollectionError: The collection has no graph of links, or has changed since it was made.
        """
        return {"kind": KIND, "graph": self.open().graph.digest}

    def open(self) -> Links:
        """Return the links of the present content, read at the first call and after each change of the collection.

        Raises:
            CollectionError: The collection has no graph of links, or has changed since it was made.
        """
        return self._opened.present()

    async def linked(self, chunk_ids: Sequence[str], *, without: Collection[str], most: int) -> list[LinkedChunk]:
        """Return linked chunks, as ``ChunkLinks.linked``; each of ``chunk_ids`` gives one in turn.

        Costs one request to the store.

        Raises:
            CollectionError: There are no links of the present content, or Milvus does not answer.
        """
        return await asyncio.to_thread(self.linked_now, chunk_ids, without=without, most=most)

    def linked_now(self, chunk_ids: Sequence[str], *, without: Collection[str], most: int) -> list[LinkedChunk]:
        """Blocking twin of ``linked``."""
        links = self._opened.known()
        chosen = dict(_in_turn([[(each, linked) for linked in links.of(each)] for each in chunk_ids], without, most))
        found = self._chunks(list(chosen))
        return [
            LinkedChunk(chunk=found[chunk_id], linked_from=linked_from, name=name)
            for chunk_id, (linked_from, name) in chosen.items()
            if chunk_id in found
        ]

    def _chunks(self, chunk_ids: Sequence[str]) -> dict[str, Document]:
        with self._index.searches.entered():
            return self._target().chunks(chunk_ids, self._expr or "")

    def _target(self) -> SearchTarget:
        store, known = self._index.vector_store, self._described
        if known is None or known[0] is not store:
            known = self._described = (store, describe_target(store))
        return known[1]


def linked_chunks_of(retriever: object, home: Path) -> LinkedChunks:
    """Return the links of the collection that a retriever searches, by its filter; ``home`` is the data folder.

    Raises:
        SettingsError: It is no ``Retriever`` over an ``Index``, so that there is no graph of what it searches.
    """
    if isinstance(retriever, OwnRetriever):
        retriever = retriever.inner
    index = getattr(retriever, "vector_store", None)
    if not isinstance(index, Index):
        raise SettingsError(
            "Links are of an indexed collection, and this retriever searches none. Take the built-in retriever, or "
            "give RagContext(links=…) what says which of its chunks are linked."
        )
    return LinkedChunks(index, home, expr=getattr(retriever, "expr", None))


def _in_turn(
    ways: Sequence[Sequence[tuple[str, Neighbour]]], without: Collection[str], most: int
) -> Iterator[tuple[str, tuple[str, str]]]:
    """Yield chunk id, and where and by which title it was reached: the first of each way, then the second, …"""
    seen = set(without)
    for turn in zip_longest(*ways):
        for linked_from, neighbour in filter(None, turn):
            if neighbour.chunk_id not in seen and len(seen) < len(without) + most:
                seen.add(neighbour.chunk_id)
                yield neighbour.chunk_id, (linked_from, neighbour.name)
