"""Milvus Lite with 5,000 chunks: the first update, an update without changes, and searches; one file more for 20,000.

The chunks are random words, unless JUDGETREE_BENCH_HOTPOTQA names a HotpotQA file: then its paragraphs, searched by
its questions. Random words are the harder case: each of a query's words stands in every fourteenth chunk.
"""

from __future__ import annotations

import hashlib
import itertools
import json
import os
import random
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from judgetree.modules.embedding.embedder import Embedder, create_embeddings
from judgetree.modules.index.index import Index
from judgetree.modules.retriever.retriever import Retriever
from judgetree.modules.settings import load_settings

from .corpus import DATA
from .measurement import Row


def words_of(path: Path) -> list[str]:
    """Return the words of a document in lower case."""
    return re.findall(r"[a-z]{3,}", path.read_text(encoding="utf-8").lower())


CHUNKS = 5000
MANY_CHUNKS = 20_000
SEARCHES = 100
WORDS = tuple(sorted({word for path in (DATA / "standards" / "en").rglob("*.md") for word in words_of(path)}))
"""Real words, so that queries have as many tokens as real ones."""


class ReadyEmbedder(Embedder):
    """Embeds without cost: pseudo-random vectors from the digest of the text."""

    @property
    def name(self) -> str:
        return "benchmark:ready"

    @property
    def dimension(self) -> int:
        return 384

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [self._vector(text) for text in texts]

    def embed_query(self, text: str) -> list[float]:
        return self._vector(text)

    def _vector(self, text: str) -> list[float]:
        seed = int.from_bytes(hashlib.sha256(text.encode()).digest()[:8], "little")
        vector = np.random.default_rng(seed).standard_normal(self.dimension)
        return [float(value) for value in vector / np.linalg.norm(vector)]


@dataclass(frozen=True, kw_only=True)
class Corpus:
    """Texts to index and queries to search for."""

    name: str
    texts: Sequence[str]
    """One a chunk."""
    queries: Sequence[str]


def random_corpus(chunks: int = CHUNKS) -> Corpus:
    """Draw 80 words per text and 12 per query, all equally likely."""
    rng = random.Random(7)
    return Corpus(
        name="random words",
        texts=[" ".join(rng.choices(WORDS, k=80)) for _ in range(chunks)],
        queries=[" ".join(rng.choices(WORDS, k=12)) for _ in range(SEARCHES)],
    )


def hotpotqa_corpus(path: Path) -> Corpus:
    """Load the first paragraphs and questions of a HotpotQA file."""
    rows = json.loads(path.read_text(encoding="utf-8"))
    paragraphs = (f"{title}. {''.join(sentences)}"[:690] for row in rows for title, sentences in row["context"])
    return Corpus(
        name="HotpotQA",
        texts=list(itertools.islice(dict.fromkeys(paragraphs), CHUNKS)),
        queries=[row["question"] for row in rows[:SEARCHES]],
    )


def write_corpus(folder: Path, texts: Sequence[str]) -> None:
    """Write files of 100 texts each into a new folder."""
    folder.mkdir()
    for number, batch in enumerate(texts[start : start + 100] for start in range(0, len(texts), 100)):
        lines = [json.dumps({"text": text}) for text in batch]
        (folder / f"{number}.jsonl").write_text("\n".join(lines), encoding="utf-8")


def measure() -> list[Row]:
    """Measure two updates, then searches with a real query embedder."""
    given = os.environ.get("JUDGETREE_BENCH_HOTPOTQA")
    corpus = hotpotqa_corpus(Path(given)) if given else random_corpus()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_corpus(folder / "corpus", corpus.texts)
        uri = str(folder / "milvus.db")
        with Index(ReadyEmbedder(), folder / "corpus", None, "ready", uri=uri) as index:
            first = _seconds(index.get_index_done)
            second = _seconds(index.get_index_done)
        minilm = create_embeddings("local:minilm", load_settings(home=folder / "home"), cache=False)
        what = f"{len(corpus.texts)} chunks ({corpus.name})"
        return [*_writing(what, first, second), _searching(what, folder, uri, minilm, corpus.queries), *_adding()]


def _seconds(action: Callable[[], object]) -> float:
    started = time.perf_counter()
    action()
    return time.perf_counter() - started


def _writing(chunks: str, first: float, second: float) -> list[Row]:
    return [
        Row(
            f"index {chunks}, already embedded", f"{first:.1f} s", "< 30 s", holds=first < 30, values=(first,), unit="s"
        ),
        Row(f"index {chunks} again", f"{second:.2f} s", "< 3 s", holds=second < 3, values=(second,), unit="s"),
    ]


def _searching(chunks: str, folder: Path, uri: str, minilm: Embedder, queries: Sequence[str]) -> Row:
    class QueryEmbedder(ReadyEmbedder):
        """Embeds queries with all-MiniLM-L6-v2, at its real cost."""

        def embed_query(self, text: str) -> list[float]:
            return minilm.embed_query(text)

    with Index(QueryEmbedder(), folder / "corpus", None, "ready", uri=uri) as index:
        retriever = Retriever(index, topk=3, search_type="hybrid")
        retriever.get_similar_chunk_with_score(queries[0])
        median_ms = statistics.median(
            _seconds(lambda query=query: retriever.get_similar_chunk_with_score(query)) for query in queries
        )
    median_ms *= 1000
    return Row(
        f"hybrid search on {chunks}, query embedding included, median of {len(queries)}",
        f"{median_ms:.1f} ms",
        "< 25 ms",
        holds=median_ms < 25,
        values=(median_ms,),
        unit="ms",
    )


def _adding() -> list[Row]:
    """Measure the CPU of all threads, of the embedded Milvus Lite too, from opening to closing the index."""
    corpus = random_corpus(MANY_CHUNKS + 20)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_corpus(folder / "corpus", corpus.texts[:MANY_CHUNKS])

        def update() -> float:
            started = time.process_time()
            with Index(ReadyEmbedder(), folder / "corpus", None, "ready", uri=str(folder / "milvus.db")) as index:
                index.get_index_done()
            return time.process_time() - started

        def write(name: str, texts: Sequence[str]) -> None:
            (folder / "corpus" / name).write_text("\n".join(json.dumps({"text": text}) for text in texts))

        first, unchanged = update(), update()
        write("more.jsonl", corpus.texts[MANY_CHUNKS:])
        added = update()
        write("more.jsonl", corpus.texts[MANY_CHUNKS + 10 :])
        cut = update()
    chunks = f"{MANY_CHUNKS:,} chunks of random words"
    return [
        Row(f"CPU to index {chunks}, already embedded", f"{first:.1f} s"),
        Row(f"CPU to index {chunks} again", f"{unchanged:.1f} s"),
        Row(
            f"CPU to add a file to {chunks}", f"{added:.1f} s", "< 12 s", added < 12, (added,), "s", note="of 20 chunks"
        ),
        Row(f"CPU to take 10 of 20 chunks from {chunks}", f"{cut:.1f} s"),
    ]
