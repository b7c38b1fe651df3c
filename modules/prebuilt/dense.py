"""A faiss index that others have built, mapped into memory."""

from __future__ import annotations

import math
import os
import threading
from collections.abc import Mapping, Sequence
from importlib import import_module
from pathlib import Path
from typing import Any, Literal, TypeGuard

import numpy as np
import numpy.typing as npt

from ..errors import CollectionError, SearchArgumentError
from .finite import has_finite_vectors

_NAMES = {"nprobe": "nprobe", "efSearch": "efSearch", "ef": "efSearch"}

_READING = threading.Lock()
"""The limits of faiss are those of the process."""


class FaissFile:
    """A faiss index of any type with the metric inner product or L2; safe for many threads."""

    def __init__(self, path: Path) -> None:
        """Open a file, in milliseconds; what a search needs is read when it is needed.

        Raises:
            CollectionError: It is no faiss index, is cut off, or has another metric.
        """
        self._faiss: Any = import_module("faiss")  # its own type hints lack most of it
        try:
            self._index = _read(self._faiss, path)
        except (RuntimeError, MemoryError) as error:
            said = str(error).rpartition("Error: ")[2].strip() or type(error).__name__
            raise CollectionError(
                f"{path} cannot be read as a faiss index: {said:.200}. It may be cut off or of another kind: compare "
                "its size with the publisher's, or fetch it again."
            ) from error
        metrics: dict[int, Literal["IP", "L2"]] = {self._faiss.METRIC_INNER_PRODUCT: "IP", self._faiss.METRIC_L2: "L2"}
        if self._index.metric_type not in metrics:
            raise CollectionError(
                f"The faiss index {path} has the metric {self._index.metric_type}. Allowed: inner product and L2."
            )
        self.path = path
        self.metric = metrics[self._index.metric_type]
        self.kind = type(self._index).__name__
        self._mapping = threading.Lock()
        self._reconstructs: bool | None = None

    def __len__(self) -> int:
        return int(self._index.ntotal)

    @property
    def dimension(self) -> int:
        """Length of its vectors."""
        return int(self._index.d)

    def search(self, vector: Sequence[float], limit: int, params: Mapping[str, object]) -> list[tuple[int, float]]:
        """Return at most ``limit`` rows, nearest first, with inner products, or with squared distances under L2.

        Raises:
            CollectionError: The vector has another length than those of the index, or a number is not finite.
            SearchArgumentError: A parameter is unknown, or does not fit the type of the index.
        """
        if len(vector) != self.dimension:
            raise CollectionError(
                f"The query's vector has the length {len(vector)}, those of {self.path} have {self.dimension}. Name "
                "the embedder that the index was built with: embeddings in its YAML file, or JUDGETREE_EMBEDDINGS."
            )
        query = np.asarray([vector], dtype=np.float32)
        if not np.isfinite(query).all():
            raise CollectionError("The query's vector has a number that is not finite: its embedder is broken.")
        parameters = self._parameters(params)
        try:
            distances, rows = self._index.search(query, min(limit, len(self)), params=parameters)
        except RuntimeError as error:
            said = str(error).rpartition("Error: ")[2]
            raise CollectionError(
                f"The faiss index {self.path} cannot be searched: {said:.200}. Fetch or build it again."
            ) from error
        found = zip(rows[0].tolist(), distances[0].tolist(), strict=True)
        hits = [(row, distance) for row, distance in found if row >= 0]
        if broken := [row for row, distance in hits if not math.isfinite(distance)]:
            raise self._not_finite(f"The vector of row {broken[0]}")
        return hits

    def check_numbers(self) -> None:
        """Check that vectors that are kept whole are finite, at the cost of reading them all.

        Raises:
            CollectionError: One is not; no search finds it.
        """
        if not has_finite_vectors(self._faiss, self._index):
            raise self._not_finite("A vector")

    def _not_finite(self, which: str) -> CollectionError:
        return CollectionError(
            f"{which} in {self.path} has a number that is not finite. Build the index anew, or fetch it again."
        )

    def vectors(self, rows: Sequence[int]) -> dict[int, npt.NDArray[np.float32]]:
        """Return the vectors of rows, those of quantized indexes as near as these keep them.

        An index that cannot give vectors back gives none. One of IVF makes a table of its rows at the first call,
        8 bytes a row.
        """
        with self._mapping:
            if self._reconstructs is None:
                self._reconstructs = self._prepared()
        if not self._reconstructs or not rows:
            return {}
        found = self._index.reconstruct_batch(np.asarray(rows, dtype=np.int64))
        return dict(zip(rows, found, strict=True))

    def check_params(self, params: Mapping[str, object]) -> None:
        """Check the search parameters.

        Raises:
            SearchArgumentError: One is unknown, or does not fit the type of the index.
        """
        self._parameters(params)

    def _prepared(self) -> bool:
        try:
            if (ivf := self._faiss.try_extract_index_ivf(self._index)) is not None:
                if isinstance(self._faiss.downcast_index(ivf), self._faiss.IndexIVFFastScan):
                    return False  # one that was read from a file ends the process, in faiss 1.15
                ivf.make_direct_map()
            self._index.reconstruct_batch(np.zeros(1, dtype=np.int64))
        except RuntimeError:
            return False
        return True

    def _parameters(self, params: Mapping[str, object]) -> Any:
        given = {_NAMES.get(name, name): value for name, value in _flat(params).items()}
        return self._parameters_of(self._index, given) if given else None

    def _parameters_of(self, index: Any, given: Mapping[str, object]) -> Any:
        faiss = self._faiss
        if isinstance(index, faiss.IndexPreTransform):
            inner = self._parameters_of(faiss.downcast_index(index.index), given)
            return faiss.SearchParametersPreTransform(index_params=inner)
        kinds = {"nprobe": (faiss.IndexIVF, faiss.SearchParametersIVF)} | {
            "efSearch": (faiss.IndexHNSW, faiss.SearchParametersHNSW)
        }
        [(name, value), *more] = given.items()
        if more or name not in kinds or not isinstance(index, kinds[name][0]) or not _is_count(value):
            raise SearchArgumentError(
                f"search_params {dict(given)!r} do not fit the faiss index {self.path} ({type(index).__name__}). "
                "Allowed: nprobe of an IVF index, efSearch of an HNSW index, as whole numbers from 1."
            )
        # Above these bounds nothing more is searched, and faiss would make heaps of that size.
        most = index.nlist if name == "nprobe" else max(len(self), 1)
        return kinds[name][1](**{name: min(value, most)})


def _read(faiss: Any, path: Path) -> Any:
    """Read an index; one that says to have more numbers than its file has bytes is refused, and no memory filled."""
    # A mapped file cannot be deleted on Windows.
    flags = 0 if os.name == "nt" else faiss.IO_FLAG_MMAP_IFC
    size = max(path.stat().st_size, 1)
    with _READING:
        before = faiss.get_deserialization_vector_byte_limit(), faiss.get_deserialization_loop_limit()
        faiss.set_deserialization_vector_byte_limit(size)
        faiss.set_deserialization_loop_limit(size)
        try:
            return faiss.read_index(str(path), flags)
        finally:
            faiss.set_deserialization_vector_byte_limit(before[0])
            faiss.set_deserialization_loop_limit(before[1])


def _flat(params: Mapping[str, object]) -> Mapping[str, object]:
    """Return parameters that may be given as Milvus takes them, under ``params``."""
    inner = params.get("params")
    return inner if isinstance(inner, Mapping) else params


def _is_count(value: object) -> TypeGuard[int]:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 1
