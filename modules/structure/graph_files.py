"""The files that keep the graphs of collections: one for each collection and kind, in judgetree's own data folder.

So a graph stands beside a Milvus Lite folder and a Milvus server alike.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

from ..digests import text_digest
from ..errors import CollectionError, LoadingError
from ..index.index import Index
from ..reading.regular_files import MAX_DATA_BYTES, read_regular
from ..storage.atomic import write_atomic
from ..storage.file_locks import hold_lock, private_lock
from ..storage.write_errors import refusing_full_disk
from ..trust.private import private_folder
from .passage_graph import PassageGraph

FOLDER = "graphs"
"""Folder below the data folder."""


class GraphStore(Protocol):
    """Keeps the graphs of one collection, by kind."""

    def load(self, kind: str, content: str) -> PassageGraph:
        """Return the graph of a kind that was made of the content with this digest.

        Raises:
            CollectionError: There is none, it is damaged, or the collection has changed since.
        """
        ...

    def save(self, graph: PassageGraph) -> None:
        """Keep a graph in place of the former one of its kind.

        Raises:
            WritingError: It could not be written; the former one is unchanged.
        """
        ...


@dataclass(frozen=True, kw_only=True)
class GraphFiles:
    """The graphs of one collection as files; a ``GraphStore``."""

    folder: Path
    collection: str
    database: str
    """Address of the Milvus server, or path of the Lite folder."""

    @classmethod
    def of(cls, index: Index, home: Path) -> GraphFiles:
        """Return the files of a collection; ``home`` is the data folder."""
        return cls(
            folder=home.expanduser().resolve() / FOLDER,
            collection=index.vector_store_name,
            database=index.connection.uri,
        )

    def path(self, kind: str) -> Path:
        """Return the file of a kind, which need not exist."""
        where = text_digest(self.database).hex()[:12]
        return self.folder / f"{self.collection}-{where}.{kind}.npz"

    def load(self, kind: str, content: str) -> PassageGraph:
        """Return the graph of a kind, as ``GraphStore.load``; 100,000 passages take about a second."""
        path = self.path(kind)
        remedy = f"Make it: judgetree index --collection {self.collection} --graph {kind}."
        try:
            data = read_regular(path, max_bytes=MAX_DATA_BYTES)
        except FileNotFoundError:
            raise CollectionError(f"The collection {self.collection!r} has no graph {kind!r} yet. {remedy}") from None
        except (OSError, LoadingError) as error:
            reason = getattr(error, "strerror", "") or error
            raise CollectionError(f"{path} cannot be read: {reason}. {remedy}") from error
        graph = PassageGraph.from_bytes(data, where=str(path), remedy=remedy)
        if (graph.kind, graph.content) != (kind, content):
            raise CollectionError(
                f"The graph {kind!r} of the collection {self.collection!r} is out of date: the collection has changed "
                f"since it was made. {remedy}"
            )
        return graph

    def save(self, graph: PassageGraph) -> None:
        """Keep a graph, as ``GraphStore.save``: other processes see the former file or all of the new one."""
        path = self.path(graph.kind)
        data = graph.to_bytes()
        with refusing_full_disk(path):
            private_folder(self.folder)
            # Workers of a run may all make the graph at once.
            with private_lock(path.with_name(f"{path.name}.lock")):
                write_atomic(path, data, private=True)

    @contextmanager
    def making(self, kind: str, *, wait_s: float, on_wait: Callable[[str], None]) -> Iterator[None]:
        """Keep others from making a graph that costs money at the same time; ``on_wait`` gets the name of one.

        Raises:
            CollectionError: Another one did not finish within ``wait_s``.
        """
        path = self.path(kind)
        file = path.with_name(f"{path.name}.making.lock")
        with refusing_full_disk(file):
            private_folder(self.folder)
        with hold_lock(file, wait_s=wait_s, on_wait=on_wait, busy=lambda maker: self._busy(kind, maker, wait_s)):
            yield

    def _busy(self, kind: str, maker: str, wait_s: float) -> CollectionError:
        return CollectionError(
            f"The graph {kind!r} of the collection {self.collection!r} is being made by {maker}, which did not finish "
            f"within {wait_s:g} s. What it pays for is kept: run the same command once it has ended, or wait for "
            "longer (--wait SECONDS)."
        )
