"""What embedding endpoints refuse, at each door that embeds: every run goes on, and learns it once."""

from __future__ import annotations

import json
import logging
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from judgetree import Index, Retriever
from judgetree.modules.embedding.embedder import create_embeddings
from judgetree.modules.errors import ModelCallError, ModelRequestError, ModelSetupError
from judgetree.modules.settings import Settings
from tests.loopback import QuietHandler, serving

Refusal = Callable[[dict[str, object]], tuple[int, str] | None]
"""Status and message for a request, None to answer it."""


def _at_most(limit: int, status: int, message: str) -> Refusal:
    def refuse(body: dict[str, object]) -> tuple[int, str] | None:
        texts = body["input"]
        assert isinstance(texts, list)
        return (status, message.format(limit=limit, count=len(texts))) if len(texts) > limit else None

    return refuse


def _no_format(body: dict[str, object]) -> tuple[int, str] | None:
    return (400, "Unrecognized request argument supplied: encoding_format") if "encoding_format" in body else None


REFUSALS: Mapping[str, Refusal] = {
    "dashscope": _at_most(
        10, 400, "Value error, batch size is invalid, it should not be larger than {limit}.: input.contents"
    ),
    "text-embeddings-inference": _at_most(32, 413, "batch size {count} > maximum allowed batch size {limit}"),
    "pydantic": _at_most(16, 422, "List should have at most {limit} items after validation, not {count}"),
    "openai": _at_most(20, 400, "'$.input' is invalid. array too long. Expected {limit}, but got {count}"),
    "payload": _at_most(3, 413, "Payload Too Large"),
    "no number": _at_most(7, 400, "Too many inputs in one request."),
    "one at a time": _at_most(1, 400, "This model takes a maximum of {limit} input; batches are refused."),
    "tokens of a request": _at_most(5, 400, "Invalid 'input': maximum request size is 300000 tokens per request."),
    "format": _no_format,
    "format 500": lambda body: (500, "encoding_format is not supported") if "encoding_format" in body else None,
    "format 501": lambda body: (501, "unsupported parameter: encoding_format") if "encoding_format" in body else None,
    "only one": _at_most(1, 400, "only one input is supported"),
    "a single one": _at_most(1, 500, "This model supports only a single input per request"),
    "not several": _at_most(1, 422, "Multiple inputs are not supported"),
    "both": lambda body: _no_format(body) or _at_most(4, 422, "batch size must be <= {limit}")(body),
}


@dataclass
class Endpoint:
    """An endpoint and what it was sent."""

    url: str = ""
    taken: list[int] = field(default_factory=list)
    refused: list[int] = field(default_factory=list)


@contextmanager
def endpoint(refuse: Refusal, path: str = "/v1") -> Iterator[Endpoint]:
    """A server whose vectors begin with the length of their text."""
    found = Endpoint()

    class Handler(QuietHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["content-length"])))
            texts = body["input"]
            refusal = refuse(body)
            (found.refused if refusal else found.taken).append(len(texts))
            if refusal:
                self.answer(json.dumps({"error": {"message": refusal[1]}}).encode(), status=refusal[0])
                return
            data = [{"index": place, "embedding": [float(len(text)), 1.0]} for place, text in enumerate(texts)]
            self.answer(json.dumps({"data": data}).encode())

    with serving(Handler) as address:
        found.url = f"{address}{path}"
        yield found


def settings_at(home: Path, url: str) -> Settings:
    return Settings(home=home, retries=0, llm_api_key="sk-0123456789abcdef", llm_base_url=url, max_concurrency=4)


@pytest.mark.parametrize("spec", ["URL#m", "openai:m", "dashscope:m"])
@pytest.mark.parametrize("name", REFUSALS)
def test_every_text_is_embedded_and_a_refusal_is_learned(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, name: str, spec: str
) -> None:
    caplog.set_level(logging.WARNING)
    texts = ["x" * length for length in range(1, 101)]
    with endpoint(REFUSALS[name]) as server:
        settings = settings_at(tmp_path, server.url)
        named = f"{server.url}#m" if spec == "URL#m" else spec
        vectors = create_embeddings(named, settings, cache=False).embed_documents(texts)
        refused, told = len(server.refused), len(caplog.records)
        again = create_embeddings(named, settings, cache=False).embed_documents(texts)
    assert [vector[0] for vector in vectors] == [vector[0] for vector in again] == [len(text) for text in texts]
    assert refused <= 4 * 8, "calls under way at once, for each halving"
    assert len(server.refused) == refused, "another embedder of the process knows it"
    assert len(caplog.records) == told <= 12, "told when it changes"


@pytest.mark.parametrize("name", ["dashscope", "one at a time", "both"])
def test_index_and_search_go_on(tmp_path: Path, name: str) -> None:
    folder = tmp_path / "corpus"
    folder.mkdir()
    for number in range(12):
        (folder / f"{number}.txt").write_text(f"{'word ' * (number + 1)}of file {number}.", encoding="utf-8")
    with endpoint(REFUSALS[name]) as server:
        embedder = create_embeddings(f"{server.url}#m", settings_at(tmp_path, server.url), cache=False)
        with Index(embedder, folder, None, "c", uri=str(tmp_path / "milvus.db"), token="") as index:
            index.get_index_done()
            found = Retriever(index.vector_store, topk=3).get_similar_chunk_with_score("word of file")
    assert len(found) == 3
    assert sum(server.taken) >= 13


TOO_LONG = {
    "openai": (400, "This model's maximum context length is 8192 tokens, however you requested 9000 tokens"),
    "tei": (413, "Input validation error: `inputs` must have less than 512 tokens. Given: 600"),
    "llama.cpp": (500, "input is too large to process. increase the physical batch size (current batch size: 512)"),
    "ollama": (400, "the input length exceeds the context length"),
}


@pytest.mark.parametrize(("status", "message"), TOO_LONG.values(), ids=TOO_LONG)
def test_a_text_that_is_too_long_is_named(tmp_path: Path, status: int, message: str) -> None:
    texts = [f"text {number}" for number in range(64)]
    texts[40] = "A very long text " + "x" * 5_000

    def refuse(body: dict[str, object]) -> tuple[int, str] | None:
        return (status, message) if any(len(text) > 1_000 for text in list(body["input"])) else None  # type: ignore[call-overload]

    with endpoint(refuse) as server:
        embedder = create_embeddings(f"{server.url}#m", settings_at(tmp_path, server.url), cache=False)
        with pytest.raises(ModelCallError, match=r"text 41 of 64 \('A very long text x+', 5,017 characters\)"):
            embedder.embed_documents(texts)
        assert embedder.embed_query("short") == [5.0, 1.0]
        server.taken.clear()
        embedder.embed_documents(texts[:40])
    assert server.taken == [40], "fewer texts in a request would not help"


DOCUMENTS = [f"Document {number}: a batch of 2 gaskets, encoding_format 3." for number in range(64)]
MISREAD = {
    "moderation": "Batch rejected by moderation",
    "a policy": "A text of the batch is against our content policy: 3",
    "a quotation": f"Invalid characters in '{DOCUMENTS[5]}'",
    "a part of one": f'Invalid characters in "{DOCUMENTS[5][:40]}…"',
}


@pytest.mark.parametrize("message", MISREAD.values(), ids=MISREAD)
def test_what_a_refusal_says_of_texts_changes_no_request(tmp_path: Path, message: str) -> None:
    bad: list[dict[str, object]] = []

    def refuse(body: dict[str, object]) -> tuple[int, str] | None:
        bad.append(body)
        return (400, message) if len(bad) == 1 else None

    with endpoint(refuse) as server:
        embedder = create_embeddings(f"{server.url}#m", settings_at(tmp_path, server.url), cache=False)
        with pytest.raises(ModelRequestError):
            embedder.embed_documents(DOCUMENTS)
        embedder.embed_documents(DOCUMENTS)
    assert (server.refused, server.taken) == ([64], [64])
    assert all("encoding_format" in body for body in bad)


def test_numbers_of_quoted_documents_are_no_cap(tmp_path: Path) -> None:
    with endpoint(_at_most(32, 413, f"batch of {{count}} too large, beginning with '{DOCUMENTS[7]}'")) as server:
        embedder = create_embeddings(f"{server.url}#m", settings_at(tmp_path, server.url), cache=False)
        embedder.embed_documents(DOCUMENTS)
    assert server.taken == [32, 32]


def test_a_page_in_place_of_vectors_is_tried_again(tmp_path: Path) -> None:
    class Page(QuietHandler):
        def do_POST(self) -> None:
            self.rfile.read(int(self.headers["content-length"]))
            self.answer(b"<html>log in</html>", headers={"Content-Type": "text/html"})

    with serving(Page) as address:
        settings = settings_at(tmp_path, address).model_copy(update={"retries": 3})
        embedder = create_embeddings(f"{address}#m", settings, cache=False)
        with pytest.raises(ModelSetupError, match=r"4 of 4: it is no list of embeddings \(text/html\).* ends in /v1"):
            embedder.embed_documents(["a"])


def test_a_missing_model_is_an_error_at_once(tmp_path: Path) -> None:
    with endpoint(lambda body: (400, "The model m does not exist, got 64")) as server:
        embedder = create_embeddings(f"{server.url}#m", settings_at(tmp_path, server.url), cache=False)
        with pytest.raises(ModelSetupError, match="does not exist"):
            embedder.embed_documents(["a"] * 64)
    assert server.refused == [64]


def test_one_text_that_is_refused_as_a_batch_ends_the_run(tmp_path: Path) -> None:
    with endpoint(lambda body: (400, "batches are refused")) as server:
        embedder = create_embeddings(f"{server.url}#m", settings_at(tmp_path, server.url), cache=False)
        with pytest.raises(ModelRequestError, match="batches are refused"):
            embedder.embed_documents(["a"] * 64)
    assert server.refused == [64, 32, 16, 8, 4, 2, 1]
