"""A prebuilt index of 5,000 and 1,000,000 synthetic passages: opening, searches and memory, each in its own process.

Texts are 60 words of 30,000, drawn by Zipf's law, weights of words random numbers, vectors random directions: sizes and
times are those of real ones, and what is found would not be.
JUDGETREE_BENCH_PASSAGES may name other sizes: ``5000,100000``.
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import bm25s
import faiss
import numpy as np
import numpy.typing as npt

from judgetree.modules.retriever.prebuilt import open_prebuilt
from judgetree.modules.retriever.retriever import Retriever
from judgetree.modules.settings import load_settings

from .indexing import ReadyEmbedder
from .measurement import Row

SIZES = [int(each) for each in os.environ.get("JUDGETREE_BENCH_PASSAGES", "5000,1000000").split(",")]
DIMENSION = 384
WORDS, WORDS_A_PASSAGE = 30_000, 60
SEARCHES = 30
TOPK = 5
_BATCH = 10_000


class QueryVectors(ReadyEmbedder):
    """Gives a query a random direction."""

    def embed_query(self, text: str) -> list[float]:
        vector = np.random.default_rng(len(text)).standard_normal(DIMENSION)
        return [float(each) for each in vector / np.linalg.norm(vector)]


def write_prebuilt(folder: Path, passages: int) -> None:
    """Write corpus, flat index and words, without holding the texts."""
    rng = np.random.default_rng(0)
    often = 1 / np.arange(1, WORDS + 1)
    names = [f"word{number}" for number in range(WORDS)]
    entries, index = [], faiss.IndexFlatIP(DIMENSION)
    with (folder / "corpus.jsonl").open("w", encoding="utf-8") as corpus:
        for start in range(0, passages, _BATCH):
            rows = np.arange(start, min(start + _BATCH, passages))
            drawn = rng.choice(WORDS, (len(rows), WORDS_A_PASSAGE), p=often / often.sum())
            for row, numbers in zip(rows.tolist(), drawn.tolist(), strict=True):
                text = " ".join(names[number] for number in numbers)
                corpus.write(json.dumps({"id": str(row), "contents": f'"Page {row}"\n{text}'}) + "\n")
            entries.append(np.unique(drawn * np.int64(passages) + rows[:, None]))
            vectors = rng.standard_normal((len(rows), DIMENSION), dtype=np.float32)
            faiss.normalize_L2(vectors)
            index.add(vectors)
    faiss.write_index(index, str(folder / "flat.index"))
    _write_words(folder / "bm25", names, np.sort(np.concatenate(entries)), passages)


def _write_words(folder: Path, names: list[str], entries: npt.NDArray[np.int64], passages: int) -> None:
    """Write an index as bm25s saves it, with random weights; it would itself index a million passages for minutes."""
    words = bm25s.BM25()
    words.vocab_dict, words.nonoccurrence_array = {name: number for number, name in enumerate(names)}, None
    words.scores = {
        "data": np.random.default_rng(2).random(len(entries), dtype=np.float32),
        "indices": (entries % passages).astype(np.int32),
        "indptr": np.searchsorted(entries, np.arange(WORDS + 1) * np.int64(passages)),
        "num_docs": passages,
    }
    words.save(folder, show_progress=False)


def _memory_mb() -> tuple[float, float]:
    """Return what the process holds, and what it shares with files."""
    lines = Path("/proc/self/status").read_text(encoding="utf-8").splitlines()
    known = {line.partition(":")[0]: line.partition(":")[2].split() for line in lines}
    return int(known["RssAnon"][0]) / 1024, int(known["RssFile"][0]) / 1024


def _searched(folder: Path, search_type: str) -> dict[str, float]:
    settings, before = load_settings(home=folder / "home"), _memory_mb()
    started = time.perf_counter()
    index = open_prebuilt(str(folder), settings, embeddings=QueryVectors())
    opened = time.perf_counter() - started
    after_opening = _memory_mb()
    retriever = Retriever(index, topk=TOPK, search_type=search_type)
    rng, times = np.random.default_rng(1), []
    for _ in range(SEARCHES):
        query = " ".join(f"word{number}" for number in rng.integers(20, 2_000, 8))
        started = time.perf_counter()
        retriever.get_similar_chunk_with_score(query)
        times.append((time.perf_counter() - started) * 1000)
    own, shared = (now - then for now, then in zip(_memory_mb(), before, strict=True))
    opened_mb = after_opening[0] - before[0]
    return {
        "opened_s": opened,
        "median_ms": statistics.median(times),
        "first_ms": times[0],
        "opened_mb": opened_mb,
        "own_mb": own,
        "shared_mb": shared,
    }


def _in_process(folder: Path, search_type: str) -> dict[str, float]:
    command = [sys.executable, "-m", "benchmarks.prebuilt", str(folder), search_type]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def measure() -> list[Row]:
    return list(_rows())


def _rows() -> Iterator[Row]:
    for size in SIZES:
        with tempfile.TemporaryDirectory() as name:
            folder = Path(name)
            write_prebuilt(folder, size)
            mb = sum(file.stat().st_size for file in folder.rglob("*") if file.is_file()) / 1e6
            first = _in_process(folder, "dense")
            yield Row(f"{size:,} passages: opened the first time", f"{first['opened_s']:.2f} s", note=f"{mb:,.0f} MB")
            lines = sum(file.stat().st_size for file in (folder / "home" / "prebuilt").glob("*.lines-1"))
            yield Row(f"{size:,} passages: kept for their lines", f"{lines / 1e6:.2f} MB")
            for search_type in ("dense", "sparse", "hybrid"):
                found = _in_process(folder, search_type)
                yield Row(
                    f"{size:,}, {search_type}: opened again; search, median of {SEARCHES} (first)",
                    f"{found['opened_s']:.3f} s; {found['median_ms']:.1f} ms ({found['first_ms']:.1f} ms)",
                )
                yield Row(
                    f"{size:,}, {search_type}: memory at opening, after the searches, of mapped files",
                    f"{found['opened_mb']:.0f} MB, {found['own_mb']:.0f} MB, {found['shared_mb']:.0f} MB",
                )


if __name__ == "__main__":
    print(json.dumps(_searched(Path(sys.argv[1]), sys.argv[2])))
