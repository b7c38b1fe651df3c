"""Indexing over a cluster of three nodes, one of which is killed, and by workers of Ray against one process.

JUDGETREE_BENCH_ROUNDS (3) times 2,000 chunks over three nodes on this machine, a node killed at a random moment of
each, by an embedder that waits. Then 200 HotpotQA paragraphs of the file that JUDGETREE_BENCH_HOTPOTQA names, else
random words, by ``local:minilm`` in this process and by two workers of this machine.
"""

from __future__ import annotations

import os
import random
import tempfile
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from judgetree.modules.cluster import HERE, connected
from judgetree.modules.embedding.embedder import Embedder, create_embeddings
from judgetree.modules.embedding.ray_embedder import RayEmbedder
from judgetree.modules.index.index import Index
from judgetree.modules.settings import load_settings

from .indexing import ReadyEmbedder, hotpotqa_corpus, random_corpus, write_corpus
from .measurement import Row

ROUNDS = int(os.environ.get("JUDGETREE_BENCH_ROUNDS", "3"))
SPREAD = 200
CHUNKS = 2000
BATCH = 50
LATENCY_S = 0.25
STARTING_S = 300
"""How long a node may take to join on a busy machine."""


class WaitingEmbedder(ReadyEmbedder):
    """Takes a quarter of a second a batch, without the core."""

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        time.sleep(LATENCY_S)
        return super().embed_documents(texts)


def measure() -> list[Row]:
    """Kill nodes, then compare one process and two workers."""
    killed = list(_killed())  # first: a process that had a token for its own Ray is refused by a cluster without one
    return [*_compared(), *killed]


def _compared() -> Iterator[Row]:
    given = os.environ.get("JUDGETREE_BENCH_HOTPOTQA")
    corpus = hotpotqa_corpus(Path(given)) if given else random_corpus(SPREAD)
    texts = corpus.texts[:SPREAD]
    minilm = create_embeddings("local:minilm", load_settings(), cache=False)
    minilm.embed_query("the first text loads the model")
    plain = _embedding_s(minilm, texts)
    yield Row(f"index {len(texts)} chunks ({corpus.name}), one process: embedding", f"{plain:.1f} s")
    started = time.perf_counter()
    with connected(HERE, workers=2):
        start = time.perf_counter() - started
        yield Row("start of Ray on this machine", f"{start:.1f} s")
        spread = RayEmbedder(minilm, workers=2, texts_a_batch=64)
        yield Row("two workers: embedding, their start included", f"{_embedding_s(spread, texts):.1f} s")
        ready = RayEmbedder(ReadyEmbedder(), workers=2)
        many = random_corpus(5000).texts
        here, there = _embedding_s(ReadyEmbedder(), many), _embedding_s(ready, many)
        few = _embedding_s(ready, many[:10])
        yield Row("two workers, embedding without cost: start of the workers", f"{few:.1f} s")
        yield Row(
            f"two workers, embedding without cost: a chunk of {len(many)}, besides the start; in one process",
            f"{(there - few) / len(many) * 1000:.2f} ms; {here / len(many) * 1000:.2f} ms",
        )


def _embedding_s(embedder: Embedder, texts: Any) -> float:
    with tempfile.TemporaryDirectory() as name:
        write_corpus(Path(name, "corpus"), texts)
        with Index(embedder, Path(name, "corpus"), None, "ray", uri=str(Path(name, "milvus.db"))) as index:
            return index.get_index_done().embedding_s


class _Nodes:
    """A head and two more nodes with a core each, in processes of this machine."""

    def __init__(self) -> None:
        from ray.cluster_utils import Cluster

        head = {"num_cpus": 1, "include_dashboard": False, "wait": False}
        self._cluster = Cluster(initialize_head=True, head_node_args=head)
        self._others: list[Any] = []
        self.address: str = self._cluster.address

    def fill(self) -> None:
        """Start nodes until there are two besides the head."""
        while len(self._others) < 2:
            self._others.append(self._cluster.add_node(num_cpus=1, wait=False))
        self._cluster.wait_for_nodes(timeout=STARTING_S)

    def kill_one(self) -> None:
        self._cluster.remove_node(self._others.pop(), allow_graceful=False)

    def close(self) -> None:
        self._cluster.shutdown()


@contextmanager
def _nodes() -> Iterator[_Nodes]:
    nodes = _Nodes()
    try:
        nodes.fill()
        with connected(nodes.address, workers=3):
            yield nodes
    finally:
        nodes.close()


@dataclass(frozen=True, kw_only=True)
class Round:
    """One update with a kill."""

    lost: int
    doubled: int
    killed_at: int
    seconds: float


def run_round(nodes: _Nodes, number: int) -> Round:
    """Index a new collection while one node of three is killed."""
    at = random.Random(number).randrange(BATCH, CHUNKS * 7 // 10)
    nodes.fill()
    kills: list[int] = []
    killer = threading.Thread(target=nodes.kill_one)

    def note(done: int, total: int, stage: str) -> None:
        if stage == "embed" and done >= at and not kills:
            kills.append(done)
            killer.start()

    embedder = RayEmbedder(WaitingEmbedder(), workers=3, texts_a_batch=BATCH)
    with tempfile.TemporaryDirectory() as name:
        texts = random_corpus(CHUNKS).texts
        write_corpus(Path(name, "corpus"), texts)
        uri = str(Path(name, "milvus.db"))
        with Index(embedder, Path(name, "corpus"), None, "kills", uri=uri, on_progress=note) as index:
            started = time.perf_counter()
            index.get_index_done()
            seconds = time.perf_counter() - started
            found = index.connection.client.query("kills", filter="", output_fields=["text"], limit=16_384)
    killer.join()
    kept = [row["text"] for row in found]
    return Round(
        lost=len(set(texts) - set(kept)), doubled=len(kept) - len(set(kept)), killed_at=kills[0], seconds=seconds
    )


def _killed() -> Iterator[Row]:
    with _nodes() as nodes:
        rounds = [run_round(nodes, number) for number in range(ROUNDS)]
    lost, doubled = sum(each.lost for each in rounds), sum(each.doubled for each in rounds)
    yield Row(
        f"{CHUNKS:,} chunks over three nodes, one killed, {ROUNDS} times: chunks lost, doubled",
        f"{lost}, {doubled}",
        "0, 0",
        lost + doubled == 0,
        note=f"killed after {', '.join(str(each.killed_at) for each in rounds)}",
    )
    yield Row(
        f"seconds of each; {CHUNKS // BATCH * LATENCY_S / 3:.1f} s are what three workers wait",
        ", ".join(f"{each.seconds:.1f}" for each in rounds),
    )
