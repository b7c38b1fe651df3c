"""What a ``Retriever`` searches: a collection, by an ``Index`` or LangChain's ``Milvus``, or a prebuilt index."""

from __future__ import annotations

import threading
from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from langchain_core.embeddings import Embeddings
from langchain_milvus import Milvus
from pymilvus.exceptions import MilvusException

from ..errors import CollectionError
from ..index.connection import explained, is_address, is_lite
from ..index.content import DYNAMIC_FIELDS, content_digest
from ..index.index import Index
from ..index.lite_folder import is_served_here
from ..index.schema import SEARCH_FIELD, described_info
from ..language.search_form import SearchForm
from .contract import Searcher
from .prebuilt import PrebuiltIndex
from .search import SearchTarget, VectorField
from .snapshot_target import searcher_of

if TYPE_CHECKING:
    from langchain_milvus.utils.sparse import BaseSparseEmbedding

VectorStore = Index | Milvus | PrebuiltIndex


@dataclass(frozen=True, kw_only=True)
class OpenCollection:
    """What is searched."""

    store: Milvus | PrebuiltIndex
    fields: Mapping[str, VectorField]
    """Searchable fields by name, dense ones first."""
    searcher: Searcher
    names: Mapping[str, str]
    """What fingerprints call it."""
    text_field: str = ""


class Searched:
    """Opens what a retriever searches, and once more after its indexes may have changed."""

    def __init__(self) -> None:
        self._opened: OpenCollection | None = None
        self._revision = ""

    def opened(self, given: VectorStore) -> OpenCollection:
        """Return what is searched.

        Raises:
            CollectionError: It cannot be read.
        """
        store = given.vector_store if isinstance(given, Index) else given
        opened = self._opened
        if opened is None or opened.store is not store:
            opened = self._opened = _opened(store, given)
        return opened

    def content_digest(self, given: VectorStore) -> str:
        """Return the digest of the present content.

        Raises:
            CollectionError: It cannot be read.
        """
        if isinstance(given, PrebuiltIndex):
            return given.content_digest()
        if isinstance(given, Milvus):
            text_field = self.opened(given).text_field
            return content_digest(explained(given.client), given.collection_name, text_field=text_field)
        revision, digest = given.content_state()
        if revision != self._revision:
            self._opened, self._revision = None, revision
        return digest

    @staticmethod
    def entered(given: VectorStore) -> AbstractContextManager[object]:
        """Return a context in which an ``Index`` waits with closing."""
        return given.searches.entered() if isinstance(given, Index) else nullcontext()


def _opened(store: Milvus | PrebuiltIndex, given: VectorStore) -> OpenCollection:
    if isinstance(store, PrebuiltIndex):
        return OpenCollection(store=store, fields=store.fields, searcher=store, names={"part": store.spec})
    target = describe_target(store)
    return OpenCollection(
        store=store,
        fields=target.fields,
        searcher=searcher_of(target, given),
        names={"collection": store.collection_name},
        text_field=target.text_field,
    )


def describe_target(store: Milvus) -> SearchTarget:
    """Read from Milvus the searchable fields of the collection behind a LangChain vector store.

    Raises:
        CollectionError: The collection does not exist or Milvus does not answer.
    """
    uri = str(store._connection_args.get("uri", ""))
    functions = store.builtin_func if isinstance(store.builtin_func, list) else [store.builtin_func]
    computed = {name for function in functions if function is not None for name in _names(function.output_field_names)}
    embedded = [name for name in store.vector_fields if name not in computed]
    embeddings = store.embeddings if isinstance(store.embeddings, list) else [store.embeddings]
    embedders = {name: given for name, given in zip(embedded, embeddings, strict=False) if given is not None}
    try:
        described = store.client.describe_collection(store.collection_name)
        form = "written" if (info := described_info(described, store.collection_name)) is None else info.search_form
        fields = {
            name: _describe_field(store, name, embedders.get(name), form)
            for name in [*embedded, *(name for name in store.vector_fields if name in computed)]
        }
        lite = is_lite(store.client)
    except MilvusException as error:
        raise CollectionError(
            f"The collection {store.collection_name!r} cannot be searched: {error.message or type(error).__name__}. "
            "Check that its index is open and that it was made."
        ) from error
    return SearchTarget(
        client=store.client,
        collection=store.collection_name,
        fields=fields,
        pk_field=store._primary_field,  # no public names in langchain-milvus
        text_field=store._text_field,
        output_fields=_output_fields(described, store._primary_field, form),
        is_lite=lite,
        turn=threading.Lock() if lite and (not is_address(uri) or is_served_here(uri)) else nullcontext(),
    )


def _output_fields(described: Mapping[str, Any], pk_field: str, form: SearchForm) -> list[str]:
    """Return the columns of a collection that are shown: no vectors, no counted words; the key comes with every hit."""
    hidden = {pk_field, DYNAMIC_FIELDS, *([SEARCH_FIELD] if form == "folded" else [])}
    columns = [field["name"] for field in described["fields"] if "VECTOR" not in field["type"].name]
    dynamic = [DYNAMIC_FIELDS] if described.get("enable_dynamic_field") else []
    return [*(name for name in columns if name not in hidden), *dynamic]


def _describe_field(
    store: Milvus, name: str, embedder: Embeddings | BaseSparseEmbedding | None, form: SearchForm
) -> VectorField:
    index = store.client.describe_index(store.collection_name, name) or {}
    index_type = str(index.get("index_type", ""))
    return VectorField(
        name=name,
        kind="sparse" if embedder is None or index_type.startswith("SPARSE") else "dense",
        metric=str(index.get("metric_type", "COSINE")),
        index_type=index_type,
        embedder=embedder,
        form=form,
    )


def _names(value: str | list[str]) -> list[str]:
    return [value] if isinstance(value, str) else value
