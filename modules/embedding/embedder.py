"""Embedding models: two that run from installed wheels, and any OpenAI-compatible endpoint. A spec names one:

    local:minilm      English, 384-d
    local:use         16 languages with Chinese, 512-d
    openai:MODEL      OpenAI, or the address in JUDGETREE_LLM_BASE_URL
    dashscope:MODEL   DashScope's compatible mode
    URL#MODEL         any other OpenAI-compatible address, such as http://127.0.0.1:11434/v1#bge-m3

Keys are those of the language models: JUDGETREE_LLM_API_KEY, else OPENAI_API_KEY or DASHSCOPE_API_KEY.
"""

from __future__ import annotations

import asyncio
import threading
from abc import abstractmethod
from collections.abc import AsyncIterator, Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Self

import numpy as np
from langchain_core.embeddings import Embeddings

from ..addresses import Address
from ..background.closing import closing
from ..background_loop import background_loop
from ..errors import SettingsError
from ..settings import Settings, without_secrets
from .cache import RecentVectors, Vector, VectorCache
from .local import find_minilm, find_multilingual, load_minilm, load_multilingual
from .vectors import SavedBatch, checked_vectors, in_order, placed, places_of

if TYPE_CHECKING:
    from ..llm.rate_limit import Admissions
    from .hosted import EmbeddingEndpoint

SPECS = "local:minilm, local:use, openai:MODEL, dashscope:MODEL or URL#MODEL"


class Embedder(Embeddings):
    """A LangChain ``Embeddings`` with the name of its model.

    A query and a document of the same text have the same vector. Vectors have length 1 in the local models; an
    endpoint's are as it sends them.
    """

    @property
    @abstractmethod
    def name(self) -> str:
        """Name that identifies the model and its vectors: the spec, with the address if one was given."""

    @property
    @abstractmethod
    def dimension(self) -> int:
        """Length of a vector; an endpoint finds it by one call."""

    def embed_batches(self, texts: list[str]) -> Iterator[Mapping[int, list[float]]]:
        """Yield vectors by the position of their texts, each batch once it is done, in any order.

        Raises:
            UserError: The model did not return one vector of finite numbers for each text.
        """
        for start in range(0, len(texts), _TEXTS_A_BATCH):
            batch = texts[start : start + _TEXTS_A_BATCH]
            yield dict(enumerate(checked_vectors(self.name, batch, self.embed_documents(batch)), start))

    async def aembed_batches(self, texts: list[str]) -> AsyncIterator[Mapping[int, list[float]]]:
        """Yield vectors as ``embed_batches`` does, without blocking the event loop."""
        for start in range(0, len(texts), _TEXTS_A_BATCH):
            batch = texts[start : start + _TEXTS_A_BATCH]
            yield dict(enumerate(checked_vectors(self.name, batch, await self.aembed_documents(batch)), start))

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of one text."""
        return self.embed_documents([text])[0]

    async def aembed_query(self, text: str) -> list[float]:
        """Return the vector of one text, without blocking the event loop."""
        return (await self.aembed_documents([text]))[0]


def embedder_name(embedder: object) -> str:
    """Return the name of an embedder in collections: its ``name``, else its class and ``model``."""
    name = getattr(embedder, "name", None)
    if isinstance(name, str) and name:
        return name
    model = getattr(embedder, "model", None) or getattr(embedder, "model_name", None)
    return type(embedder).__name__ + (f":{model}" if model else "")


def create_embeddings(
    spec: str, settings: Settings, *, cache: bool = True, admissions: Admissions | None = None
) -> Embedder:
    """Create the embedder of a spec, listed in the module's docstring, without loading or calling it.

    With ``cache`` its vectors are saved in ``settings.home`` for all runs. The settings give an endpoint's cap on
    simultaneous calls, rate limits, retries and time-outs; ``admissions`` are rate limits that other processes share.

    >>> from judgetree import load_settings
    >>> embedder = create_embeddings("openai:text-embedding-3-small", load_settings(llm_api_key="sk-secret"))

    Raises:
        SettingsError: The spec is unknown, or the key of its endpoint is missing.
        DependencyError: The package of a local model is not installed.
    """
    embedder = _create_uncached(spec, settings, admissions)
    return CachedEmbedder(embedder, VectorCache(settings.home / "vectors.sqlite")) if cache else embedder


def _create_uncached(spec: str, settings: Settings, admissions: Admissions | None) -> Embedder:
    if spec == MiniLMEmbedder.name:
        return MiniLMEmbedder()
    if spec == MultilingualEmbedder.name:
        return MultilingualEmbedder()
    if spec.startswith(("openai:", "dashscope:", "http://", "https://")):
        return _create_endpoint_embedder(spec, settings, admissions)
    shown = without_secrets(Address(spec))
    raise SettingsError(f"Unknown embedding model {shown!r}. Allowed: {SPECS}. Set JUDGETREE_EMBEDDINGS.")


def _create_endpoint_embedder(spec: str, settings: Settings, admissions: Admissions | None) -> EndpointEmbedder:
    # The client takes two seconds to load, which local models do not need.
    from ..llm.factory import resolve_endpoint  # noqa: PLC0415
    from .hosted import DASHSCOPE_TEXTS_A_CALL, TEXTS_A_CALL, open_embedding_endpoint  # noqa: PLC0415

    endpoint = resolve_endpoint(spec, settings)
    # A model of the same name on another server may have other vectors, so the address is part of the name.
    moved = spec.startswith("openai:") and endpoint.base_url
    name = f"{endpoint.base_url}#{endpoint.model}" if moved else str(Address(spec))
    is_dashscope = spec.startswith("dashscope:") or "dashscope" in str(endpoint.base_url or "")
    size = DASHSCOPE_TEXTS_A_CALL if is_dashscope else TEXTS_A_CALL
    opened = open_embedding_endpoint(endpoint, settings, name=name, texts_a_call=size, admissions=admissions)
    return EndpointEmbedder(opened, name=name)


class MiniLMEmbedder(Embedder):
    """all-MiniLM-L6-v2 in int8, run by onnxruntime: English, 384-d. Reads the first 256 tokens of a text.

    Raises:
        DependencyError: A required package is not installed.
    """

    name = "local:minilm"
    dimension = 384

    def __init__(self) -> None:
        self._files = find_minilm()

    def __reduce__(self) -> tuple[type[Self], tuple[()]]:
        return type(self), ()  # another machine has the files elsewhere

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one vector a text, in their order; about 16 ms of one core a paragraph, on all cores at once."""
        vectors: list[list[float]] = load_minilm(self._files)(texts).tolist()
        return vectors


class MultilingualEmbedder(Embedder):
    """Google's multilingual Universal Sentence Encoder v3, in numpy: 16 languages with Chinese, 512-d.

    Raises:
        DependencyError: Its package is not installed.
    """

    name = "local:use"
    dimension = 512

    def __init__(self) -> None:
        self._files = find_multilingual()

    def __reduce__(self) -> tuple[type[Self], tuple[()]]:
        return type(self), ()  # another machine has the files elsewhere

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one vector a text, in their order; about 6 ms a paragraph."""
        vectors: list[list[float]] = load_multilingual(self._files)(texts).tolist()
        return vectors


class EndpointEmbedder(Embedder):
    """A model behind an OpenAI-compatible endpoint, which gets batches of texts in parallel.

    Its blocking methods work in any thread but that of judgetree's own loop, where the async ones do.
    """

    def __init__(self, endpoint: EmbeddingEndpoint, *, name: str) -> None:
        self._endpoint = endpoint
        self._name = name

    @property
    def name(self) -> str:
        """Spec of the model, with the address if one was given."""
        return self._name

    @cached_property
    def dimension(self) -> int:
        """Length of a vector; costs one call the first time.

        Raises:
            ModelCallError: The call failed.
        """
        return len(self.embed_query("dimension"))

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one vector a text, in their order.

        Raises:
            ModelCallError: The endpoint failed after the last attempt, or sent a malformed reply.
            ModelSetupError: The endpoint can serve no request: key, account, model or address are wrong.
            ModelRequestError: The endpoint refused the texts for good.
            LoopReentryError: Called on judgetree's own loop.
        """
        return background_loop().run(self._endpoint.embed(texts))

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one vector a text, in their order, without blocking the event loop."""
        return await background_loop().arun(self._endpoint.embed(texts))

    def embed_batches(self, texts: list[str]) -> Iterator[Mapping[int, list[float]]]:
        """Yield the vectors of each request once it is done; those under way at a failure come before it."""
        return background_loop().iterate(self._endpoint.batches(texts))

    def aembed_batches(self, texts: list[str]) -> AsyncIterator[Mapping[int, list[float]]]:
        """Yield vectors as ``embed_batches`` does, without blocking the event loop."""
        return background_loop().aiterate(self._endpoint.batches(texts))


class CachedEmbedder(Embedder):
    """An embedder that saves all vectors on disk and keeps those of recent queries in memory.

    Vectors are always rounded to float32, so that a text has the same vector from model and cache.
    """

    def __init__(self, inner: Embedder, cache: VectorCache, *, recent_queries: int = 1024) -> None:
        self.inner = inner
        self.hits = 0
        """Number of texts whose vector was saved."""
        self.misses = 0
        """Number of texts that the model embedded; equal texts of one call are embedded once."""
        self.cache = cache
        self._recent = RecentVectors(recent_queries)
        self._counting = threading.Lock()

    @property
    def name(self) -> str:
        """The inner embedder's name."""
        return self.inner.name

    @property
    def dimension(self) -> int:
        """Length of a saved vector, else of the inner embedder's."""
        return self.cache.dimension_of(self.name) or self.inner.dimension

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one vector a text, in their order; finished batches are saved even if a later text fails."""
        return in_order(texts, self.embed_batches(texts))

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one vector a text, in their order, without blocking the event loop."""
        return in_order(texts, [batch async for batch in self.aembed_batches(texts)])

    def embed_batches(self, texts: list[str]) -> Iterator[Mapping[int, list[float]]]:
        """Yield the saved vectors as a ``SavedBatch``, then those of the model, each batch once it is saved."""
        places, vectors = places_of(texts), self._lookup(texts)
        if vectors:
            yield SavedBatch(placed(places, vectors))
        missing = [text for text in places if text not in vectors]
        for batch in self.inner.embed_batches(missing):
            yield placed(places, self._keep(missing, batch))

    async def aembed_batches(self, texts: list[str]) -> AsyncIterator[Mapping[int, list[float]]]:
        """Yield vectors as ``embed_batches`` does, without blocking the event loop."""
        places, vectors = places_of(texts), await asyncio.to_thread(self._lookup, texts)
        if vectors:
            yield SavedBatch(placed(places, vectors))
        missing = [text for text in places if text not in vectors]
        async with closing(self.inner.aembed_batches(missing)) as batches:
            async for batch in batches:
                yield placed(places, await asyncio.to_thread(self._keep, missing, batch))

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of one text; in microseconds for a recent query."""
        vector = self._recall(text)
        return vector if vector is not None else self._remember(text, self.embed_documents([text])[0])

    async def aembed_query(self, text: str) -> list[float]:
        """Return the vector of one text without blocking; in microseconds for a recent query."""
        vector = self._recall(text)
        return vector if vector is not None else self._remember(text, (await self.aembed_documents([text]))[0])

    def close(self) -> None:
        """Close the file of vectors; the next use opens it again."""
        self.cache.close()

    def _lookup(self, texts: list[str]) -> dict[str, Vector]:
        vectors = self.cache.get_many(self.name, texts)
        hits = sum(text in vectors for text in texts)
        self._count(hits=hits, misses=len(set(texts) - vectors.keys()))
        return vectors

    def _keep(self, texts: list[str], batch: Mapping[int, list[float]]) -> dict[str, Vector]:
        kept = {texts[place]: np.asarray(vector, dtype=np.float32) for place, vector in batch.items()}
        self.cache.put_many(self.name, kept)
        return kept

    def _recall(self, text: str) -> list[float] | None:
        vector = self._recent.get(text)
        if vector is None:
            return None
        self._count(hits=1, misses=0)
        floats: list[float] = vector.tolist()
        return floats

    def _remember(self, text: str, vector: list[float]) -> list[float]:
        self._recent.put(text, np.asarray(vector, dtype=np.float32))
        return vector

    def _count(self, *, hits: int, misses: int) -> None:
        with self._counting:
            self.hits += hits
            self.misses += misses


_TEXTS_A_BATCH = 256
"""Texts of a local model between two writes to the cache, which an interrupted indexing may lose: enough for all cores
to have batches of texts of like length."""
