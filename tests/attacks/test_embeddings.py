"""Vectors and ranks that come back wrong are refused, and those in another order belong to their texts."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from judgetree.modules.embedding.embedder import Embedder, create_embeddings
from judgetree.modules.errors import ModelCallError
from judgetree.modules.retriever.rerank import create_reranker
from judgetree.modules.settings import Settings
from tests.loopback import QuietHandler, serving

from .embeddings import RERANKS, RIGHT, WRONG, Reply
from .watch import survive

LIMIT_S = 10.0
TEXTS = ["a", "b", "c"]


@contextmanager
def _replying(*replies: Reply) -> Iterator[str]:
    """A server whose replies come in order, the last for ever."""
    left = list(replies)

    class Handler(QuietHandler):
        def do_POST(self) -> None:
            asked = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            reply = left.pop(0) if len(left) > 1 else left[0]
            self.answer(reply(len(asked.get("input") or asked["documents"])))

    with serving(Handler) as address:
        yield f"{address}/v1"


def _embedder(base_url: str, folder: Path, *, cache: bool = False) -> Embedder:
    return create_embeddings(f"{base_url}#m", Settings(home=folder, retries=0, timeout_s=5), cache=cache)


@pytest.mark.parametrize("name", RIGHT)
def test_vectors_belong_to_their_texts(tmp_path: Path, name: str) -> None:
    with _replying(RIGHT[name]) as base_url:
        vectors = survive(_embedder(base_url, tmp_path).aembed_documents(TEXTS), limit_s=LIMIT_S)
    assert [vector[0] for vector in vectors] == [0.0, 1.0, 2.0]


@pytest.mark.parametrize("name", WRONG)
def test_wrong_vectors_are_refused_and_not_kept(tmp_path: Path, name: str) -> None:
    async def refused(base_url: str) -> None:
        with pytest.raises(ModelCallError, match="embedding model"):
            await _embedder(base_url, tmp_path, cache=True).aembed_documents(TEXTS)

    with _replying(WRONG[name]) as base_url:
        survive(refused(base_url), limit_s=LIMIT_S)
    with _replying(RIGHT["as-sent"]) as base_url:
        vectors = _embedder(base_url, tmp_path, cache=True).embed_documents(TEXTS)
    assert [vector[0] for vector in vectors] == [0.0, 1.0, 2.0]


def test_a_length_that_changes_between_batches_is_refused(tmp_path: Path) -> None:
    longer: Reply = lambda count: RIGHT["as-sent"](count).replace(b"0.5", b"0.5, 0.5")  # noqa: E731
    with _replying(RIGHT["as-sent"], longer) as base_url:
        embedder = _embedder(base_url, tmp_path)
        embedder.embed_documents(TEXTS)
        with pytest.raises(ModelCallError, match="length 4, those before had 3"):
            embedder.embed_documents(["d"])


@pytest.mark.parametrize("name", RERANKS)
def test_wrong_ranks_are_refused(name: str) -> None:
    async def refused(base_url: str) -> None:
        with pytest.raises(ModelCallError):
            await asyncio.to_thread(create_reranker(f"{base_url}#m", timeout_s=5).rerank, "?", TEXTS, 3)

    with _replying(RERANKS[name]) as base_url:
        survive(refused(base_url), limit_s=LIMIT_S)
