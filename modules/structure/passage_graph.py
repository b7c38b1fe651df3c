"""A graph over the passages of a collection and the phrases in them, and its form as bytes.

The bytes are an ``.npz`` of plain arrays, which numpy reads without pickle: a header in JSON, the names of the nodes,
and three columns for each type of edges.
"""

from __future__ import annotations

import hashlib
import io
import json
import zipfile
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import CollectionError
from ..storage.formats import FORMAT_KEY, check_format, format_of

Nodes = npt.NDArray[np.int32]
EdgeWeights = npt.NDArray[np.float32]

_HEADER, _PASSAGES, _PHRASES, _RELATIONS, _EDGES = "header", "passages", "phrases", "relations", "edges"
_COLUMNS = ("sources", "targets", "weights")
_LABELS = "labels"
_DAMAGED = (
    OSError,
    ValueError,
    KeyError,
    EOFError,
    AttributeError,
    TypeError,
    zipfile.BadZipFile,
    RuntimeError,
    MemoryError,
)
"""What ``zipfile`` and numpy raise for damaged files; RuntimeError for what seems encrypted or packed, TypeError for an
array alone or a header of another kind."""


@dataclass(frozen=True, kw_only=True, eq=False)
class Edges:
    """The edges of one type, sorted by source, then by target."""

    sources: Nodes
    targets: Nodes
    weights: EdgeWeights
    """Each above 0; of ``sources[i]`` to ``targets[i]``."""
    labels: Nodes | None = None
    """Of each edge the place of its relation in ``PassageGraph.relations``; None if edges of this type have none."""

    @classmethod
    def of(cls, edges: Iterable[tuple[int, int, float]]) -> Edges:
        """Make edges of (source, target, weight); weights of the same two nodes are added up."""
        added: dict[tuple[int, int], float] = {}
        for source, target, weight in edges:
            added[source, target] = added.get((source, target), 0.0) + weight
        pairs = np.array(list(added), dtype=np.int32).reshape(-1, 2)
        return cls._sorted(pairs[:, 0], pairs[:, 1], np.fromiter(added.values(), np.float32, len(added)))

    @classmethod
    def counted(cls, counts: Sequence[Mapping[str, int]], number: Mapping[str, int]) -> Edges:
        """Make an edge from each i to the number of each name in ``counts[i]`` that has one, weighted by its count."""
        return cls.of(
            (node, number[name], float(count))
            for node, names in enumerate(counts)
            for name, count in names.items()
            if name in number
        )

    @classmethod
    def labelled(cls, edges: Iterable[tuple[int, int, int, float]]) -> Edges:
        """Make edges of (source, target, label, weight); weights of the same three are added up.

        >>> likes = Edges.labelled([(1, 2, 0, 1.0), (1, 2, 0, 1.0), (1, 2, 1, 1.0)])
        >>> likes.labels.tolist(), likes.weights.tolist()
        ([0, 1], [2.0, 1.0])
        """
        added: dict[tuple[int, int, int], float] = {}
        for source, target, label, weight in edges:
            added[source, target, label] = added.get((source, target, label), 0.0) + weight
        ends = np.array(list(added), dtype=np.int32).reshape(-1, 3)
        weights = np.fromiter(added.values(), np.float32, len(added))
        return cls._sorted(ends[:, 0], ends[:, 1], weights, ends[:, 2])

    @classmethod
    def _sorted(cls, sources: Nodes, targets: Nodes, weights: EdgeWeights, labels: Nodes | None = None) -> Edges:
        order = np.lexsort((targets, sources) if labels is None else (labels, targets, sources))
        return cls(
            sources=sources[order],
            targets=targets[order],
            weights=weights[order],
            labels=None if labels is None else labels[order],
        )

    def targets_of(self, node: int) -> tuple[Nodes, EdgeWeights]:
        """Return the targets of a node, in order, with their weights; empty if it has none."""
        first, end = np.searchsorted(self.sources, [node, node + 1])
        return self.targets[first:end], self.weights[first:end]

    def reversed(self) -> Edges:
        """Return the same edges in the other direction."""
        return self._sorted(self.targets, self.sources, self.weights, self.labels)

    def __len__(self) -> int:
        return int(self.sources.size)


@dataclass(frozen=True, kw_only=True, eq=False)
class PassageGraph:
    """A graph of one kind over the passages of a collection.

    Nodes are numbered: the passages first, then the phrases.

    >>> names = Edges.of([(0, 1, 1.0)])
    >>> graph = PassageGraph(kind="links", content="", passages=["c1"], phrases=["Oslo"], edges={"names": names})
    >>> graph.name_of(1), graph.edges["names"].targets_of(0)[0].tolist()
    ('Oslo', [1])
    """

    kind: str
    """What it was made by, such as "links"."""
    content: str
    """The content digest of the collection that it was made of."""
    passages: Sequence[str]
    """Chunk ids, each once."""
    phrases: Sequence[str]
    """Each once."""
    edges: Mapping[str, Edges]
    """By type, between any nodes: passage and phrase, or phrase and phrase, such as the two of a triple."""
    relations: Sequence[str] = ()
    """What the labels of edges mean, such as "was born in"."""
    made_with: Mapping[str, str | int | float] | None = None
    """Everything else that determines the graph, such as a version and limits."""

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return len(self.passages) + len(self.phrases)

    def passage(self, chunk_id: str) -> int | None:
        """Return the node of a chunk; None if the graph has none."""
        return self._places.get(chunk_id)

    def is_passage(self, node: int) -> bool:
        """Whether a node is a passage."""
        return node < len(self.passages)

    def name_of(self, node: int) -> str:
        """Return the chunk id of a passage, or the text of a phrase."""
        return self.passages[node] if self.is_passage(node) else self.phrases[node - len(self.passages)]

    @cached_property
    def digest(self) -> str:
        """SHA-256 of nodes, edges and how it was made: two graphs that differ have two digests."""
        return _digest(self._header(), self._arrays())

    @cached_property
    def _places(self) -> dict[str, int]:
        return {chunk_id: node for node, chunk_id in enumerate(self.passages)}

    def to_bytes(self) -> bytes:
        """Return the graph as the bytes of a file."""
        header = {FORMAT_KEY: format_of("passage-graph"), "digest": self.digest, **self._header()}
        written = io.BytesIO()
        np.savez(written, **{_HEADER: _as_bytes(json.dumps(header))}, **self._arrays())  # type: ignore[arg-type]
        return written.getvalue()

    @classmethod
    def from_bytes(cls, data: bytes, *, where: str, remedy: str) -> PassageGraph:
        """Read the bytes of a file.

        Raises:
            CollectionError: They are damaged, or of another format; the message names ``where`` and gives ``remedy``.
        """
        try:
            with np.load(io.BytesIO(data), allow_pickle=False) as file:
                arrays = {name: file[name] for name in file.files}
            header = json.loads(arrays.pop(_HEADER).tobytes())
            said = header.pop(FORMAT_KEY, None)
        except _DAMAGED as error:
            raise CollectionError(f"{where} is damaged and cannot be read. {remedy}") from error
        check_format(said, "passage-graph", where=where, remedy=remedy, error=CollectionError)
        try:
            digest = header.pop("digest")
            edge_types = sorted({name.split("/")[1] for name in arrays if name.startswith(_EDGES)})
            graph = cls(
                passages=_names(arrays, _PASSAGES),
                phrases=_names(arrays, _PHRASES),
                relations=_names(arrays, _RELATIONS) if _RELATIONS in arrays else (),
                edges={each: _edges(arrays, each) for each in edge_types},
                **header,
            )
            is_whole = graph.digest == digest
        except (KeyError, TypeError, ValueError, IndexError, AttributeError) as error:
            raise CollectionError(f"{where} is damaged and cannot be read. {remedy}") from error
        if not is_whole:
            raise CollectionError(f"{where} is damaged: its content has another digest than it says. {remedy}")
        return graph

    def _header(self) -> dict[str, object]:
        return {"kind": self.kind, "content": self.content, "made_with": dict(self.made_with or {})}

    def _arrays(self) -> dict[str, npt.NDArray[np.generic]]:
        arrays: dict[str, npt.NDArray[np.generic]] = {}
        parts = [(_PASSAGES, self.passages), (_PHRASES, self.phrases)]
        # A graph without relations has the bytes, and the digest, of one from before there were any.
        for part, names in [*parts, (_RELATIONS, self.relations)] if self.relations else parts:
            encoded = [name.encode("utf-8", "surrogatepass") for name in names]
            arrays[part] = np.frombuffer(b"".join(encoded), dtype=np.uint8)
            arrays[f"{part}/ends"] = np.cumsum([len(each) for each in encoded], dtype=np.int64)
        for kind, edges in sorted(self.edges.items()):
            for column in _COLUMNS:
                arrays[f"{_EDGES}/{kind}/{column}"] = getattr(edges, column)
            if edges.labels is not None:
                arrays[f"{_EDGES}/{kind}/{_LABELS}"] = edges.labels
        return arrays


def _edges(arrays: Mapping[str, npt.NDArray[Any]], kind: str) -> Edges:
    columns = {column: arrays[f"{_EDGES}/{kind}/{column}"] for column in _COLUMNS}
    return Edges(**columns, labels=arrays.get(f"{_EDGES}/{kind}/{_LABELS}"))


def _as_bytes(text: str) -> npt.NDArray[np.uint8]:
    return np.frombuffer(text.encode(), dtype=np.uint8)


def _names(arrays: Mapping[str, npt.NDArray[np.generic]], part: str) -> list[str]:
    data, ends = arrays[part].tobytes(), [int(end) for end in arrays[f"{part}/ends"].tolist()]
    starts = [0, *ends[:-1]]
    return [data[start:end].decode("utf-8", "surrogatepass") for start, end in zip(starts, ends, strict=False)]


def _digest(header: Mapping[str, object], arrays: Mapping[str, npt.NDArray[np.generic]]) -> str:
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name in sorted(arrays):
        column = arrays[name]
        digest.update(f"\n{name} {column.dtype.str} {column.size}\n".encode())
        digest.update(np.ascontiguousarray(column).tobytes())
    return digest.hexdigest()
