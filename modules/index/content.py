"""Reading and changing the content of a collection, and filter expressions.

On Milvus Lite every change rewrites the collection: BM25 counts words by segment there, and a chunk in a later segment
would rank wrongly. Rows are written in the order of their ids, so that the same chunks always make the same collection.
On a server rows are upserted and deleted in place.
"""

from __future__ import annotations

import hashlib
import heapq
import logging
import uuid
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, TypeVar

import numpy as np

from ..embedding.cache import Vector
from ..errors import CollectionError, MilvusFailure
from ..progress import StageProgress
from .connection import MilvusConnection
from .schema import (
    PK_FIELD,
    PROPERTY,
    REVISION,
    TEXT_FIELD,
    CollectionInfo,
    all_index_params,
    create_physical,
    leftovers,
    new_physical_name,
    physical_name,
    read_collection_info,
)

if TYPE_CHECKING:
    from pymilvus import MilvusClient

# Not json.dumps: its \u0001 for control characters is an unknown escape to Milvus Lite.
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})


def quoted(text: str) -> str:
    r"""Return a string literal for Milvus filters that means exactly this text.

    >>> print(quoted('say "no"'))
    "say \"no\""
    """
    return f'"{text.translate(_ESCAPES)}"'


def text_in(field: str, values: Iterable[str]) -> str:
    """Return a filter for rows whose field equals one of the values.

    >>> print(text_in("source", ["a.md", "b.md"]))
    source in ["a.md", "b.md"]
    """
    return f"{field} in [{', '.join(map(quoted, values))}]"


logger = logging.getLogger(__name__)

R = TypeVar("R", bound=Mapping[str, object])
Row = dict[str, object]
"""One chunk in Milvus: ``pk``, ``text``, a vector for each dense field, and the metadata."""

SOURCE = "source"
FILE_DIGEST = "file_digest"
DYNAMIC_FIELDS = "$meta"
_PAGE_ROWS = 1000
_PAGE_KEYS = 10_000  # a page costs Lite a scan of all rows; a server returns at most 16,384
_BATCH_TEXT_CHARACTERS = 4_000_000  # a gRPC message holds 64 MB


@dataclass(frozen=True, kw_only=True)
class StoredFile:
    """The chunks of one file in the collection."""

    digest: str
    chunk_ids: frozenset[str]


@dataclass(frozen=True, kw_only=True)
class Changes:
    """One change of a collection."""

    info: CollectionInfo
    """New description of the collection."""
    rows: Sequence[Row]
    """Rows to upsert."""
    removed: frozenset[str]
    """Stored ids to delete; an upserted row wins over the deletion of its id."""
    on_progress: StageProgress
    """Called after each batch."""
    check: Callable[[], None] = lambda: None
    """Called before each step that other processes see; its errors stop the writing."""


def stored_files(client: MilvusClient, name: str) -> dict[str, StoredFile]:
    """Return the files by source; reads ids and digests of all chunks (0.6 s for 5,000 on Lite)."""
    digests: dict[str, str] = {}
    ids: dict[str, set[str]] = {}
    for row in _rows(client, name, [SOURCE, FILE_DIGEST], page_rows=_PAGE_KEYS):
        source = str(row[SOURCE])
        digests[source] = str(row[FILE_DIGEST])
        ids.setdefault(source, set()).add(str(row[PK_FIELD]))
    return {source: StoredFile(digest=digests[source], chunk_ids=frozenset(ids[source])) for source in ids}


def content_digest(client: MilvusClient, name: str) -> str:
    """Return the SHA-256, in hexadecimal, of the sorted chunk ids; reads all ids."""
    ids = sorted(str(row[PK_FIELD]) for row in _rows(client, name, [PK_FIELD], page_rows=_PAGE_KEYS))
    return hashlib.sha256("\n".join(ids).encode()).hexdigest()


def stored_vectors(
    client: MilvusClient, name: str, chunk_ids: Sequence[str], fields: Sequence[str]
) -> dict[str, dict[str, Vector]]:
    """Return dense vectors by chunk id and field; unknown ids are left out."""
    vectors: dict[str, dict[str, Vector]] = {}
    for start in range(0, len(chunk_ids), _PAGE_ROWS):
        page = list(chunk_ids[start : start + _PAGE_ROWS])
        for row in client.get(name, ids=page, output_fields=[PK_FIELD, *fields]):
            vectors[row[PK_FIELD]] = {field: np.asarray(row[field], dtype=np.float32) for field in fields}
    return vectors


def write(connection: MilvusConnection, name: str, changes: Changes) -> None:
    """Apply the changes, creating the collection if needed, and return when they are flushed and searchable.

    An interruption on Lite, or of a creation, leaves the name pointing to the previous content.
    """
    client = connection.client
    old = physical_name(client, name)
    if (
        connection.is_lite
        or old is None
        or all_index_params(read_collection_info(client, name)) != all_index_params(changes.info)
    ):
        _rewrite(client, name, old, changes)
    else:
        _change_in_place(client, name, old, changes)


def drop_leftovers(client: MilvusClient, name: str) -> None:
    """Drop the collections of interrupted rewrites."""
    for physical in leftovers(client, name):
        logger.info("Dropping %s, left behind by an interrupted rewrite.", physical)
        client.drop_collection(physical)


def _rewrite(client: MilvusClient, name: str, old: str | None, changes: Changes) -> None:
    new = new_physical_name(name)
    create_physical(client, new, changes.info)
    try:
        kept = _kept_rows(client, old, changes) if old else iter(())
        total = len(changes.rows) + (_count(client, old) - len(changes.removed) if old else 0)
        rows = heapq.merge(kept, sorted(changes.rows, key=_pk), key=_pk)
        _insert(client.insert, new, rows, total, changes.on_progress)
        client.flush(new)
        if (found := _count(client, new)) != total:
            raise CollectionError(f"Milvus kept {found} of {total} chunks; {name!r} is unchanged. Index again.")
        changes.check()
    except BaseException:
        with suppress(MilvusFailure):  # it would hide the first error
            client.drop_collection(new)
        raise
    if old is None:
        client.create_alias(new, name)
        return
    client.alter_alias(new, name)
    client.drop_collection(old)


def _kept_rows(client: MilvusClient, old: str, changes: Changes) -> Iterator[Row]:
    fields = [TEXT_FIELD, *changes.info.dimensions, DYNAMIC_FIELDS]
    return (row for row in _rows(client, old, fields) if row[PK_FIELD] not in changes.removed)


def _change_in_place(client: MilvusClient, name: str, physical: str, changes: Changes) -> None:
    def changed() -> None:
        # After each step, since a digest computed between two steps would count as that of the end.
        properties = {PROPERTY: changes.info.to_json(), REVISION: uuid.uuid4().hex}
        client.alter_collection_properties(physical, properties)

    def put(target: str, batch: list[Row]) -> None:
        changes.check()
        client.upsert(target, batch)
        changed()

    # New rows first, so that a parallel search or a kill does not find a file missing.
    _insert(put, name, changes.rows, len(changes.rows), changes.on_progress)
    removed = sorted(changes.removed - {_pk(row) for row in changes.rows})
    for start in range(0, len(removed), _PAGE_ROWS):
        changes.check()
        client.delete(name, ids=removed[start : start + _PAGE_ROWS])
        changed()
    client.flush(name)
    changed()


def _insert(
    put: Callable[[str, list[Row]], object], target: str, rows: Iterable[Row], total: int, on_progress: StageProgress
) -> None:
    done = 0
    for batch in batches(rows, lambda row: len(str(row[TEXT_FIELD])), _BATCH_TEXT_CHARACTERS):
        put(target, batch)
        done += len(batch)
        on_progress(done, total, "write")


def batches(rows: Iterable[R], size_of: Callable[[R], int], max_size: int) -> Iterator[list[R]]:
    """Yield the rows in batches of at most 1,000 rows and ``max_size``; a larger row is a batch of its own."""
    batch: list[R] = []
    total = 0
    for row in rows:
        size = size_of(row)
        if batch and (len(batch) == _PAGE_ROWS or total + size > max_size):
            yield batch
            batch, total = [], 0
        batch.append(row)
        total += size
    if batch:
        yield batch


def read_pages(read: Callable[[str], Sequence[R]], page_rows: int) -> Iterator[R]:
    """Yield rows in the order of their keys; ``read`` returns the next ``page_rows`` rows that pass a filter."""
    last = ""
    while True:
        page = read(f"{PK_FIELD} > {quoted(last)}")
        yield from page
        if len(page) < page_rows:
            return
        last = str(page[-1][PK_FIELD])


def _count(client: MilvusClient, name: str) -> int:
    counted = client.query(name, filter="", output_fields=["count(*)"], consistency_level="Strong")
    return int(counted[0]["count(*)"])


def _rows(client: MilvusClient, name: str, fields: list[str], *, page_rows: int = _PAGE_ROWS) -> Iterator[Row]:
    # The query of pymilvus's query_iterator ("iterator" orders by key) without the timestamp that it fetches first:
    # Milvus Lite has none and logs a traceback at every try.
    options = {"output_fields": fields, "limit": page_rows, "consistency_level": "Strong", "iterator": "True"}
    return read_pages(lambda after: list(map(dict, client.query(name, filter=after, **options))), page_rows)


def _pk(row: Row) -> str:
    return str(row[PK_FIELD])
