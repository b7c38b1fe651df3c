"""Searches in a snapshot of a collection where it gives what the store would, else in the store."""

from __future__ import annotations

import logging
import threading
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
from langchain_core.documents import Document

from ..index.index import Index
from ..index.lite_state import FilesState, FilesWatch
from ..index.schema import SPARSE_FIELD
from ..settings import load_settings
from .contract import Searcher
from .fusion import Ranked, fuse, fusion_for
from .search import MOST_HITS, FieldSearch, Hits, SearchTarget, Vectors, similarity
from .snapshot import NoSnapshot, Snapshot, snapshot_of

if TYPE_CHECKING:
    from pymilvus.client.abstract import BaseRanker

logger = logging.getLogger(__name__)


def searcher_of(target: SearchTarget, index: object) -> Searcher:
    """Return what searches a collection: its snapshots, if it is in a Milvus Lite folder and they are enabled."""
    if not isinstance(index, Index) or (index.search_snapshot or load_settings().search_snapshot) == "off":
        return target
    folder = index.connection.folder
    return target if folder is None else SnapshotTarget(store=target, watch=FilesWatch(folder, target.collection))


@dataclass(kw_only=True, eq=False)
class SnapshotTarget:
    """A collection in a Milvus Lite folder, searched in its snapshot with the hits and scores of the store.

    Before each search the files are looked at. Once they have changed the next snapshot is made, and while rows are not
    flushed the store is searched. So it is for filters, search parameters, and indexes other than HNSW and BM25.
    """

    store: SearchTarget
    watch: FilesWatch
    _present: tuple[FilesState, Snapshot | None] | None = field(default=None, init=False)
    _making: threading.Lock = field(default_factory=threading.Lock, init=False, repr=False)

    def search(self, request: FieldSearch, limit: int) -> Hits:
        """Search one field for at most ``limit`` hits; they come best first.

        Raises:
            CollectionError: The store was searched, and refused or did not answer.
        """
        snapshot = self.snapshot()
        ranked = None if snapshot is None else _ranked(snapshot, request, limit)
        if snapshot is None or ranked is None:
            return self.store.search(request, limit)
        return self._hits(
            snapshot, [(row, similarity(value, request.field.metric, lite=False)) for row, value in ranked]
        )

    def fused_search(self, requests: Sequence[FieldSearch], ranker: BaseRanker, limit: int) -> Hits:
        """Search several fields for ``limit`` hits each and fuse them; at most ``limit`` come, best first.

        Raises:
            CollectionError: The store was searched, and refused or did not answer.
        """
        snapshot, fusion = self.snapshot(), fusion_for(ranker.dict())
        if snapshot is not None and fusion is not None:
            found = [(request.field.metric, _ranked(snapshot, request, limit)) for request in requests]
            ranked = [(metric, hits) for metric, hits in found if hits is not None]
            if len(ranked) == len(found):
                return self._hits(snapshot, fuse(fusion, ranked, limit, snapshot.id_of))
        return self.store.fused_search(requests, ranker, limit)

    def vectors(self, field: str, chunk_ids: Sequence[str]) -> Vectors:
        """Return the vectors of chunks in a dense field by chunk id; a chunk that is not there has none.

        Raises:
            CollectionError: The store was asked, and refused or did not answer.
        """
        snapshot = self.snapshot()
        if snapshot is None or field not in snapshot.graphs:
            return self.store.vectors(field, chunk_ids)
        return snapshot.vectors(field, chunk_ids)

    def chunks(self, chunk_ids: Sequence[str], expr: str = "") -> dict[str, Document]:
        """Return chunks by id; those that are not there, or that ``expr`` leaves out, are missing.

        Raises:
            CollectionError: The store was asked, and refused or did not answer.
        """
        snapshot = self.snapshot()
        if snapshot is None or expr:
            return self.store.chunks(chunk_ids, expr)
        found = map(snapshot.entity, snapshot.rows_of(chunk_ids).tolist())
        return {pk: self.store.as_chunk(pk, entity) for pk, entity in found}

    def snapshot(self) -> Snapshot | None:
        """Return the snapshot of the present files, made if there is none; None if the store must be searched."""
        state = self.watch.state()
        if state is None:
            return None
        with self._making:
            if self._present is None or self._present[0] != state:
                self._present = None  # its memory is free before the next one is made
                self._present = (state, _made(state))
            return self._present[1]

    def _hits(self, snapshot: Snapshot, ranked: Ranked) -> Hits:
        hits: Hits = []
        for row, score in ranked:
            pk, entity = snapshot.entity(row)
            hits.append((self.store.as_chunk(pk, entity), _single(score)))
        return hits


def _made(state: FilesState) -> Snapshot | None:
    try:
        return snapshot_of(state)
    except NoSnapshot as reason:
        logger.info("%s is searched in Milvus Lite, without a snapshot: %s.", state.physical, reason)
        return None


def _ranked(snapshot: Snapshot, request: FieldSearch, limit: int) -> Ranked | None:
    """Return rows with Milvus's "distances", but BM25 scores above 0; None if the store must be searched."""
    wanted, data = request.field, request.data
    if request.expr or request.params is not None or limit > MOST_HITS:
        return None
    if isinstance(data, str):
        return snapshot.sparse_search(data, limit) if wanted.name == SPARSE_FIELD else None
    graph = snapshot.graphs.get(wanted.name)
    if graph is None or graph.metric != wanted.metric or isinstance(data, Mapping) or len(data) != graph.index.d:
        return None
    return graph.search(data, wanted.ef(limit), limit)


def _single(score: float) -> float:
    """Round to single precision, in which Milvus returns scores."""
    return float(np.float32(score))
