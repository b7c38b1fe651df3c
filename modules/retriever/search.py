"""Searches of one collection: its vector fields, the requests to Milvus, and the chunks of the hits.

Searches use ``MilvusClient``, since langchain-milvus sends search parameters that Milvus Lite refuses.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import numpy.typing as npt
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from pymilvus import AnnSearchRequest, MilvusClient
from pymilvus.exceptions import MilvusException

from ..calls.usage import CallMeter
from ..embedding.embedder import embedder_name
from ..errors import CollectionError, SearchArgumentError
from ..index.connection import milvus_errors
from ..index.content import FILE_DIGEST, text_in
from ..language.search_form import SearchForm, text_to_embed, words_of_query

if TYPE_CHECKING:
    from langchain_milvus.utils.sparse import BaseSparseEmbedding
    from pymilvus.client.abstract import BaseRanker

FieldKind = Literal["dense", "sparse"]
SearchParams = Mapping[str, object]
"""Search parameters of Milvus, such as ``{"params": {"ef": 128}}``; the metric is that of the index."""
Hits = list[tuple[Document, float]]
"""Chunks with their scores, best first; higher is better."""
Vectors = Mapping[str, npt.NDArray[np.float32]]
"""Vectors of one dense field by chunk id; those of a COSINE field have length 1, or 0."""
QueryData = str | Sequence[float] | Mapping[int, float]
"""The query of one field: a text for BM25, else a vector."""

SEARCH_TYPES = ("dense", "sparse", "hybrid")
HNSW_EF = 64
SEARCH_TIMEOUT_S = 60.0
FETCH_FACTOR, FETCH_AT_LEAST, MOST_FETCHED = 4, 12, 1000
"""Every field returns max(4 * topk, 12) chunks before fusion and the ordering of equal scores. On 300 HotpotQA
questions 20 or 100 gave no better top 3, and Milvus Lite decodes every column of each."""
MOST_HITS = 16_384
"""Most hits of a search in Milvus."""
ALSO_IN = "also_in"
"""Metadata of a hit: the sources of further hits with its text."""
DOCUMENT_KEY, ALSO_KEYS = "document_key", "also_keys"
"""Metadata of a hit in a data set's documents: the key of its document, and those of further hits with its text."""


@dataclass(frozen=True, kw_only=True)
class VectorField:
    """A vector field of a collection."""

    name: str
    kind: FieldKind
    metric: str
    index_type: str
    embedder: Embeddings | BaseSparseEmbedding | None
    """None for BM25, which takes the text."""
    form: SearchForm = "written"
    """The form of what is searched."""

    def parameters(self, given: SearchParams | None, limit: int) -> dict[str, object]:
        """Return the search parameters: those given, else enough candidates for an exact top of ``limit``."""
        default = {"ef": self.ef(limit)} if self.index_type == "HNSW" else {}
        return {"params": default, **(given or {}), "metric_type": self.metric}

    @staticmethod
    def ef(limit: int) -> int:
        """Return the number of candidates that HNSW looks at for ``limit`` hits."""
        return max(HNSW_EF, 2 * limit)


@dataclass(frozen=True, kw_only=True)
class FieldSearch:
    """A search of one field."""

    field: VectorField
    data: QueryData
    params: SearchParams | None = None
    expr: str = ""


@dataclass(frozen=True, kw_only=True)
class SearchTarget:
    """A searchable collection."""

    client: MilvusClient
    collection: str
    fields: Mapping[str, VectorField]
    """Vector fields by name, dense ones first."""
    pk_field: str
    text_field: str
    output_fields: Sequence[str]
    """The text, the columns of metadata, and the field of all other metadata if the collection has one."""
    is_lite: bool
    turn: AbstractContextManager[object] = field(default_factory=nullcontext)
    """Lock held while an embedded Milvus Lite searches: it holds the interpreter's lock, so that parallel searches are
    no faster and block everything else."""

    def search(self, request: FieldSearch, limit: int) -> Hits:
        """Search one field for at most ``limit`` hits; they come best first.

        Raises:
            CollectionError: Milvus refused or did not answer.
        """
        with self._explaining_errors():
            result = self.client.search(
                self.collection,
                data=[request.data],
                anns_field=request.field.name,
                limit=limit,
                filter=request.expr,
                search_params=request.field.parameters(request.params, limit),
                output_fields=[*self.output_fields],
                timeout=SEARCH_TIMEOUT_S,
            )
        metric = request.field.metric
        return [(self._chunk(hit), similarity(hit["distance"], metric, lite=self.is_lite)) for hit in result[0]]

    def fused_search(self, requests: Sequence[FieldSearch], ranker: BaseRanker, limit: int) -> Hits:
        """Search several fields for ``limit`` hits each and fuse them; at most ``limit`` come, best first.

        Raises:
            CollectionError: Milvus refused or did not answer.
        """
        with self._explaining_errors():
            result = self.client.hybrid_search(
                self.collection,
                reqs=[
                    AnnSearchRequest(
                        data=[request.data],
                        anns_field=request.field.name,
                        param=request.field.parameters(request.params, limit),
                        limit=limit,
                        expr=request.expr,
                    )
                    for request in requests
                ],
                ranker=ranker,
                limit=limit,
                output_fields=[*self.output_fields],
                timeout=SEARCH_TIMEOUT_S,
            )
        return [(self._chunk(hit), float(hit["distance"])) for hit in result[0]]

    def vectors(self, field: str, chunk_ids: Sequence[str]) -> Vectors:
        """Return the vectors of chunks in a dense field by chunk id; a chunk that is not there has none.

        Raises:
            CollectionError: Milvus refused or did not answer, or the field has no vectors of numbers.
        """
        with self._explaining_errors():
            rows = self.client.query(
                self.collection,
                filter=text_in(self.pk_field, chunk_ids),
                output_fields=[self.pk_field, field],
                timeout=SEARCH_TIMEOUT_S,
            )
        given = {str(row[self.pk_field]): row[field] for row in rows if row.get(field) is not None}
        try:
            vectors = {chunk_id: np.asarray([vector], dtype=np.float32) for chunk_id, vector in given.items()}
        except (TypeError, ValueError) as error:
            raise CollectionError(f"The field {field!r} of {self.collection!r} has no vectors of numbers.") from error
        scaled = of_length_one if self.fields[field].metric == "COSINE" else np.asarray
        return {chunk_id: scaled(vector)[0] for chunk_id, vector in vectors.items()}

    def chunks(self, chunk_ids: Sequence[str], expr: str = "") -> dict[str, Document]:
        """Return chunks by id, in one request; those that are not there, or that ``expr`` leaves out, are missing.

        Raises:
            CollectionError: Milvus refused or did not answer.
        """
        if not chunk_ids:
            return {}
        wanted = text_in(self.pk_field, chunk_ids)
        with milvus_errors("read chunks"), self.turn:
            rows = self.client.query(
                self.collection,
                filter=f"{wanted} and ({expr})" if expr else wanted,
                output_fields=[self.pk_field, *self.output_fields],
                timeout=SEARCH_TIMEOUT_S,
            )
        return {str(row[self.pk_field]): self.as_chunk(str(row[self.pk_field]), row) for row in rows}

    def as_chunk(self, pk: str, entity: Mapping[str, object]) -> Document:
        """Return the chunk of an id, and of text and metadata as Milvus returns them."""
        hidden = {self.pk_field, self.text_field, FILE_DIGEST, *self.fields}
        metadata = {key: value for key, value in entity.items() if key not in hidden}
        return Document(page_content=str(entity.get(self.text_field, "")), metadata={**metadata, "chunk_id": pk})

    def _chunk(self, hit: Mapping[str, Any]) -> Document:
        return self.as_chunk(str(hit[self.pk_field]), hit["entity"])

    @contextmanager
    def _explaining_errors(self) -> Iterator[None]:
        try:
            with self.turn:
                yield
        except MilvusException as error:
            raise CollectionError(
                f"Searching the collection {self.collection!r} failed: {error.message or type(error).__name__}. Check "
                "that its index is open, that it exists, and that Milvus knows the filter and the search parameters."
            ) from error


def best_hits(search: Callable[[int], Hits], limit: int, *, distinct: bool) -> Hits:
    """Return the best ``limit`` hits of ``search``, which is called with the number of hits to fetch.

    Equal scores, frequent with RRF, are ordered by chunk id: Milvus's order varies. Of ``distinct`` hits with the same
    text the best stands for all; ``also_in`` in its metadata lists the sources of the others. If too few are left, the
    search is repeated for more hits, up to ``MOST_FETCHED``.
    """
    fetched = max(FETCH_FACTOR * limit, FETCH_AT_LEAST)
    while True:
        hits = sorted(search(fetched), key=lambda hit: (-hit[1], hit[0].metadata["chunk_id"]))
        best = (_distinct(hits) if distinct else hits)[:limit]
        if len(best) == limit or len(hits) < fetched or fetched >= MOST_FETCHED:
            return best
        fetched = min(FETCH_FACTOR * fetched, MOST_FETCHED)


def _distinct(hits: Hits) -> Hits:
    by_text: dict[str, Hits] = {}
    for hit in hits:
        by_text.setdefault(hit[0].page_content, []).append(hit)
    return [(_with_others(chunk, others), score) for (chunk, score), *others in by_text.values()]


def _with_others(chunk: Document, others: Hits) -> Document:
    if not others:
        return chunk
    sources = dict.fromkeys(str(other.metadata.get("source", "")) for other, _ in others)
    keys = dict.fromkeys(str(other.metadata[DOCUMENT_KEY]) for other, _ in others if DOCUMENT_KEY in other.metadata)
    more = {ALSO_IN: [*sources]} | ({ALSO_KEYS: [*keys]} if keys else {})
    return Document(page_content=chunk.page_content, metadata={**chunk.metadata, **more})


def check_limits(topk: object, score_threshold: float | None) -> None:
    """Check what a search may return.

    Raises:
        SearchArgumentError: ``topk`` is no whole number that Milvus allows, or the threshold is not finite.
    """
    if not isinstance(topk, int) or not 1 <= topk <= MOST_HITS:
        raise SearchArgumentError(f"topk={topk!r} is not allowed. Give a whole number from 1 to {MOST_HITS:,}.")
    if score_threshold is not None and not math.isfinite(score_threshold):
        raise SearchArgumentError(f"score_threshold={score_threshold} is not allowed. Give a number.")


def as_documents(hits: Hits) -> list[Document]:
    """Return the chunks with ``retrieval_score`` and ``rank`` (from 0) in their metadata."""
    return [
        Document(page_content=chunk.page_content, metadata={**chunk.metadata, "retrieval_score": score, "rank": rank})
        for rank, (chunk, score) in enumerate(hits)
    ]


def similarity(distance: float, metric: str, *, lite: bool) -> float:
    """Convert Milvus's "distance" to a score, higher is better: L2 is a distance, and Lite negates BM25."""
    return -float(distance) if metric == "L2" or (metric == "BM25" and lite) else float(distance)


def of_length_one(vectors: npt.NDArray[np.float32]) -> npt.NDArray[np.float32]:
    """Scale each row to length 1, as Milvus Lite does before it keeps or searches it; a row of zeros stays."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    return (vectors / np.where(lengths == 0, 1.0, lengths)).astype(np.float32)


def chosen_fields(
    fields: Mapping[str, VectorField], names: Sequence[str] | None, search_type: str
) -> list[VectorField]:
    """Return the fields to search for a search type, in the order of ``names``.

    Raises:
        SearchArgumentError: The search type or a field is unknown, or the fields do not fit the type.
    """
    if search_type not in SEARCH_TYPES:
        raise SearchArgumentError(f"search_type={search_type!r} is unknown. Allowed: {', '.join(SEARCH_TYPES)}.")
    unknown = [name for name in names or [] if name not in fields]
    if unknown:
        raise SearchArgumentError(f"search_fields names {', '.join(unknown)}. Vector fields: {', '.join(fields)}.")
    fitting = [field for field in fields.values() if search_type in ("hybrid", field.kind)]
    if names is not None:
        chosen = [fields[name] for name in dict.fromkeys(names)]
    else:
        chosen = fitting if search_type == "hybrid" else fitting[:1]
    if search_type != "hybrid" and len(chosen) > 1:
        raise SearchArgumentError(
            f"A {search_type} search asks one field, search_fields names {len(chosen)}. "
            "Name one, or set search_type='hybrid'."
        )
    if not chosen or any(field not in fitting for field in chosen):
        raise SearchArgumentError(
            f"search_fields={names} has nothing for a {search_type} search. "
            f"Fields that fit: {', '.join(field.name for field in fitting) or 'none'}."
        )
    return chosen


def query_data(field: VectorField, query: str, meter: CallMeter) -> QueryData:
    """Return what a field is searched with, in the field's form: the query's words, or for a dense field its vector.

    ``meter`` records the call of an embedder.
    """
    if field.embedder is None:
        return words_of_query(query, field.form)
    name, started = embedder_name(field.embedder), time.perf_counter()
    try:
        vector = field.embedder.embed_query(text_to_embed(query, field.form))
    except Exception as error:
        meter.record(kind="embedding", model=name, started=started, error=f"{type(error).__name__}: {error}")
        raise
    meter.record(kind="embedding", model=name, started=started)
    return vector


def params_by_field(
    given: Sequence[SearchParams] | SearchParams | None, fields: Sequence[str]
) -> dict[str, SearchParams | None]:
    """Return the search parameters of each field; None for defaults.

    Raises:
        SearchArgumentError: There are not as many parameters as fields.
    """
    each = [given] if isinstance(given, Mapping) else given
    if each is not None and len(each) != len(fields):
        raise SearchArgumentError(
            f"There are {len(each)} search_params for {len(fields)} fields ({', '.join(fields)}). "
            "Give one mapping a field, in their order, or None."
        )
    return {field: each[position] if each else None for position, field in enumerate(fields)}
