"""A read-only snapshot of a collection in a Milvus Lite folder, which is searched in its place.

Lite's search makes masks and rows of Python objects for the whole collection. A snapshot reads the collection's files
once: the HNSW graphs that Lite has built, mapped into memory, the words that it has counted, inverted with numpy, and
texts and metadata. Nothing is written.
"""

from __future__ import annotations

import json
import logging
import os
import threading
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import import_module
from typing import TYPE_CHECKING, Any
from weakref import WeakValueDictionary

import numpy as np
import numpy.typing as npt

from ..index.lite_files import CollectionFiles, open_files
from ..index.lite_state import FilesState
from ..index.schema import PK_FIELD, SPARSE_FIELD, TEXT_FIELD
from .postings import Postings
from .search import of_length_one

if TYPE_CHECKING:
    import pyarrow as pa
    from milvus_lite.index.spec import IndexSpec

logger = logging.getLogger(__name__)

_META = "$meta"
_K1, _B = 1.5, 0.75
"""Defaults of Lite's BM25."""

_made: WeakValueDictionary[FilesState, Snapshot] = WeakValueDictionary()
_making = threading.Lock()


class NoSnapshot(Exception):
    """The files of a collection cannot be read as a snapshot."""


@dataclass(frozen=True, kw_only=True)
class DenseGraph:
    """The HNSW index of one dense field."""

    metric: str
    index: Any
    """faiss's index; read by any number of threads."""

    def search(self, vector: Sequence[float], ef: int, limit: int) -> list[tuple[int, float]]:
        """Return rows and Milvus's "distances", best first, which are those of Lite to the last bit."""
        faiss = import_module("faiss")
        query = np.asarray([vector], dtype=np.float32)
        if self.metric == "COSINE":
            query = of_length_one(query)
        parameters = faiss.SearchParametersHNSW(efSearch=ef)
        raw, rows = self.index.search(np.ascontiguousarray(query), limit, params=parameters)
        found = [(row, value) for row, value in zip(rows[0].tolist(), raw[0].tolist(), strict=True) if row >= 0]
        # Lite keeps what is small for the nearest, in single precision, and orders equal ones by row.
        near = sorted((float(np.float32(_small_is_near(value, self.metric))), row) for row, value in found)
        return [(row, _distance(value, self.metric)) for value, row in near]

    def vectors(self, rows: npt.NDArray[np.int64]) -> npt.NDArray[np.float32]:
        """Return the vectors of rows, shape (rows, dimension); under COSINE each has the length 1 or 0."""
        found: npt.NDArray[np.float32] = self.index.reconstruct_batch(rows)
        return found


def _small_is_near(value: float, metric: str) -> float:
    if metric == "COSINE":
        return 1.0 - value
    return float(np.sqrt(max(value, 0.0))) if metric == "L2" else -value


def _distance(near: float, metric: str) -> float:
    if metric == "COSINE":
        return 1.0 - near
    return near * near if metric == "L2" else -near


@dataclass(frozen=True, kw_only=True, eq=False)
class Snapshot:
    """A collection as it was at one time."""

    graphs: Mapping[str, DenseGraph]
    """Indexes of the dense fields that have one of HNSW, by field."""
    postings: Postings
    analyzer: Any
    """Lite's analyzer, which cuts queries into words as it did the texts."""
    ids: pa.Array
    texts: pa.Array
    metadata: pa.Array
    """JSON objects."""
    hidden: frozenset[str]
    """Names of the schema's fields, which hide metadata of the same name."""

    def sparse_search(self, query: str, limit: int) -> list[tuple[int, float]]:
        """Return rows and BM25 scores, best first."""
        from milvus_lite.analyzer import compute_tf  # noqa: PLC0415 - only there with Lite

        rows, scores = self.postings.search(compute_tf(self.analyzer.analyze(query)), limit)
        return list(zip(rows.tolist(), scores.tolist(), strict=True))

    def vectors(self, field: str, chunk_ids: Sequence[str]) -> dict[str, npt.NDArray[np.float32]]:
        """Return the vectors of chunks by id, in one pass over all ids; a chunk that is not there has none."""
        rows = self.rows_of(chunk_ids)
        return dict(zip(map(self.id_of, rows.tolist()), self.graphs[field].vectors(rows), strict=True))

    def rows_of(self, chunk_ids: Sequence[str]) -> npt.NDArray[np.int64]:
        """Return the rows of the chunks that are there, in order of rows, in one pass over all ids."""
        import pyarrow as pa  # noqa: PLC0415 - only there with Lite
        import pyarrow.compute as pc  # noqa: PLC0415

        there = pc.is_in(self.ids, value_set=pa.array(chunk_ids, type=self.ids.type))
        return np.flatnonzero(there.to_numpy(zero_copy_only=False))

    def id_of(self, row: int) -> str:
        """Return the id of a row."""
        return str(self.ids[row].as_py())

    def entity(self, row: int) -> tuple[str, dict[str, object]]:
        """Return the id of a row, and its text and metadata as Milvus returns them."""
        kept = json.loads(self.metadata[row].as_py() or "{}")
        entity = {key: value for key, value in kept.items() if key not in self.hidden}
        return self.id_of(row), {TEXT_FIELD: self.texts[row].as_py(), **entity}


def snapshot_of(state: FilesState) -> Snapshot:
    """Return the snapshot of a state, made if no retriever of this process has it (a second for 100,000 chunks).

    Raises:
        NoSnapshot: The files cannot be read so: another program wrote several of them, or they are damaged.
    """
    with _making:
        if (known := _made.get(state)) is None:
            started = time.perf_counter()
            known = _made[state] = _make(state)
            seconds = time.perf_counter() - started
            logger.debug("Snapshot of %s: %d chunks in %.2f s.", state.physical, len(known.ids), seconds)
        return known


def _make(state: FilesState) -> Snapshot:
    import pyarrow as pa  # noqa: PLC0415 - only there with Lite
    from milvus_lite import MilvusLiteError  # noqa: PLC0415
    from milvus_lite.analyzer import create_analyzer  # noqa: PLC0415
    from milvus_lite.schema.persistence import load_schema  # noqa: PLC0415

    try:
        files = open_files(state.home.parents[1], state.physical)
        if files is None:
            raise NoSnapshot("another program has left several files, or deletions")
        schema = load_schema(str(files.home / "schema.json"))[1]
        fields = {field.name: field for field in schema.fields}
        [counts] = [each for each in schema.functions if SPARSE_FIELD in each.output_field_names]
        specs = files.manifest.index_specs
        hnsw = [spec for spec in specs.values() if spec.index_type == "HNSW"]
        graphs = {spec.field_name: _graph(files, spec) for spec in hnsw}
        counted = _columns(files, SPARSE_FIELD)
        _check(graphs, counted.num_rows)
        postings = _postings(counted.column(SPARSE_FIELD), specs.get(SPARSE_FIELD))
        del counted  # as large as all that follows
        rows = _columns(files, PK_FIELD, TEXT_FIELD, _META)
        pa.default_memory_pool().release_unused()  # the columns as they stand in the file
        return Snapshot(
            graphs=graphs,
            postings=postings,
            analyzer=create_analyzer(fields[counts.input_field_names[0]].analyzer_params),
            ids=rows.column(PK_FIELD).combine_chunks(),
            texts=rows.column(TEXT_FIELD).combine_chunks(),
            metadata=rows.column(_META).combine_chunks(),
            hidden=frozenset(fields),
        )
    except (MilvusLiteError, pa.ArrowException, OSError, RuntimeError, ValueError, KeyError, TypeError) as error:
        raise NoSnapshot(f"{type(error).__name__}: {error}") from error


def _columns(files: CollectionFiles, *names: str) -> pa.Table:
    rows = files.rows([*names])
    if rows is None:
        raise NoSnapshot("it has no chunks")
    return rows


def _graph(files: CollectionFiles, spec: IndexSpec) -> DenseGraph:
    """Map the index of a field into memory; Lite writes it once and never changes it."""
    faiss = import_module("faiss")
    # A mapped file cannot be deleted on Windows, where Lite would fail to drop the collection.
    flags = 0 if os.name == "nt" else faiss.IO_FLAG_MMAP_IFC
    index = faiss.read_index(str(files.index_file(spec.field_name, spec.index_type)), flags)
    metric = faiss.METRIC_L2 if spec.metric_type == "L2" else faiss.METRIC_INNER_PRODUCT
    if not isinstance(index, faiss.IndexHNSWFlat) or index.metric_type != metric:
        raise NoSnapshot(f"the index of {spec.field_name} is another one than the collection names")
    return DenseGraph(metric=spec.metric_type, index=index)


def _check(graphs: Mapping[str, DenseGraph], chunks: int) -> None:
    for name, graph in graphs.items():
        if graph.index.ntotal != chunks:
            raise NoSnapshot(f"the index of {name} has {graph.index.ntotal} vectors for {chunks} chunks")


def _postings(column: pa.ChunkedArray, spec: IndexSpec | None) -> Postings:
    params = {} if spec is None else spec.build_params
    return Postings.of(column, k1=float(params.get("bm25_k1", _K1)), b=float(params.get("bm25_b", _B)))
