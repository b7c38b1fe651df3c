"""All passages of a collection, read for graphs."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ..index.connection import milvus_errors
from ..index.content import DYNAMIC_FIELDS, read_pages, text_in
from ..index.index import Index
from ..index.lite_files import open_files
from ..index.schema import PK_FIELD, TEXT_FIELD, physical_name

_PAGE_ROWS = 1000


@dataclass(frozen=True, kw_only=True)
class Passage:
    """A chunk as graphs read it."""

    chunk_id: str
    text: str
    metadata: Mapping[str, object] = field(default_factory=dict)

    @property
    def source(self) -> str:
        """The file that it is from."""
        return str(self.metadata.get("source", ""))


def passages_of(index: Index) -> Iterator[Passage]:
    """Yield the chunks of a collection by chunk id; reads all texts (100,000: seconds in a Milvus Lite folder).

    ::

        titles = {passage.source for passage in passages_of(index)}

    Raises:
        CollectionError: There is no such collection, or Milvus does not answer.
    """
    index.info()  # its error lists the collections
    return iter(sorted(_read(index), key=lambda each: each.chunk_id))


def passages_by_id(index: Index, chunk_ids: Sequence[str]) -> list[Passage]:
    """Return chunks by their ids, in any order; those that the collection has not are missing.

    Raises:
        CollectionError: Milvus does not answer.
    """
    if not chunk_ids:
        return []
    with milvus_errors("read passages"):
        rows = index.connection.client.query(
            index.vector_store_name,
            filter=text_in(PK_FIELD, chunk_ids),
            output_fields=[PK_FIELD, TEXT_FIELD, DYNAMIC_FIELDS],
        )
    return list(map(_passage, rows))


def _read(index: Index) -> Iterator[Passage]:
    connection, name = index.connection, index.vector_store_name
    physical = physical_name(connection.client, name)
    if connection.folder is not None and physical is not None:
        connection.client.flush(physical)
        files = open_files(connection.folder, physical)
        rows = files.rows([PK_FIELD, TEXT_FIELD, DYNAMIC_FIELDS]) if files else None
        if rows is not None:
            for row in rows.to_pylist():
                metadata = json.loads(row[DYNAMIC_FIELDS] or "{}")
                yield Passage(chunk_id=str(row[PK_FIELD]), text=str(row[TEXT_FIELD]), metadata=metadata)
            return

    def page(condition: str) -> list[dict[str, object]]:
        found = connection.client.query(
            name,
            filter=condition,
            output_fields=[PK_FIELD, TEXT_FIELD, DYNAMIC_FIELDS],
            limit=_PAGE_ROWS,
            consistency_level="Strong",
            iterator="True",
        )
        return list(map(dict, found))

    yield from map(_passage, read_pages(page, _PAGE_ROWS))


def _passage(row: Mapping[str, object]) -> Passage:
    metadata = {key: value for key, value in row.items() if key not in (PK_FIELD, TEXT_FIELD, DYNAMIC_FIELDS)}
    return Passage(chunk_id=str(row[PK_FIELD]), text=str(row[TEXT_FIELD]), metadata=metadata)
