"""What a ``Retriever`` searches: a collection, by an ``Index`` or LangChain's ``Milvus``, or a prebuilt index."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass

from langchain_milvus import Milvus

from ..index.connection import explained
from ..index.content import content_digest
from ..index.index import Index
from .contract import Searcher
from .prebuilt import PrebuiltIndex
from .search import VectorField, describe_target
from .snapshot_target import searcher_of

VectorStore = Index | Milvus | PrebuiltIndex


@dataclass(frozen=True, kw_only=True)
class Opened:
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
        self._opened: Opened | None = None
        self._revision = ""

    def opened(self, given: VectorStore) -> Opened:
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


def _opened(store: Milvus | PrebuiltIndex, given: VectorStore) -> Opened:
    if isinstance(store, PrebuiltIndex):
        return Opened(store=store, fields=store.fields, searcher=store, names={"part": store.spec})
    target = describe_target(store)
    return Opened(
        store=store,
        fields=target.fields,
        searcher=searcher_of(target, given),
        names={"collection": store.collection_name},
        text_field=target.text_field,
    )
