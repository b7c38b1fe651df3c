"""Embedding of 5,000 paragraphs by ``local:minilm``, nothing cached: chunks a second, and CPU time a chunk.

The paragraphs are those of the HotpotQA file that JUDGETREE_BENCH_HOTPOTQA names, else random words;
JUDGETREE_BENCH_CHUNKS takes fewer of them.
"""

from __future__ import annotations

import os
import tempfile
import time
from pathlib import Path

from judgetree.modules.embedding.embedder import create_embeddings
from judgetree.modules.index.index import Index
from judgetree.modules.settings import load_settings

from .indexing import hotpotqa_corpus, random_corpus, write_corpus
from .measurement import Row


def measure() -> list[Row]:
    """Index a new folder with the real model; the model's file is read before."""
    given = os.environ.get("JUDGETREE_BENCH_HOTPOTQA")
    corpus = hotpotqa_corpus(Path(given)) if given else random_corpus()
    texts = corpus.texts[: int(os.environ.get("JUDGETREE_BENCH_CHUNKS", "5000"))]
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_corpus(folder / "corpus", texts)
        embedder = create_embeddings("local:minilm", load_settings(home=folder / "home"))
        embedder.embed_query("the first text loads the model")
        with Index(embedder, folder / "corpus", None, "speed", uri=str(folder / "milvus.db")) as index:
            wall, cpu = time.perf_counter(), time.process_time()
            report = index.get_index_done()
            wall, cpu = time.perf_counter() - wall, time.process_time() - cpu
    what = f"index {report.embedded} chunks ({corpus.name}) with local:minilm, none embedded before"
    return [
        Row(
            f"{what}: chunks a second, reading and writing included",
            f"{report.embedded / wall:.1f}",
            values=(report.embedded / wall,),
        ),
        Row(f"{what}: CPU a chunk", f"{cpu / report.embedded * 1000:.1f} ms"),
    ]
