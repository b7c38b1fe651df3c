"""Retrievers in place of a collection's: prebuilt indexes, any of LangChain's, or any ``ChunkRetriever``."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

from langchain_core.documents import Document
from langchain_core.retrievers import BaseRetriever

from ..calls.usage import CallMeter
from ..config.retrieval import OF_BUILT_IN_SEARCH, Retrieval
from ..digests import text_digest
from ..errors import JudgetreeError, SettingsError
from ..index.index import Index
from ..llm.rate_limit import Admissions
from ..parts import (
    Part,
    accepted_arguments,
    digest_of_fields,
    fingerprint_of,
    instantiate,
    needs_making,
    part_of,
    result_of_coroutine,
    wrap_errors,
)
from ..prebuilt.files import SPEC, is_prebuilt
from ..progress import StageProgress
from ..settings import Settings
from ..storage.texts import storable
from .contract import ChunkRetriever
from .prebuilt import open_prebuilt
from .retriever import Retriever

_INT_BITS = 63


class LangChainRetriever:
    """Any LangChain retriever as the retriever of a graph.

    A document whose ``chunk_id`` is no text gets its id or the digest of its text, so that equal texts are one chunk.
    Its score is its ``score`` or ``relevance_score``, else 1 / rank.

    ::

        RagContext(reader=llm, judge=judge, retriever=LangChainRetriever(retriever, version="2026-11"))
    """

    calls_back = True
    """Whether LangChain's callbacks are called for its searches."""

    def __init__(self, inner: BaseRetriever, *, version: str = "") -> None:
        """``version`` is part of the fingerprint: change it with what the retriever searches or how."""
        self._inner = inner
        self._version = version

    def fingerprint(self) -> dict[str, str]:
        """Return the name of the class, the digest of its plain fields such as ``k``, and the version."""
        fields = digest_of_fields(self._inner)
        return {"kind": type(self._inner).__qualname__, "fields": fields, "version": self._version}

    async def asearch(self, query: str, *, meter: CallMeter) -> list[tuple[Document, float]]:
        """Return (chunk, score), best first.

        Raises:
            SettingsError: Two documents with other texts have the same ``chunk_id``.
            JudgetreeError: It failed; other questions may succeed.
        """
        name = type(self._inner).__qualname__
        with wrap_errors(f"The retriever {name!r}", JudgetreeError):
            found = await self._inner.ainvoke(query)
            hits = [(_as_chunk(document), _score(document, rank)) for rank, document in enumerate(found, start=1)]
        return _distinct(hits, name=name)


class OwnRetriever:
    """A retriever of one's own, whose name and source are in its fingerprint: a changed one is another one."""

    def __init__(self, inner: ChunkRetriever, part: Part, *, topk: int, index: Index | None) -> None:
        """``topk`` and ``index``: what else the retriever was made with, for the fingerprint."""
        self.inner = inner
        """The retriever as it was made."""
        self.calls_back = bool(getattr(inner, "calls_back", False))
        self._part = part
        self._topk = topk
        self._index = index

    def fingerprint(self) -> dict[str, str]:
        """Return the fingerprint of the retriever, with its name, its source and what it was made with.

        Of an index that is the collection with its content of now, which costs a request.

        Raises:
            CollectionError: The collection cannot be read.
        """
        made_with = {"topk": str(self._topk)}
        if self._index is not None:
            made_with |= {"collection": self._index.vector_store_name, "content": self._index.content_digest()}
        return {**fingerprint_of(self._part, self.inner), **made_with}

    async def asearch(self, query: str, *, meter: CallMeter) -> list[tuple[Document, float]]:
        """Search by the inner retriever.

        Raises:
            SettingsError: It gives something else than pairs of a document and a score, or one ``chunk_id`` to two
                texts, or none.
            JudgetreeError: It failed; other questions may succeed.
        """
        with wrap_errors(f"The retriever {self._part.name!r}", JudgetreeError):
            found = await result_of_coroutine(self.inner.asearch(query, meter=meter), "asearch")
            return _distinct(found, name=self._part.name)


def needs_index(given: object) -> bool:
    """Whether a retriever of one's own is made from an index; that of a prebuilt index is not.

    Raises:
        SettingsError: It cannot be imported.
    """
    if is_prebuilt(given):
        return False
    part = part_of("retriever", given)
    wanted = accepted_arguments(part) if needs_making(part) else frozenset()
    return wanted is None or not wanted.isdisjoint(("index", "vector_store"))


def check_beside(given: object, config: Retrieval, *, collection: str = "") -> None:
    """Check that nothing of the built-in search stands beside a retriever that is given in its place.

    Raises:
        SettingsError: Something does, or a collection stands beside a prebuilt index.
    """
    if given is None:
        return
    if is_prebuilt(given):
        if collection:
            raise SettingsError(f"{given} is searched in place of a collection: leave out {collection!r}, or it.")
        unused = [config.search_graph and "search_graph"]
    else:
        fields = Retrieval.model_fields
        unused = [name for name in OF_BUILT_IN_SEARCH if getattr(config, name) != fields[name].default]
    if unused := [name for name in unused if name]:
        raise SettingsError(
            f"{', '.join(unused)} of the built-in search cannot be set beside the retriever {given!r:.80}: leave "
            f"{'it' if len(unused) == 1 else 'them'} out, or give functools.partial(MyRetriever, …)."
        )


def searched_by(given: object) -> str:
    """Return the name of what a retriever that is made from no index searches; ``""`` for any other.

    That of a prebuilt index is its spec with the whole path; any other is the name of the retriever.

    Raises:
        SettingsError: It cannot be imported.
    """
    if given is None or needs_index(given):
        return ""
    if is_prebuilt(given):
        return SPEC + str(Path(str(given).removeprefix(SPEC)).expanduser().resolve())
    return part_of("retriever", given).name


def prebuilt_retriever(
    spec: str,
    settings: Settings,
    *,
    search_type: str = "hybrid",
    admissions: Admissions | None = None,
    on_progress: StageProgress | None = None,
    **arguments: Any,
) -> Retriever:
    """Return a ``Retriever`` over the prebuilt index of a spec; ``hybrid`` takes the index's own search type.

    ``arguments`` are further ones of ``Retriever``, such as ``topk``.

    Raises:
        UserError: The index cannot be opened (see ``open_prebuilt``), or cannot be searched so.
    """
    index = open_prebuilt(spec, settings, admissions=admissions, on_progress=on_progress)
    try:
        chosen = index.usual_search_type() if search_type == "hybrid" else search_type
        retriever = Retriever(index, search_type=chosen, **arguments)
        if any(field.kind == "dense" for field in retriever.check_args()):
            index.check_embedder()
    except BaseException:
        index.close()
        raise
    return retriever


def create_own_retriever(given: object, *, index: Index | None, topk: int, settings: Settings) -> ChunkRetriever:
    """Make a retriever of one's own.

    Args:
        given: A retriever, or a class or function that makes one and may take the other arguments; itself, its
            ``module:name`` or a plug-in's name.
        index: The index of the collection, if there is one.
        topk: Chunks that each query wants.
        settings: The settings in force.

    Raises:
        SettingsError: It cannot be imported or made, or is no retriever.
    """
    part = part_of("retriever", given)
    # A subclass of Retriever has the index for its vector store.
    retriever = instantiate(part, index=index, vector_store=index, topk=topk, settings=settings)
    if not all(callable(getattr(retriever, method, None)) for method in ("fingerprint", "asearch")):
        if not isinstance(retriever, BaseRetriever):
            raise SettingsError(
                f"{part.name!r} gives {retriever!r:.100}. Give a LangChain retriever, or an object with the methods "
                "fingerprint and asearch of a ChunkRetriever."
            )
        retriever = LangChainRetriever(retriever)
    if part.is_built_in:
        return cast(ChunkRetriever, retriever)
    return OwnRetriever(cast(ChunkRetriever, retriever), part, topk=topk, index=index)


def _distinct(found: object, *, name: str) -> list[tuple[Document, float]]:
    """Copy hits with metadata that can be stored; a text that was found twice counts once.

    A graph keeps one chunk for each ``chunk_id``, and would lose the others without a word.
    """
    chunks: dict[str, tuple[Document, float]] = {}
    for hit in found if isinstance(found, Iterable) else [found]:
        if not (isinstance(hit, tuple | list) and len(hit) == 2 and isinstance(hit[0], Document)):
            raise SettingsError(f"The retriever {name!r} found {hit!r:.100}. Give pairs: (Document, score).")
        metadata = _storable_metadata(hit[0].metadata, name=name)
        if metadata.get("chunk_id") in (None, ""):
            raise SettingsError(
                f"The retriever {name!r} found a chunk without chunk_id in its metadata. Give each chunk one of its "
                "own."
            )
        metadata["chunk_id"] = chunk_id = str(metadata["chunk_id"])
        chunk = Document(page_content=storable(hit[0].page_content), metadata=metadata)
        kept, _ = chunks.setdefault(chunk_id, (chunk, _checked_score(hit[1], name=name, chunk_id=chunk_id)))
        if kept.page_content != chunk.page_content:
            raise SettingsError(
                f"The retriever {name!r} gives the chunk_id {chunk_id!r} to two texts. Give each chunk one of its own."
            )
    return [*chunks.values()]


def _checked_score(given: object, *, name: str, chunk_id: str) -> float:
    """Return a score as a number of Python, one of numpy too.

    Raises:
        SettingsError: It is no number, or none that JSON can hold.
    """
    try:
        score = math.nan if isinstance(given, str | bytes) else float(cast(Any, given))
    except (TypeError, ValueError, OverflowError):
        score = math.nan
    if not math.isfinite(score):
        raise SettingsError(
            f"The retriever {name!r} gives scores that are no numbers: the score of the chunk {chunk_id!r:.100} is "
            f"{given!r:.100}. Give finite ones."
        )
    return score


def _as_chunk(document: Document) -> Document:
    digest = text_digest(document.page_content).hex()
    given = document.metadata.get("chunk_id")
    chunk_id = given if isinstance(given, str) and given else document.id or digest[:32]
    return Document(
        page_content=document.page_content, metadata={"source": "", **document.metadata, "chunk_id": chunk_id}
    )


def _storable_metadata(metadata: Mapping[str, object], *, name: str) -> dict[str, object]:
    stored: dict[str, object] = {}
    for key, value in metadata.items():
        try:
            stored[str(_storable(key))] = _storable(value)
        except RecursionError as error:
            raise SettingsError(
                f"The retriever {name!r} found the chunk {metadata.get('chunk_id')!r:.100}, whose metadata "
                f"{key!r:.100} is nested without end. Give plain values, or lists and dicts of them."
            ) from error
    return stored


def _storable(value: object) -> object:
    """Convert what checkpoints cannot store, also in lists and dicts.

    That is NUL and half surrogate pairs in texts, numbers of numpy, and whole numbers of more than 64 bits.
    """
    if hasattr(value, "item") and hasattr(value, "dtype") and not getattr(value, "shape", None):
        value = value.item()
    if isinstance(value, str):
        return storable(value)
    if isinstance(value, int):
        return str(value) if value.bit_length() > _INT_BITS else value
    if isinstance(value, dict):
        return {_storable(key): _storable(inner) for key, inner in value.items()}
    if isinstance(value, list):
        return [*map(_storable, value)]
    return tuple(map(_storable, value)) if type(value) is tuple else value


def _score(document: Document, rank: int) -> float:
    given: Sequence[object] = [_storable(document.metadata.get(key)) for key in ("score", "relevance_score")]
    return next((float(score) for score in given if isinstance(score, int | float)), 1 / rank)
