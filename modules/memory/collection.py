"""The Milvus collection of the long-term memory, opened on demand."""

from __future__ import annotations

import threading
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import TYPE_CHECKING

from ..addresses import Address
from ..embedding.embedder import embedder_name
from ..errors import CollectionError, MilvusFailure
from ..index.connection import MilvusConnection, OpenUses, connect
from ..index.content import batches, read_pages
from ..index.dense_fields import Embedders, check_embedders
from ..index.schema import DENSE_FIELD, PK_FIELD, CollectionInfo, check_name
from .schema import RECORD_FIELD, Row, create_memory, load_memory, memory_info, read_memory_info

if TYPE_CHECKING:
    from pymilvus import MilvusClient

CALL_TIMEOUT_S = 30.0
FLUSH_EVERY_ROWS = 128
"""Rows between two flushes: Lite reads unflushed rows one by one (4 ms a hundred), and a flush costs it 20 ms. A server
flushes by itself."""
LITE_EF = 4096
"""Lite counts rows outside the filter among the candidates: with 64, it misses a few turns in a large memory."""
SERVER_EF = 64
_PAGE_ROWS = 1000
_PAGE_RECORDS = 256  # a gRPC message holds 64 MB
_KEYS_A_DELETE = 1000
_BATCH_CHARACTERS = 8_000_000
_ONE_AT_A_TIME = threading.Lock()
"""Two threads that create a collection, or first write to it, at once make Lite leave a file open."""


class MemoryCollection:
    """The rows of the memory, by filter or by nearness. Call ``open`` before all other methods except ``close``.

    None for ``uri`` or ``token`` takes the setting.
    """

    def __init__(self, name: str, embedders: Embedders, *, uri: str | None, token: str | None) -> None:
        check_name(name)
        self.name = name
        self._embedders = embedders
        self._uri = None if uri is None else Address(uri)
        self._token = token
        self._connection: MilvusConnection | None = None
        self._info: CollectionInfo | None = None
        self._unflushed = 0
        self._opening = threading.RLock()
        self.uses = OpenUses()
        """Current uses in other threads, which ``close`` waits for."""

    def open(self, *, dimension: int | None = None) -> bool:
        """Load the collection, created if a dimension is given; return whether it exists.

        Raises:
            CollectionError: The database cannot be used, the collection is not a memory, or its vectors come from
                another embedder or have another length.
        """
        with self._opening, self._explained("be opened"):
            if self._info is None:
                self._info = self._open_or_create(self._client, dimension)
            info = self._info
        if info is not None and dimension not in (None, info.dimensions[DENSE_FIELD]):
            raise CollectionError(
                f"The embedder gives vectors of length {dimension}, the memory {self.name!r} takes "
                f"{info.dimensions[DENSE_FIELD]}. Use the embedder of the memory, or choose another name "
                "(JUDGETREE_CONVERSATION_COLLECTION)."
            )
        return info is not None

    def close(self) -> None:
        """Wait for uses in other threads, then close the connection; ``open`` makes a new one."""
        self.uses.wait_for_end()
        with self._opening:
            self._info = None
            if self._connection is not None:
                self._connection.close()
                self._connection = None

    def rows(self, condition: str, columns: Sequence[str]) -> Iterator[Row]:
        """Yield the rows that pass a filter (``""``: all), in the order of their keys, read in pages."""
        page_rows = _PAGE_RECORDS if RECORD_FIELD in columns or "*" in columns else _PAGE_ROWS
        return read_pages(lambda after: self._page(condition, columns, after, page_rows), page_rows)

    def search(
        self, vector: Sequence[float], condition: str, columns: Sequence[str], limit: int
    ) -> list[tuple[Row, float]]:
        """Return the filtered rows nearest to a vector with their cosines, best first."""
        with self._explained("be searched"):
            ef = LITE_EF if self._lite else SERVER_EF
            hits = self._client.search(
                self.name,
                data=[list(vector)],
                anns_field=DENSE_FIELD,
                limit=limit,
                filter=condition,
                search_params={"metric_type": "COSINE", "params": {"ef": max(ef, 2 * limit)}},
                output_fields=list(columns),
                consistency_level="Strong",
                timeout=CALL_TIMEOUT_S,
            )[0]
        return [({**hit["entity"], PK_FIELD: hit[PK_FIELD]}, float(hit["distance"])) for hit in hits]

    def upsert(self, rows: Sequence[Row]) -> None:
        """Write rows, each in place of the one with its key, and flush Lite so that searches stay fast."""
        with self._explained("be written to"), self._one_writer():
            for batch in batches(rows, _characters_of, _BATCH_CHARACTERS):
                self._client.upsert(self.name, batch, timeout=CALL_TIMEOUT_S)
            self._flush_if_due(len(rows))

    def delete(self, keys: Sequence[str]) -> None:
        """Delete rows by key."""
        with self._explained("be written to"), self._one_writer():
            for start in range(0, len(keys), _KEYS_A_DELETE):
                batch = list(keys[start : start + _KEYS_A_DELETE])
                self._client.delete(self.name, ids=batch, timeout=CALL_TIMEOUT_S)
            self._flush_if_due(len(keys))

    @property
    def _client(self) -> MilvusClient:
        with self._opening:
            if self._connection is None or self._connection.closed:
                self._connection = connect(self._uri, self._token)
            return self._connection.client

    @property
    def _lite(self) -> bool:
        return self._connection is not None and self._connection.is_lite

    def _open_or_create(self, client: MilvusClient, dimension: int | None) -> CollectionInfo | None:
        with self._one_writer():
            if not client.has_collection(self.name):
                if dimension is None:
                    return None
                create_memory(client, self.name, memory_info(embedder_name(self._embedders[DENSE_FIELD]), dimension))
        info = read_memory_info(client, self.name)
        check_embedders(self.name, info, self._embedders)
        load_memory(client, self.name)
        return info

    def _page(self, condition: str, columns: Sequence[str], after: str, page_rows: int) -> list[Row]:
        with self._explained("be read"):
            page = self._client.query(
                self.name,
                filter=f"{condition} and {after}" if condition else after,
                output_fields=list(columns),
                limit=page_rows,
                consistency_level="Strong",
                timeout=CALL_TIMEOUT_S,
                iterator="True",  # returns rows in the order of their keys
            )
        return [dict(row) for row in page]

    def _one_writer(self) -> AbstractContextManager[object]:
        """Serialise writers of Lite: of two first writers at once, each opens its log, and one log stays open."""
        return _ONE_AT_A_TIME if self._lite else nullcontext()

    def _flush_if_due(self, rows: int) -> None:
        self._unflushed += rows
        if not self._lite or self._unflushed < FLUSH_EVERY_ROWS:
            return
        self._unflushed = 0
        self._client.flush(self.name, timeout=CALL_TIMEOUT_S)

    @contextmanager
    def _explained(self, action: str) -> Iterator[None]:
        try:
            with self.uses.entered():
                yield
        except MilvusFailure as error:
            # The server may have restarted, or the collection been dropped: the next use opens it again.
            self._info = None
            raise MilvusFailure(f"The memory {self.name!r} cannot {action}. {error}") from error


def _characters_of(row: Row) -> int:
    pieces = row.get(RECORD_FIELD)
    texts = [*row.values(), *(pieces if isinstance(pieces, list) else ())]
    return sum(len(text) for text in texts if isinstance(text, str))
