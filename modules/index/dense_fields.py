"""The embedders of a collection's dense fields, and the collection as a LangChain vector store."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from langchain_core.documents import Document
from langchain_core.embeddings import Embeddings
from langchain_milvus import BM25BuiltInFunction, Milvus

from ..embedding.cache import Vector
from ..embedding.choice import EmbedderByScript, ModelChoice, unknown_scripts, unknown_text
from ..embedding.embedder import Embedder, embedder_name
from ..embedding.ray_embedder import RayEmbedder
from ..embedding.vectors import SavedBatch, checked_vectors
from ..errors import CollectionError
from ..language.letters import cjk_share, language_of
from ..language.search_form import words_of_text
from ..progress import StageProgress
from .connection import MilvusConnection, client_arguments
from .schema import DENSE_FIELD, PK_FIELD, SEARCH_FIELD, SPARSE_FIELD, TEXT_FIELD, CollectionInfo

Embedders = Mapping[str, Embeddings]
"""Embedders by dense field, in the order of the fields."""
EmbedderSource = Embeddings | Embedders | EmbedderByScript | Callable[[float], Embeddings]
"""An embedder, one for each dense field, the choice by script, or a function from the documents' share of CJK letters
(0 to 1) to one."""

_BATCH = 256
"""Texts between two reports of progress, for an embedder that has no batches of its own."""


def resolve_embedders(source: EmbedderSource, info: CollectionInfo) -> Embedders:
    """Return the embedders of an existing collection by field; a single one fills the field ``dense``."""
    if isinstance(source, Mapping):
        return source
    if isinstance(source, EmbedderByScript):
        return {DENSE_FIELD: source.named(info.embedders.get(DENSE_FIELD, ""))}
    return {DENSE_FIELD: source if isinstance(source, Embeddings) else source(info.cjk_share)}


def check_embedders(collection: str, info: CollectionInfo, embedders: Embedders) -> None:
    """Check that the collection's vectors come from these embedders.

    Raises:
        CollectionError: They come from other embedders.
    """
    given = {field: embedder_name(embedder) for field, embedder in embedders.items()}
    if given != dict(info.embedders):
        raise CollectionError(
            f"The collection {collection!r} was indexed with {_listed(info.embedders)}, not with {_listed(given)}, and "
            "vectors of different models cannot be compared. Use the same embedder, or index under another name."
        )


def plan_collection(
    chunks: Sequence[Document], source: EmbedderSource
) -> tuple[CollectionInfo, Embedders, ModelChoice | None]:
    """Return the description of a new collection for these chunks, without dimensions, its embedders, and the choice.

    The choice is None where the script chose no embedder.
    """
    texts = [chunk.page_content for chunk in chunks]
    share = round(cjk_share(texts), 4)
    info = CollectionInfo(
        embedders={},
        dimensions={},
        analyzer="jieba" if language_of(share) == "cjk" else "standard",
        cjk_share=share,
        search_form="folded",
    )
    choice: ModelChoice | None = None
    if isinstance(source, EmbedderByScript):
        embedder, choice = source.for_texts(texts)
        embedders: Embedders = {DENSE_FIELD: embedder}
    else:
        embedders = resolve_embedders(source, info)
    names = {field: embedder_name(embedder) for field, embedder in embedders.items()}
    return replace(info, embedders=names), embedders, choice


def with_notes(
    info: CollectionInfo, chunks: Sequence[Document], choice: ModelChoice | None
) -> tuple[CollectionInfo, list[str]]:
    """Return the description with the new notes, and these notes: the chosen embedder, scripts unknown to it."""
    notes = [] if choice is None else [f"embedder {choice.model}, since the letters are {choice.why}"]
    texts, told = [chunk.page_content for chunk in chunks], set(info.told_scripts)
    for name in dict.fromkeys(info.embedders.values()):
        if new := [script for script in unknown_scripts(name, texts) if script not in info.told_scripts]:
            notes.append(unknown_text(name, new))
            told.update(new)
    return replace(info, told_scripts=sorted(told)) if told else info, notes


def spreads(embedders: Embedders) -> bool:
    """Return whether vectors come in any order, from the workers of a Ray."""
    return len(embedders) == 1 and all(isinstance(each, RayEmbedder) for each in embedders.values())


def embed_chunks(
    embedders: Embedders,
    texts: Mapping[str, str],
    known: Mapping[str, Mapping[str, Vector]],
    on_progress: StageProgress,
    *,
    computed: set[str] | None = None,
) -> Iterator[tuple[str, Mapping[str, Vector]]]:
    """Yield vectors by field with their chunk id: the known ones, and those of the other texts as they come.

    ``computed`` is given the ids of the chunks with a vector that no cache had.

    Raises:
        ModelCallError: An embedding endpoint failed.
        UserError: Workers that embed failed, or an embedder did not return one vector of finite numbers for each text.
    """
    yield from known.items()
    ids = [chunk_id for chunk_id in texts if chunk_id not in known]
    wanted = [texts[chunk_id] for chunk_id in ids]
    unfinished: dict[int, dict[str, Vector]] = {}
    done = 0
    if ids:
        on_progress(0, len(ids), "embed")
    for field, embedder in embedders.items():
        for batch in _batches(embedder, wanted):
            if computed is not None and not isinstance(batch, SavedBatch):
                computed.update(ids[place] for place in batch)
            for place, vector in batch.items():
                found = unfinished.setdefault(place, {})
                found[field] = np.asarray(vector, dtype=np.float32)
                if len(found) == len(embedders):
                    yield ids[place], unfinished.pop(place)
            done += len(batch)
            on_progress(done // len(embedders), len(ids), "embed")


def _batches(embedder: Embeddings, texts: list[str]) -> Iterator[Mapping[int, list[float]]]:
    if isinstance(embedder, Embedder):
        yield from embedder.embed_batches(texts)
        return
    for start in range(0, len(texts), _BATCH):
        batch = texts[start : start + _BATCH]
        yield dict(enumerate(checked_vectors(embedder_name(embedder), batch, embedder.embed_documents(batch)), start))


def _listed(names: Mapping[str, str]) -> str:
    return ", ".join(f"{name} ({field})" for field, name in names.items())


class _MilvusStore(Milvus):
    """A fix of langchain-milvus 0.4.0, which appends the BM25 field to its own list at every search.

    It also keeps the field that BM25 counts out of the documents, and fills it.
    """

    def _remove_forbidden_fields(self, fields: list[str]) -> list[str]:
        return [field for field in fields if field not in (*self.vector_fields, SEARCH_FIELD)]

    def _prepare_insert_list(self, texts: list[str], *args: Any, **options: Any) -> list[dict[str, Any]]:
        rows = super()._prepare_insert_list(texts, *args, **options)
        if SEARCH_FIELD not in self.fields:
            return rows
        return [{**row, SEARCH_FIELD: words_of_text(text)} for row, text in zip(rows, texts, strict=True)]


def open_vector_store(connection: MilvusConnection, name: str, info: CollectionInfo, embedders: Embedders) -> Milvus:
    """Open an existing collection with its dense fields in order, then the sparse one."""
    client = connection.client
    fields = [*info.embedders, SPARSE_FIELD]
    indexes = [client.describe_index(name, field) for field in fields]
    params = [{"index_type": index["index_type"], "metric_type": index["metric_type"]} for index in indexes]
    return _MilvusStore(
        embedding_function=[embedders[field] for field in info.embedders],
        builtin_function=BM25BuiltInFunction(input_field_names=info.words_field, output_field_names=SPARSE_FIELD),
        vector_field=fields,
        primary_field=PK_FIELD,
        text_field=TEXT_FIELD,
        collection_name=name,
        connection_args=dict(client_arguments(connection.address, connection.token)),
        # Milvus Lite refuses langchain-milvus's defaults for both.
        index_params=params,
        search_params=[{"metric_type": index["metric_type"]} for index in indexes],
        consistency_level="Strong",
        enable_dynamic_field=True,
    )
