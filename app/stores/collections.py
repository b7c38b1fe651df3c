"""The collections of documents in the database of the settings."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from typing import TYPE_CHECKING

from ...modules.errors import CollectionError
from ...modules.passage_names import title_of

if TYPE_CHECKING:
    from pymilvus import MilvusClient

    from ...modules.index.connection import MilvusConnection
    from ...modules.settings import Settings

_LOOKED_AT = 20
"""Chunks of a collection in which a title is looked for."""


@dataclass(frozen=True, kw_only=True)
class CollectionSummary:
    """Name, size and settings of a collection."""

    name: str
    files: int = 0
    chunks: int = 0
    embedders: tuple[str, ...] = ()
    analyzer: str = ""
    chunk_size: int = 0
    example_title: str = ""
    """Title of one of its documents; ``""`` if the first ones have none but the names of their files."""
    problem: str = ""
    """Why the collection cannot be asked; ``""`` if it can."""


@dataclass(frozen=True, kw_only=True)
class CollectionContents:
    """A collection and its files."""

    summary: CollectionSummary
    files: Mapping[str, int]
    """Numbers of chunks by source, in the order of sources; empty for a collection with a problem."""


class CollectionReader:
    """A reader of the collections of documents, over one connection that stays open until ``close``.

    A collection that has not been written to since is not read again. All methods may be called from any thread.
    """

    def __init__(self, settings: Settings) -> None:
        self._settings = settings
        self._connection: MilvusConnection | None = None
        self._known: dict[str, tuple[str, CollectionContents]] = {}
        self._reading = threading.Lock()

    def read_all(self) -> list[CollectionContents]:
        """Return all collections of documents, sorted by name; none, without creating a folder, without a database.

        Raises:
            CollectionError: The database cannot be opened.
        """
        from ...modules.index.schema import list_collections

        with self._reading:
            connection = self._open()
            if connection is None:
                return []
            read = (self._read(connection, name) for name in list_collections(connection.client))
            return [each for each in read if each is not None]

    def read(self, name: str) -> CollectionContents | None:
        """Return the collection of documents of a name; None if there is none.

        Raises:
            CollectionError: The database cannot be opened.
        """
        from ...modules.index.schema import list_collections

        with self._reading:
            connection = self._open()
            # Not has_collection, which also knows what stands behind the names.
            if connection is None or name not in list_collections(connection.client):
                return None
            return self._read(connection, name)

    def close(self) -> None:
        """Close the connection; the next read opens it again."""
        with self._reading:
            if self._connection is not None:
                self._connection.close()
            self._connection = None
            self._known.clear()

    def _open(self) -> MilvusConnection | None:
        from ...modules.index.connection import connect

        if self._connection is None and database_exists(self._settings):
            self._connection = connect(self._settings.milvus_address, self._settings.milvus_token.get_secret_value())
        return self._connection

    def _read(self, connection: MilvusConnection, name: str) -> CollectionContents | None:
        from ...modules.index.content import stored_files
        from ...modules.index.schema import check_not_reserved, read_collection_info, revision
        from ...modules.memory.schema import is_memory

        client = connection.client
        seen = revision(client, name)
        known = self._known.get(name)
        if known is not None and known[0] == seen:
            return known[1]
        if is_memory(client, name):
            return None
        try:
            check_not_reserved(name, self._settings)
            info = read_collection_info(client, name)
        except CollectionError as error:
            return CollectionContents(summary=CollectionSummary(name=name, problem=str(error)), files={})
        client.load_collection(name)  # a reopened Lite folder has nothing loaded
        stored = stored_files(connection, name)
        files = {source: len(stored[source].chunk_ids) for source in sorted(stored)}
        summary = CollectionSummary(
            name=name,
            files=len(files),
            chunks=sum(files.values()),
            embedders=tuple(info.embedders.values()),
            analyzer=info.analyzer,
            chunk_size=info.chunk_size,
            example_title=_example_title(client, name),
        )
        contents = CollectionContents(summary=summary, files=files)
        self._known[name] = seen, contents
        return contents


def _example_title(client: MilvusClient, name: str) -> str:
    from ...modules.index.content import SOURCE, TITLE

    rows = client.query(name, filter="", output_fields=[SOURCE, TITLE, "row"], limit=_LOOKED_AT)
    return next((title for title in map(title_of, rows) if title), "")


def read_collections(settings: Settings) -> Iterator[CollectionSummary]:
    """Yield the collections of documents, sorted by name; none, without creating a folder, if there is no database.

    Raises:
        CollectionError: The database cannot be opened.
    """
    with closing(CollectionReader(settings)) as reader:
        yield from (each.summary for each in reader.read_all())


def read_names(settings: Settings) -> list[str]:
    """Return the names of the collections of documents, sorted; unlike ``read_collections`` it reads no chunk.

    Raises:
        CollectionError: The database cannot be opened.
    """
    from ...modules.index.connection import connect
    from ...modules.index.schema import list_collections
    from ...modules.memory.schema import is_memory

    if not database_exists(settings):
        return []
    with closing(connect(settings.milvus_address, settings.milvus_token.get_secret_value())) as connection:
        return [name for name in list_collections(connection.client) if not is_memory(connection.client, name)]


def database_exists(settings: Settings) -> bool:
    """Return whether the database exists; False for a Milvus Lite folder without data."""
    from ...modules.index.connection import database_exists as exists

    return exists(settings.milvus_address)
