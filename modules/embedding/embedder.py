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
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING

import numpy as np
from langchain_core.embeddings import Embeddings
from langchain_core.exceptions import ModelError
from pydantic import SecretStr

from ..addresses import Address
from ..errors import ModelCallError, SettingsError
from ..language import language_of
from ..llm.attempts import endpoint_failure, redacted_line
from ..settings import Settings, without_secrets
from .cache import RecentVectors, Vector, VectorCache
from .local import find_minilm, find_multilingual, load_minilm, load_multilingual

if TYPE_CHECKING:
    from langchain_openai import OpenAIEmbeddings

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

    def embed_query(self, text: str) -> list[float]:
        """Return the vector of one text."""
        return self.embed_documents([text])[0]

    async def aembed_query(self, text: str) -> list[float]:
        """Return the vector of one text, without blocking the event loop."""
        return (await self.aembed_documents([text]))[0]


def spec_for_language(cjk_share: float) -> str:
    """Return the local embedder for documents whose letters are Chinese, Japanese or Korean by this share (0 to 1)."""
    return "local:use" if language_of(cjk_share) == "cjk" else "local:minilm"


def create_embeddings(spec: str, settings: Settings, *, cache: bool = True) -> Embedder:
    """Create the embedder of a spec, listed in the module's docstring, without loading or calling it.

    With ``cache`` its vectors are saved in ``settings.home`` for all runs. The settings give retries and time-outs.

    >>> from judgetree import load_settings
    >>> embedder = create_embeddings("openai:text-embedding-3-small", load_settings(llm_api_key="sk-secret"))

    Raises:
        SettingsError: The spec is unknown, or the key of its endpoint is missing.
        DependencyError: The package of a local model is not installed.
    """
    embedder = _create_uncached(spec, settings)
    return CachedEmbedder(embedder, VectorCache(settings.home / "vectors.sqlite")) if cache else embedder


def _create_uncached(spec: str, settings: Settings) -> Embedder:
    if spec == MiniLMEmbedder.name:
        return MiniLMEmbedder()
    if spec == MultilingualEmbedder.name:
        return MultilingualEmbedder()
    if spec.startswith(("openai:", "dashscope:", "http://", "https://")):
        return _create_endpoint_embedder(spec, settings)
    shown = without_secrets(Address(spec))
    raise SettingsError(f"Unknown embedding model {shown!r}. Allowed: {SPECS}. Set JUDGETREE_EMBEDDINGS.")


def _create_endpoint_embedder(spec: str, settings: Settings) -> EndpointEmbedder:
    # langchain-openai takes two seconds to load, which local models do not need.
    from langchain_openai import OpenAIEmbeddings  # noqa: PLC0415

    from ..llm.factory import resolve_endpoint  # noqa: PLC0415

    endpoint = resolve_endpoint(spec, settings)
    address = endpoint.base_url or Address()
    client = OpenAIEmbeddings(
        model=endpoint.model,
        base_url=str(address) or None,
        default_headers=address.headers(),
        default_query=address.query_params() or None,
        api_key=SecretStr(endpoint.api_key),
        # The length check downloads a tokenizer and sends token ids, which other servers do not understand.
        check_embedding_ctx_length=False,
        chunk_size=_DASHSCOPE_TEXTS_A_CALL if spec.startswith("dashscope:") else _TEXTS_A_CALL,
        max_retries=settings.retries,
        timeout=settings.timeout_s,
        # The SDK requests base64 by default, which not every compatible server has.
        model_kwargs={"encoding_format": "float"},
    )
    # A model of the same name on another server may have other vectors, so the address is part of the name.
    moved = spec.startswith("openai:") and address
    name = f"{address}#{endpoint.model}" if moved else str(Address(spec))
    return EndpointEmbedder(client, name=name, secrets=endpoint.secrets())


class MiniLMEmbedder(Embedder):
    """all-MiniLM-L6-v2 in int8, run by onnxruntime: English, 384-d. Reads the first 256 tokens of a text.

    Raises:
        DependencyError: A required package is not installed.
    """

    name = "local:minilm"
    dimension = 384

    def __init__(self) -> None:
        self._files = find_minilm()

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

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one vector a text, in their order; about 6 ms a paragraph."""
        vectors: list[list[float]] = load_multilingual(self._files)(texts).tolist()
        return vectors


class EndpointEmbedder(Embedder):
    """A model behind an OpenAI-compatible endpoint; the client makes the retries."""

    def __init__(self, client: OpenAIEmbeddings, *, name: str, secrets: Sequence[str] = ()) -> None:
        """Use a client; ``secrets`` are keys and passwords to star out of error messages."""
        self._client = client
        self._name = name
        self._secrets = tuple(secrets)

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
        """
        try:
            return self._checked(texts, self._client.embed_documents(texts))
        except _call_errors() as error:
            raise self._failure(error) from error

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one vector a text, in their order, without blocking the event loop."""
        try:
            return self._checked(texts, await self._client.aembed_documents(texts))
        except _call_errors() as error:
            raise self._failure(error) from error

    def _checked(self, texts: list[str], vectors: list[list[float]]) -> list[list[float]]:
        if len(vectors) != len(texts) or not all(vectors):
            raise ValueError(f"{len(vectors)} vectors came back for {len(texts)} texts")
        return vectors

    def _failure(self, error: Exception) -> ModelCallError:
        found = endpoint_failure(error)
        what = found.what or redacted_line(error, self._secrets)
        return found.error_class(f"The embedding model {self.name} failed: {what}{found.to_do}", status=found.status)


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
        self._cache = cache
        self._recent = RecentVectors(recent_queries)
        self._counting = threading.Lock()

    @property
    def name(self) -> str:
        """The inner embedder's name."""
        return self.inner.name

    @property
    def dimension(self) -> int:
        """Length of a saved vector, else of the inner embedder's."""
        return self._cache.dimension_of(self.name) or self.inner.dimension

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one vector a text, in their order; finished batches are saved even if a later text fails."""
        vectors = self._lookup(texts)
        for batch in self._missing(texts, vectors):
            vectors |= self._keep(batch, self.inner.embed_documents(batch))
        return [_as_list(vectors[text]) for text in texts]

    async def aembed_documents(self, texts: list[str]) -> list[list[float]]:
        """Return one vector a text, in their order, without blocking the event loop."""
        vectors = await asyncio.to_thread(self._lookup, texts)
        for batch in self._missing(texts, vectors):
            vectors |= await asyncio.to_thread(self._keep, batch, await self.inner.aembed_documents(batch))
        return [_as_list(vectors[text]) for text in texts]

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
        self._cache.close()

    def _lookup(self, texts: list[str]) -> dict[str, Vector]:
        vectors = self._cache.get_many(self.name, texts)
        hits = sum(text in vectors for text in texts)
        self._count(hits=hits, misses=len(set(texts) - vectors.keys()))
        return vectors

    def _missing(self, texts: list[str], vectors: dict[str, Vector]) -> list[list[str]]:
        missing = [text for text in dict.fromkeys(texts) if text not in vectors]
        return [missing[start : start + _TEXTS_A_BATCH] for start in range(0, len(missing), _TEXTS_A_BATCH)]

    def _keep(self, texts: list[str], vectors: list[list[float]]) -> dict[str, Vector]:
        kept = {text: np.asarray(vector, dtype=np.float32) for text, vector in zip(texts, vectors, strict=True)}
        self._cache.put_many(self.name, kept)
        return kept

    def _recall(self, text: str) -> list[float] | None:
        vector = self._recent.get(text)
        if vector is None:
            return None
        self._count(hits=1, misses=0)
        return _as_list(vector)

    def _remember(self, text: str, vector: list[float]) -> list[float]:
        self._recent.put(text, np.asarray(vector, dtype=np.float32))
        return vector

    def _count(self, *, hits: int, misses: int) -> None:
        with self._counting:
            self.hits += hits
            self.misses += misses


_TEXTS_A_CALL = 64
_DASHSCOPE_TEXTS_A_CALL = 10
"""Most texts that DashScope accepts in one call."""
_TEXTS_A_BATCH = 256
"""Texts embedded between two writes to the cache; an interrupted indexing loses at most these."""


def _as_list(vector: Vector) -> list[float]:
    floats: list[float] = vector.tolist()
    return floats


def _call_errors() -> tuple[type[Exception], ...]:
    """Return the errors of a call: the client's own, and builtins on malformed replies."""
    import openai  # noqa: PLC0415 - loaded with the client

    return (ModelError, openai.OpenAIError, ValueError, TypeError, KeyError)
