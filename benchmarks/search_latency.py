"""Hybrid search at 5,000, 16,000 and 100,000 chunks, in snapshots and in Milvus Lite itself, each in its own process.

Chunks are the paragraphs of the files that JUDGETREE_BENCH_HOTPOTQA and JUDGETREE_BENCH_MUSIQUE name, each separated as
in PATH; beyond those, and without files, as long texts of words drawn as often as there. Their vectors are sums of
random vectors of their words. Queries cost an embedding by all-MiniLM-L6-v2 besides. JUDGETREE_BENCH_CHUNKS may name
other sizes: ``5000,16000``.
"""

from __future__ import annotations

import functools
import itertools
import json
import os
import random
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from judgetree.modules.embedding.embedder import Embedder, create_embeddings
from judgetree.modules.index.index import Index
from judgetree.modules.retriever.retriever import Retriever
from judgetree.modules.retriever.searched import describe_target
from judgetree.modules.retriever.snapshot_target import SnapshotTarget, searcher_of
from judgetree.modules.settings import SearchSnapshot, load_settings

from .indexing import WORDS, ReadyEmbedder, write_corpus
from .measurement import Row

LIMITS_MS = {5_000: 10, 16_000: 12, 100_000: 30}
QUERIES = 200
STORE_QUERIES = 40
"""Fewer in the store, which takes a third of a second for each at 100,000 chunks."""
TOPK = 5
_LONGEST = 690
"""Characters of a chunk, below the size at which it would be cut."""


class WordsEmbedder(ReadyEmbedder):
    """Adds up a random vector for each word, so that texts with the same words are near each other."""

    def __init__(self, queries: Embedder | None = None) -> None:
        self._queries = queries
        self._of_word = functools.cache(lambda word: np.asarray(super(WordsEmbedder, self)._vector(word)))

    def embed_query(self, text: str) -> list[float]:
        if self._queries is not None:
            self._queries.embed_query(text)
        return self._vector(text)

    def _vector(self, text: str) -> list[float]:
        total = np.sum([self._of_word(word) for word in text.lower().split()] or [self._of_word("")], axis=0)
        return [float(value) for value in total / np.linalg.norm(total)]


def _files(variable: str) -> Iterator[list[dict[str, object]]]:
    for name in filter(None, os.environ.get(variable, "").split(os.pathsep)):
        yield json.loads(Path(name).read_text(encoding="utf-8"))


def _paragraphs() -> Iterator[str]:
    for rows in _files("JUDGETREE_BENCH_HOTPOTQA"):
        for row in rows:
            yield from (f"{title}. {''.join(sentences)}" for title, sentences in row["context"])  # type: ignore[attr-defined]
    for rows in _files("JUDGETREE_BENCH_MUSIQUE"):
        for row in rows:
            yield from (f"{each['title']}. {each['paragraph_text']}" for each in row["paragraphs"])  # type: ignore[attr-defined]


def sample_texts(count: int) -> Sequence[str]:
    """Return so many texts: the real ones, then made ones of their words and lengths."""
    rng = random.Random(11)
    real = list(dict.fromkeys(text[:_LONGEST] for text in _paragraphs()))
    words = [word for text in real for word in text.split()] or WORDS
    lengths = [len(text.split()) for text in real] or [80]
    made = (" ".join(rng.choices(words, k=rng.choice(lengths)))[:_LONGEST] for _ in itertools.repeat(None))
    return [*itertools.islice(itertools.chain(real, made), count)]


def _queries(texts: Sequence[str]) -> list[str]:
    asked = [str(row["question"]) for rows in _files("JUDGETREE_BENCH_HOTPOTQA") for row in rows]
    rng = random.Random(13)
    asked += [" ".join(rng.sample(text.split(), 8)) for text in rng.choices(list(texts), k=QUERIES)]
    return asked[:QUERIES]


def _retriever(folder: Path, snapshot: SearchSnapshot) -> tuple[Index, Retriever]:
    settings = load_settings(home=folder / "home")
    embedder = WordsEmbedder(create_embeddings("local:minilm", settings, cache=False))
    index = Index(embedder, None, None, "ready", uri=str(folder / "milvus.db"), search_snapshot=snapshot)
    return index, Retriever(index, topk=TOPK, search_type="hybrid")


def _anonymous_mb() -> float:
    """Memory of this process that is no file's; 0 where there is no /proc."""
    status = Path("/proc/self/status")
    lines = status.read_text().splitlines() if status.exists() else []
    return next((int(line.split()[1]) / 1024 for line in lines if line.startswith("RssAnon")), 0.0)


def snapshot_mb(index: Index) -> float:
    """Memory that the snapshot holds besides the mapped files; 0 without one."""
    searcher = searcher_of(describe_target(index.vector_store), index)
    snapshot = searcher.snapshot() if isinstance(searcher, SnapshotTarget) else None
    if snapshot is None:
        return 0.0
    words = snapshot.postings
    held = (words.terms, words.starts, words.rows, words.weights, snapshot.ids, snapshot.texts, snapshot.metadata)
    return sum(each.nbytes for each in held) / 1e6


def search(folder: Path, snapshot: SearchSnapshot) -> dict[str, float]:
    """Search the collection of a folder; run in a process of its own."""
    queries = json.loads((folder / "queries.json").read_text())
    queries = queries if snapshot == "auto" else queries[:STORE_QUERIES]
    index, retriever = _retriever(folder, snapshot)
    with index:
        retriever.check_args()
        index.embed_model.embed_query(queries[0])  # type: ignore[union-attr]
        before, started = _anonymous_mb(), time.perf_counter()
        retriever.get_similar_chunk_with_score(queries[0])
        first_s = time.perf_counter() - started
        times, cpu = [], time.process_time()
        for query in queries:
            started = time.perf_counter()
            retriever.get_similar_chunk_with_score(query)
            times.append(time.perf_counter() - started)
        cpu_ms = (time.process_time() - cpu) / len(queries) * 1000
        times.sort()
        return {
            "first_s": first_s,
            "mb": snapshot_mb(index) or _anonymous_mb() - before,
            "ms": statistics.median(times) * 1000,
            "p95_ms": times[int(len(times) * 0.95)] * 1000,
            "cpu_ms": cpu_ms,
        }


def _searched(folder: Path, snapshot: SearchSnapshot) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.search_latency", str(folder), snapshot]
    done = subprocess.run(command, check=True, capture_output=True, text=True)
    return dict(json.loads(done.stdout.splitlines()[-1]))


def _measure_size(chunks: int) -> tuple[list[Row], float]:
    texts = sample_texts(chunks)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_corpus(folder / "corpus", texts)
        (folder / "queries.json").write_text(json.dumps(_queries(texts)))
        with Index(WordsEmbedder(), folder / "corpus", None, "ready", uri=str(folder / "milvus.db")) as index:
            index.get_index_done()
        snapshot, store = _searched(folder, "auto"), _searched(folder, "off")
    limit = LIMITS_MS.get(chunks)
    what = f"hybrid search, {chunks:,} chunks, query embedding included"
    return [
        Row(
            f"{what}, median of {QUERIES}",
            f"{snapshot['ms']:.1f} ms",
            f"< {limit} ms" if limit else "",
            holds=snapshot["ms"] < limit if limit else None,
            values=(snapshot["ms"],),
            unit="ms",
            note=f"95th percentile {snapshot['p95_ms']:.1f}; CPU {snapshot['cpu_ms']:.1f}",
        ),
        Row(f"first search, {chunks:,} chunks, with making the snapshot", f"{snapshot['first_s']:.2f} s"),
        Row(f"memory of the snapshot of {chunks:,} chunks", f"{snapshot['mb']:.0f} MB"),
        Row(
            f"{what}, in the store, median of {STORE_QUERIES}",
            f"{store['ms']:.1f} ms",
            values=(store["ms"],),
            unit="ms",
            note=f"CPU {store['cpu_ms']:.1f}",
        ),
        Row(f"first search, {chunks:,} chunks, in the store", f"{store['first_s']:.2f} s"),
        Row(f"memory of searches of {chunks:,} chunks in the store", f"{store['mb']:.0f} MB"),
    ], snapshot["ms"]


def measure() -> list[Row]:
    """Measure searches at each size, and their growth from the first to the last."""
    sizes = [int(size) for size in os.environ.get("JUDGETREE_BENCH_CHUNKS", "").split(",") if size] or [*LIMITS_MS]
    measured = [_measure_size(size) for size in sizes]
    growth = (measured[-1][1] - measured[0][1]) / max(1, (sizes[-1] - sizes[0]) / 1000)
    what = f"growth of a search from {sizes[0]:,} to {sizes[-1]:,} chunks, for each 1,000"
    grown = Row(what, f"{growth * 1000:.0f} µs", values=(growth * 1000,), unit="µs")
    return [*(row for rows, _ in measured for row in rows), grown]


if __name__ == "__main__":
    print(json.dumps(search(Path(sys.argv[1]), "auto" if sys.argv[2] == "auto" else "off")))
