"""What one chunk, vector, word list and question costs here: the figures that docs/explanation/scale.md multiplies.

Texts are those of ``search_latency``. Vectors of the faiss indexes are random directions, so that sizes and times are
those of real ones and recall would not be; JUDGETREE_BENCH_VECTORS sets their number (100,000). Questions are those of
the batch runs; JUDGETREE_BENCH_QUESTIONS sets theirs (500).
"""

from __future__ import annotations

import json
import os
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import bm25s
import faiss
import numpy as np

from judgetree.app.scripted.server import ScriptedServer
from judgetree.evaluation.rows.store import RunStore
from judgetree.modules.embedding.embedder import create_embeddings
from judgetree.modules.index.index import Index
from judgetree.modules.retriever.retriever import Retriever
from judgetree.modules.settings import load_settings

from .eval_runs import experiment_of, indexed_workspace, peak_resident_mb, run_measured, settings_of
from .indexing import ReadyEmbedder, write_corpus
from .measurement import Row
from .search_latency import sample_texts, snapshot_mb

CHUNKS = 20_000
VECTORS = int(os.environ.get("JUDGETREE_BENCH_VECTORS", "100000"))
DIMENSION = 384
EMBEDDED = 512
EMBEDDERS = ("local:minilm", "local:use")
FAISS_INDEXES = ("Flat", "SQfp16", "SQ8", "IVF1024,SQ8", "IVF1024,PQ48", "HNSW32,SQ8", "HNSW32")
SEARCHED = {"IVF1024": "nprobe=32", "HNSW32": "efSearch=64"}
"""How thoroughly indexes that do not look at all vectors are searched."""
SEARCHES = 50
TOPK = 20


def _seconds(work: Callable[[], object]) -> float:
    started = time.perf_counter()
    work()
    return time.perf_counter() - started


def _median_ms(search: Callable[[int], object]) -> float:
    return statistics.median(_seconds(lambda number=number: search(number)) for number in range(SEARCHES)) * 1000


def _size(path: Path) -> int:
    return sum(file.stat().st_size for file in ([path] if path.is_file() else path.rglob("*")) if file.is_file())


def indexed(folder: Path) -> dict[str, float]:
    """Index the corpus of a folder; run in a process of its own, whose memory is measured."""
    before = peak_resident_mb()
    uri = str(folder / "milvus.db")
    with Index(ReadyEmbedder(), folder / "corpus", None, "ready", uri=uri) as index:
        seconds = _seconds(index.get_index_done)
    peak_mb = peak_resident_mb() - before
    with Index(ReadyEmbedder(), None, None, "ready", uri=uri) as index:  # opened again, its indexes are finished
        Retriever(index).get_similar_chunk_with_score("flange")
        return {"seconds": seconds, "peak_mb": peak_mb, "snapshot_mb": snapshot_mb(index)}


def _chunk_rows() -> Iterator[Row]:
    texts = sample_texts(CHUNKS)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_corpus(folder / "corpus", texts)
        command = [sys.executable, "-m", "benchmarks.unit_costs", name]
        done = subprocess.run(command, check=True, capture_output=True, text=True)
        found = json.loads(done.stdout.splitlines()[-1])
        stored = _size(folder / "milvus.db")
    text = statistics.fmean(len(text.encode()) for text in texts)
    yield Row(f"text of a chunk, mean of {CHUNKS:,}", f"{text:.0f} bytes")
    yield Row("a chunk in a Milvus Lite folder, 384 dimensions, both indexes", f"{stored / CHUNKS:,.0f} bytes")
    yield Row("its share of the memory of a snapshot", f"{found['snapshot_mb'] * 1e6 / CHUNKS:,.0f} bytes")
    yield Row("its share of the peak memory of indexing", f"{found['peak_mb'] * 1e6 / CHUNKS:,.0f} bytes")
    yield Row("reading, cutting and writing, without embedding", f"{CHUNKS / found['seconds']:,.0f} chunks a second")


def _embedder_rows() -> Iterator[Row]:
    texts = list(sample_texts(EMBEDDED))
    for spec in EMBEDDERS:
        embedder = create_embeddings(spec, load_settings(), cache=False)
        embedder.embed_documents(texts[:8])
        seconds = _seconds(lambda embedder=embedder: embedder.embed_documents(texts))
        yield Row(f"{spec} on {os.cpu_count()} cores", f"{EMBEDDED / seconds:.0f} chunks a second")


def _faiss_rows() -> Iterator[Row]:
    vectors = np.random.default_rng(5).standard_normal((VECTORS, DIMENSION), dtype=np.float32)
    faiss.normalize_L2(vectors)
    for spec in FAISS_INDEXES:
        index = faiss.index_factory(DIMENSION, spec, faiss.METRIC_INNER_PRODUCT)
        seconds = _seconds(lambda index=index: index.train(vectors)) + _seconds(lambda index=index: index.add(vectors))
        size = len(faiss.serialize_index(index)) / VECTORS
        faiss.ParameterSpace().set_index_parameters(index, SEARCHED.get(spec.split(",")[0], ""))
        ms = _median_ms(lambda at, index=index: index.search(vectors[at : at + 1], TOPK))
        yield Row(
            f"faiss {spec}, {VECTORS:,} vectors of {DIMENSION}",
            f"{size:,.0f} bytes a vector; built in {seconds / VECTORS * 1e6:,.0f} µs a vector; a search {ms:.2f} ms",
        )


def _word_rows() -> Iterator[Row]:
    texts = sample_texts(VECTORS)
    with tempfile.TemporaryDirectory() as folder:
        index = bm25s.BM25()

        def build() -> None:
            index.index(bm25s.tokenize(list(texts), show_progress=False), show_progress=False)

        seconds = _seconds(build)
        index.save(folder)
        size = _size(Path(folder)) / VECTORS
        mapped = bm25s.BM25.load(folder, mmap=True)
        queries = [bm25s.tokenize(" ".join(text.split()[:12]), show_progress=False) for text in texts[:SEARCHES]]
        ms = _median_ms(lambda number: mapped.retrieve(queries[number], k=TOPK, show_progress=False))
    yield Row(
        f"bm25s, {VECTORS:,} texts",
        f"{size:,.0f} bytes a text; built in {seconds / VECTORS * 1e6:,.0f} µs a text; a search, mapped, {ms:.1f} ms",
    )


def _question_rows() -> Iterator[Row]:
    workspace = indexed_workspace()
    out = workspace.run_folder("unit-costs")
    with ScriptedServer(workspace.questions) as server:
        keys = {"systems": ("judge",), "max_rec_depth": 1}
        experiment = experiment_of(workspace, server.base_url, **keys)
        run = run_measured(experiment, out, settings_of(workspace, base_url=server.base_url))
    trees = [row.tree for row in RunStore(out).read_rows() if row.tree is not None]
    calls = sum(tree.llm_calls for tree in trees)
    tokens = sum(tree.prompt_tokens for tree in trees), sum(tree.completion_tokens for tree in trees)
    yield Row("judge, depth 1: calls a question", f"{calls / len(trees):.2f}")
    yield Row("tokens of a call, prompt and reply", f"{tokens[0] / calls:.0f} and {tokens[1] / calls:.0f}")
    yield Row("CPU of a question, model client included", f"{run.cpu_s / len(trees) * 1000:.0f} ms")
    for what, names in _FILES_OF_A_RUN.items():
        size = sum(_size(out / name) for name in names)
        yield Row(f"{what} of a question", f"{size / len(trees) / 1000:.1f} kB")


_FILES_OF_A_RUN: dict[str, Sequence[str]] = {
    "row": ("rows.jsonl",),
    "tree": ("trees.jsonl",),
    "checkpoints": ("checkpoints.sqlite",),
    "prompts and replies": ("transcripts.sqlite",),
}


def measure() -> list[Row]:
    """Measure chunks, embedders, vector indexes, word indexes and questions, in this order."""
    parts = (_chunk_rows, _embedder_rows, _faiss_rows, _word_rows, _question_rows)
    return [row for part in parts for row in part()]


if __name__ == "__main__":
    print(json.dumps(indexed(Path(sys.argv[1]))))
