"""``judgetree collections``: what can be asked."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict, dataclass
from pathlib import Path

from ...graphs.drawing.words import count_of
from ...modules.errors import CollectionError
from ...modules.index.connection import MilvusConnection, connect, is_address
from ...modules.index.content import stored_files
from ...modules.index.schema import list_collections, read_collection_info
from ...modules.memory.schema import is_memory
from ...modules.settings import Settings, load_settings
from ..terminal.exit_status import OK
from ..terminal.terminal import Cell, say, write_json, write_rows


@dataclass(frozen=True, kw_only=True)
class CollectionSummary:
    """One collection in a line."""

    name: str
    files: int = 0
    chunks: int = 0
    embedders: tuple[str, ...] = ()
    analyzer: str = ""
    chunk_size: int = 0
    problem: str = ""
    """Why it cannot be asked; ``""`` if it can."""


def run_collections(*, as_json: bool) -> int:
    """List the collections of the database.

    Raises:
        UserError: The database cannot be opened.
    """
    collections = read_collections(load_settings())
    if as_json:
        write_json([asdict(collection) for collection in collections])
    elif collections:
        write_rows(_row(collection) for collection in collections)
    else:
        say("No collections yet. Make one: judgetree index FOLDER -c NAME")
    return OK


def read_collections(settings: Settings) -> list[CollectionSummary]:
    """The collections of documents, sorted by name; none, and no folder made, where there is no database yet.

    Raises:
        CollectionError: The database cannot be opened.
    """
    if not database_exists(settings):
        return []
    with closing(connect(settings.milvus_address, settings.milvus_token.get_secret_value())) as connection:
        return list(_summaries(connection))


def database_exists(settings: Settings) -> bool:
    """False for a Lite folder that nothing has been written to yet."""
    address = settings.milvus_address
    return is_address(address) or not address.endswith(".db") or Path(address).expanduser().exists()


def _summaries(connection: MilvusConnection) -> Iterator[CollectionSummary]:
    for name in list_collections(connection.client):
        if is_memory(connection.client, name):
            continue
        try:
            info = read_collection_info(connection.client, name)
        except CollectionError as error:
            yield CollectionSummary(name=name, problem=str(error))
            continue
        connection.client.load_collection(name)  # a Lite folder that is opened again has nothing loaded
        files = stored_files(connection.client, name).values()
        yield CollectionSummary(
            name=name,
            files=len(files),
            chunks=sum(len(file.chunk_ids) for file in files),
            embedders=tuple(info.embedders.values()),
            analyzer=info.analyzer,
            chunk_size=info.chunk_size,
        )


def _row(collection: CollectionSummary) -> tuple[Cell, ...]:
    if collection.problem:
        return ((collection.name, ""), ("", ""), ("", ""), (collection.problem, "yellow"))
    return (
        (collection.name, "bold"),
        (count_of(collection.chunks, "chunk"), ""),
        (count_of(collection.files, "file"), ""),
        (f"{', '.join(collection.embedders)} · {collection.analyzer} · {collection.chunk_size}", "dim"),
    )
