"""The collections of documents in the database of the settings."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from ...modules.errors import CollectionError

if TYPE_CHECKING:
    from ...modules.settings import Settings


@dataclass(frozen=True, kw_only=True)
class CollectionSummary:
    """Name, size and settings of a collection."""

    name: str
    files: int = 0
    chunks: int = 0
    embedders: tuple[str, ...] = ()
    analyzer: str = ""
    chunk_size: int = 0
    problem: str = ""
    """Why the collection cannot be asked; ``""`` if it can."""


def read_collections(settings: Settings) -> Iterator[CollectionSummary]:
    """Yield the collections of documents, sorted by name; none, without creating a folder, if there is no database.

    Raises:
        CollectionError: The database cannot be opened.
    """
    from ...modules.index.connection import connect
    from ...modules.index.content import stored_files
    from ...modules.index.schema import list_collections, read_collection_info
    from ...modules.memory.schema import is_memory

    if not database_exists(settings):
        return
    with closing(connect(settings.milvus_address, settings.milvus_token.get_secret_value())) as connection:
        client = connection.client
        for name in list_collections(client):
            if is_memory(client, name):
                continue
            try:
                info = read_collection_info(client, name)
            except CollectionError as error:
                yield CollectionSummary(name=name, problem=str(error))
                continue
            client.load_collection(name)  # a reopened Lite folder has nothing loaded
            files = stored_files(connection, name).values()
            yield CollectionSummary(
                name=name,
                files=len(files),
                chunks=sum(len(file.chunk_ids) for file in files),
                embedders=tuple(info.embedders.values()),
                analyzer=info.analyzer,
                chunk_size=info.chunk_size,
            )


def database_exists(settings: Settings) -> bool:
    """Return whether the database exists; False for a Milvus Lite folder without data."""
    from ...modules.index.connection import is_address

    address = settings.milvus_address
    return is_address(address) or not address.endswith(".db") or Path(address).expanduser().exists()
