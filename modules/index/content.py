"""Reading and changing the content of a collection, and filter expressions.

On Milvus Lite every change makes a new collection: BM25 counts words by segment there, and a chunk in a later segment
would rank wrongly. The files of an embedded collection are copied (``lite_files``); behind ``milvus-lite server`` all
rows pass through requests, in the order of their ids. On a server rows are upserted and deleted in place.
"""

from __future__ import annotations

import heapq
import logging
import uuid
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING, Protocol, TypeVar

import numpy as np

from ..digests import text_digest
from ..embedding.cache import Vector
from ..errors import CollectionError, MilvusFailure
from ..progress import StageProgress
from . import lite_files
from .connection import MilvusConnection
from .lite_files import CollectionFiles
from .schema import (
    PK_FIELD,
    PROPERTY,
    REVISION,
    SEARCH_FIELD,
    TEXT_FIELD,
    CollectionInfo,
    IndexParams,
    all_index_params,
    create_physical,
    leftovers,
    new_physical_name,
    physical_name,
    prepared_indexes,
    primary_key,
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
TITLE = "title"
FILE_DIGEST = "file_digest"
DYNAMIC_FIELDS = "$meta"
_PAGE_ROWS = 1000
_PAGE_KEYS = 10_000  # a page costs Lite a scan of all rows; a server returns at most 16,384
_BATCH_TEXT_CHARACTERS = 4_000_000  # a gRPC message holds 64 MB


class Rows(Protocol):
    """Rows whose number is known before they are read."""

    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[Row]: ...


@dataclass(frozen=True, kw_only=True)
class StoredFile:
    """The chunks of one file in the collection."""

    digest: str
    """Digest of the file; empty if an interruption left a part of its chunks, or chunks of two versions."""
    chunk_ids: frozenset[str]


@dataclass(frozen=True, kw_only=True)
class Changes:
    """One change of a collection."""

    info: CollectionInfo
    """New description of the collection."""
    rows: Rows
    """Rows to upsert; read once, in any order."""
    removed: frozenset[str] = frozenset()
    """Stored ids to delete; an upserted row wins over the deletion of its id."""
    rebuilt: frozenset[str] = frozenset()
    """Vector fields whose index is built anew; those with other parameters are in any case."""
    on_progress: StageProgress
    """Called after each batch."""
    check: Callable[[], None] = lambda: None
    """Called before each step that other processes see; its errors stop the writing."""


def stored_files(connection: MilvusConnection, name: str) -> dict[str, StoredFile]:
    """Return the files by source; reads ids and digests of all chunks (20,000: 0.2 s embedded, else 4 s on Lite)."""
    digests: dict[str, set[str]] = {}
    ids: dict[str, set[str]] = {}
    client = connection.client
    files = _open_files(connection, physical_name(client, name))
    rows = _rows(client, name, [SOURCE, FILE_DIGEST], page_rows=_PAGE_KEYS)
    for pk, row in files.metadata() if files else ((_pk(row), row) for row in rows):
        source = str(row[SOURCE])
        digests.setdefault(source, set()).add(str(row[FILE_DIGEST]))
        ids.setdefault(source, set()).add(pk)
    return {
        source: StoredFile(digest=_digest_of_all(digests[source], len(found)), chunk_ids=frozenset(found))
        for source, found in ids.items()
    }


def known_values(client: MilvusClient, name: str, field: str, values: Sequence[str]) -> set[str]:
    """Return those of some values of a field that chunks of the collection have; reads that field of all these."""
    known: set[str] = set()
    for start in range(0, len(values), _PAGE_ROWS):
        left = set(values[start : start + _PAGE_ROWS])
        while left:
            condition = text_in(field, sorted(left))
            rows = client.query(
                name, filter=condition, output_fields=[field], limit=_PAGE_KEYS, consistency_level="Strong"
            )
            found = {str(row[field]) for row in rows}
            known |= found
            left = left - found if len(rows) == _PAGE_KEYS else set()
    return known


def file_digest(digest: str, chunks: int) -> str:
    """Return the facts that each chunk of a file repeats: digest of the file, and number of chunks."""
    return f"{digest} {chunks}"


def _digest_of_all(said: Collection[str], chunks: int) -> str:
    """Return the digest if all chunks of one version are there; collections of older versions say no number."""
    if len(said) > 1:
        return ""
    digest, _, number = next(iter(said)).partition(" ")
    return digest if number in ("", str(chunks)) else ""


def content_digest(client: MilvusClient, name: str, *, text_field: str = TEXT_FIELD) -> str:
    """Return the SHA-256, in hexadecimal, of the sorted chunk ids; reads all ids.

    In a collection of another program ids say nothing about texts, so that their digests count too.
    """
    described = client.describe_collection(name)
    key, before_all = primary_key(described)
    if (described.get("properties") or {}).get(PROPERTY):
        ids = sorted(str(row[key]) for row in _rows(client, name, [key], page_rows=_PAGE_KEYS))
    else:
        rows = _rows(client, name, [key, text_field], key=key, after=before_all)
        ids = sorted(f"{row[key]} {text_digest(str(row[text_field])).hex()}" for row in rows)
    return text_digest("\n".join(ids)).hex()


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
    old = physical_name(connection.client, name)
    if connection.folder is not None or old is None:
        _rewrite(connection, name, old, changes)
        return
    before, after = (all_index_params(info) for info in (read_collection_info(connection.client, name), changes.info))
    changes.check()
    _rebuild_indexes(connection.client, old, before, after, rebuilt=changes.rebuilt)
    if connection.is_lite and (changes.rows or changes.removed):
        _rewrite(connection, name, old, changes)
    else:
        _change_in_place(connection.client, name, old, changes)


def _rebuild_indexes(
    client: MilvusClient,
    physical: str,
    before: Mapping[str, IndexParams],
    after: Mapping[str, IndexParams],
    *,
    rebuilt: Collection[str],
) -> None:
    """Drop and build the indexes that changed, and those of ``rebuilt``; searches fail meanwhile.

    Parameters that Milvus refuses leave the former indexes.
    """
    fields = [field for field, params in after.items() if params != before[field] or field in rebuilt]
    if not fields:
        return
    client.release_collection(physical)
    try:
        for field in fields:
            _build_index(client, physical, field, after[field])
    except BaseException:
        for field in fields:
            with suppress(MilvusFailure):  # it would hide the first error
                _build_index(client, physical, field, before[field])
        raise
    finally:
        client.load_collection(physical)


def _build_index(client: MilvusClient, physical: str, field: str, params: IndexParams) -> None:
    with suppress(MilvusFailure):  # an interruption left none
        client.drop_index(physical, field)
    client.create_index(physical, prepared_indexes(client, {field: params}))


def drop_leftovers(connection: MilvusConnection, name: str) -> None:
    """Drop the collections of interrupted rewrites."""
    for physical in leftovers(connection.client, name):
        logger.info("Dropping %s, left behind by an interrupted rewrite.", physical)
        connection.client.drop_collection(physical)
    if connection.folder is not None:
        lite_files.drop_unfinished(connection.folder, name)


def _rewrite(connection: MilvusConnection, name: str, old: str | None, changes: Changes) -> None:
    client, made = connection.client, [new_physical_name(name)]
    total = len(changes.rows)
    create_physical(client, made[0], changes.info)
    try:
        if old is not None:
            total += _count(client, old) - len(changes.removed)
        files = _open_files(connection, old)
        kept = _kept_rows(client, old, changes) if old and files is None else iter(())
        new: Iterable[Row] = sorted(changes.rows, key=_pk) if connection.is_lite else changes.rows
        rows = heapq.merge(kept, new, key=_pk) if connection.is_lite else new
        _insert(client.insert, made[0], rows, len(changes.rows) if files else total, changes.on_progress)
        client.flush(made[0])
        if files and (joined := _open_files(connection, made[0])):
            made.append(new_physical_name(name))
            lite_files.join(files, joined, changes.removed, made[-1], rebuilt=changes.rebuilt)
            client.load_collection(made[-1])
        if (found := _count(client, made[-1])) != total:
            raise CollectionError(f"Milvus kept {found} of {total} chunks; {name!r} is unchanged. Index again.")
        changes.check()
    except BaseException:
        for physical in made:
            with suppress(MilvusFailure):  # it would hide the first error
                client.drop_collection(physical)
        raise
    if old is None:
        client.create_alias(made[-1], name)
    else:
        client.alter_alias(made[-1], name)
    for physical in [*made[:-1], *([] if old is None else [old])]:
        client.drop_collection(physical)


def _open_files(connection: MilvusConnection, physical: str | None) -> CollectionFiles | None:
    """Return the files of an embedded collection; None for others, and if another program has changed it in place."""
    if connection.folder is None or physical is None:
        return None
    connection.client.flush(physical)
    return lite_files.open_files(connection.folder, physical)


def _kept_rows(client: MilvusClient, old: str, changes: Changes) -> Iterator[Row]:
    fields = [*changes.info.text_fields, *changes.info.dimensions, DYNAMIC_FIELDS]
    return (row for row in _rows(client, old, fields) if row[PK_FIELD] not in changes.removed)


def _change_in_place(client: MilvusClient, name: str, physical: str, changes: Changes) -> None:
    def changed() -> None:
        # After each step, since a digest computed between two steps would count as that of the end.
        properties = {PROPERTY: changes.info.to_json(), REVISION: uuid.uuid4().hex}
        client.alter_collection_properties(physical, properties)

    put_ids: set[str] = set()

    def put(target: str, batch: list[Row]) -> None:
        changes.check()
        client.upsert(target, batch)
        put_ids.update(map(_pk, batch))
        changed()

    # New rows first, so that a parallel search or a kill does not find a file missing.
    _insert(put, name, changes.rows, len(changes.rows), changes.on_progress)
    removed = sorted(changes.removed - put_ids)
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
    for batch in batches(rows, _characters, _BATCH_TEXT_CHARACTERS):
        put(target, batch)
        done += len(batch)
        on_progress(done, total, "write")


def _characters(row: Row) -> int:
    return len(str(row[TEXT_FIELD])) + len(str(row.get(SEARCH_FIELD, "")))


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


def read_pages(
    read: Callable[[str], Sequence[R]], page_rows: int, *, key: str = PK_FIELD, after: str | int = ""
) -> Iterator[R]:
    """Yield the rows after a key in the order of their keys, which are texts or integers.

    ``read`` returns the next ``page_rows`` rows that pass a filter.
    """
    last: object = after
    while True:
        page = read(f"{key} > {quoted(last) if isinstance(last, str) else last}")
        yield from page
        if len(page) < page_rows:
            return
        last = page[-1][key]


def _count(client: MilvusClient, name: str) -> int:
    counted = client.query(name, filter="", output_fields=["count(*)"], consistency_level="Strong")
    return int(counted[0]["count(*)"])


def _rows(
    client: MilvusClient,
    name: str,
    fields: list[str],
    *,
    page_rows: int = _PAGE_ROWS,
    key: str = PK_FIELD,
    after: str | int = "",
) -> Iterator[Row]:
    # The query of pymilvus's query_iterator ("iterator" orders by key) without the timestamp that it fetches first:
    # Milvus Lite has none and logs a traceback at every try.
    options = {"output_fields": fields, "limit": page_rows, "consistency_level": "Strong", "iterator": "True"}

    def read(condition: str) -> list[Row]:
        return list(map(dict, client.query(name, filter=condition, **options)))

    return read_pages(read, page_rows, key=key, after=after)


def _pk(row: Row) -> str:
    return str(row[PK_FIELD])
