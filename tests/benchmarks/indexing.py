"""Milvus Lite with 5,000 chunks: writing them, finding nothing to do, and searching."""

from __future__ import annotations

import hashlib
import json
import random
import re
import statistics
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

import numpy as np

from judgetree.modules.embeddings import Embedder, create_embeddings
from judgetree.modules.index import Index
from judgetree.modules.retriever import Retriever
from judgetree.modules.settings import load_settings

from .corpus import DATA
from .measurement import Row


def words_of(path: Path) -> list[str]:
    """Words of one document, lower case."""
    return re.findall(r"[a-z]{3,}", path.read_text(encoding="utf-8").lower())


CHUNKS = 5000
SEARCHES = 100
WORDS = tuple(sorted({word for path in (DATA / "standards" / "en").rglob("*.md") for word in words_of(path)}))
"""Real words, so that queries have as many tokens as real ones."""


class ReadyEmbedder(Embedder):
    """Vectors that cost nothing: pseudo-random, drawn from the text's digest."""

    @property
    def name(self) -> str:
        """Its name in the collection's description."""
        return "benchmark:ready"

    @property
    def dimension(self) -> int:
        """As many as all-MiniLM-L6-v2."""
        return 384

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        """A unit vector a text."""
        return [self._vector(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        """The same for a query."""
        return self._vector(text)

    def _vector(self, text: str) -> list[float]:
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")
        vector = np.random.default_rng(seed).standard_normal(self.dimension)
        return [float(value) for value in vector / np.linalg.norm(vector)]


def write_corpus(folder: Path) -> None:
    """50 files of 100 short texts each: a text is a chunk."""
    rng = random.Random(7)
    for number in range(50):
        texts = [{"text": " ".join(rng.choices(WORDS, k=80))} for _ in range(CHUNKS // 50)]
        (folder / f"{number}.jsonl").write_text("\n".join(json.dumps(text) for text in texts), encoding="utf-8")


def measure() -> list[Row]:
    """Index, index again, search with a real query embedder."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        (folder / "corpus").mkdir()
        write_corpus(folder / "corpus")
        uri = str(folder / "milvus.db")
        with Index(ReadyEmbedder(), folder / "corpus", None, "ready", uri=uri) as index:
            first = _seconds(index.get_index_done)
            second = _seconds(index.get_index_done)
        minilm = create_embeddings("local:minilm", load_settings(home=folder / "home"), cache=False)
        return [*_writing(first, second), _searching(folder, uri, minilm)]


def _seconds(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def _writing(first: float, second: float) -> list[Row]:
    return [
        Row(
            what=f"index {CHUNKS} chunks already embedded",
            measured=f"{first:.1f} s",
            required="< 30 s",
            holds=first < 30,
        ),
        Row(what="index them again", measured=f"{second:.2f} s", required="< 3 s", holds=second < 3),
    ]


def _searching(folder: Path, uri: str, minilm: Embedder) -> Row:
    rng = random.Random(11)
    queries = [" ".join(rng.choices(WORDS, k=12)) for _ in range(SEARCHES)]

    class QueryEmbedder(ReadyEmbedder):
        """Pays for a real query embedding, then looks up the vectors that the collection was made with."""

        def embed_query(self, text: str) -> list[float]:
            """The cost of all-MiniLM-L6-v2, the space of the collection."""
            return minilm.embed_query(text)

    with Index(QueryEmbedder(), folder / "corpus", None, "ready", uri=uri) as index:
        retriever = Retriever(index, topk=3, search_type="hybrid")
        retriever.get_similar_chunk_with_score(queries[0])
        median_ms = statistics.median(
            _seconds(lambda query=query: retriever.get_similar_chunk_with_score(query)) for query in queries
        )
    median_ms *= 1000
    return Row(
        what=f"hybrid search on {CHUNKS} chunks, query embedding included, median of {SEARCHES}",
        measured=f"{median_ms:.1f} ms",
        required="< 25 ms",
        holds=median_ms < 25,
    )
