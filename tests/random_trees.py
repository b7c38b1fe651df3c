"""Random search trees of any shape that the systems can make, for pictures."""

from __future__ import annotations

import random

from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.threads.state import JsonScalar
from judgetree.graphs.tree.nodes import ChunkNode, QueryNode

_WORDS = [
    *("the", "gasket", "of", "KS-1", "was", "replaced", "in", "1962.", "by", "Dorsan", "& Sons", "because", "oil?"),
    *("212 °C", "WWWW", "mmmm", "Messgerätebau", "压缩机", "需要", "合成油。"),
    "https://example.org/a/very/long/address/of/a/page/index.html",
]


def random_tree(seed: int, *, max_depth: int = 4, topk: int = 10, max_boxes: int = 120) -> SearchTree:
    """A tree of judged, failed and open threads; the same for the same seed."""
    make = _Maker(random.Random(seed), max_depth=max_depth, topk=topk, left=max_boxes)
    return SearchTree(root=make.query("q", None, 0))


class _Maker:
    def __init__(self, rng: random.Random, *, max_depth: int, topk: int, left: int) -> None:
        self.rng, self.max_depth, self.topk, self.left = rng, max_depth, topk, left
        self.share_of_zeros = rng.random()
        self.share_asked = rng.choice([0.2, 0.6, 1.0])

    def query(self, thread_id: str, parent: str | None, depth: int) -> QueryNode:
        rng = self.rng
        chunks = []
        for rank in range(rng.randint(0, self.topk)):
            if self.left <= 0:
                break
            self.left -= 1
            chunks.append(self.chunk(thread_id, rank, depth))
        status = rng.choice(["finished"] * 8 + ["failed", "open"])
        return QueryNode(
            thread_id=thread_id,
            query=self.text(20),
            parent_thread_id=parent,
            depth=depth,
            answer=self.text(30),
            status=status,
            answer_status=rng.choice(["answered", "refused"]) if status == "finished" else None,
            error=self.text(20) if status == "failed" else "",
            chunks=tuple(chunks),
        )

    def chunk(self, thread_id: str, rank: int, depth: int) -> ChunkNode:
        rng, child = self.rng, None
        metadata: dict[str, JsonScalar] = {"rank": rank, "retrieval_score": rng.random(), "source": self.text(6)}
        if rng.random() < self.share_of_zeros:
            metadata |= {"verdict": "judged", "score": 0, "reason": self.text(20)}
        else:
            verdict = rng.choice(["judged"] * 6 + ["unknown", "cancelled", "pending"])
            metadata |= {"verdict": verdict, "score": rng.choice([1, 1, 2]), "reason": self.text(25)}
            if depth < self.max_depth and rng.random() < self.share_asked:
                child = self.query(f"{thread_id}.{rank}", thread_id, depth + 1)
            elif rng.random() < 0.3:
                metadata |= {"next_query": self.text(15), "sub_run_error": self.text(15)}
        return ChunkNode(
            chunk_id=f"{thread_id}/{rank}", text=self.text(60), metadata=metadata, sub_runs=(child,) if child else ()
        )

    def text(self, most: int) -> str:
        return " ".join(self.rng.choices(_WORDS, k=self.rng.randint(0, most)))


def tree_of(nodes: int, *, max_depth: int = 3) -> SearchTree:
    """A finished tree, at most 232 nodes in three levels: of five chunks two ask in vain, one leads to the answer."""
    left = nodes

    def query(thread_id: str, parent: str | None, depth: int, *, is_answered: bool) -> QueryNode:
        nonlocal left
        ranks = range(min(5, left - 1))
        left -= 1 + len(ranks)
        chunks = [chunk(thread_id, rank, depth, is_answered=is_answered) for rank in ranks]
        return QueryNode(
            thread_id=thread_id,
            query=f"Which gasket of the flange withstands step {thread_id} of the test in KV-133?",
            parent_thread_id=parent,
            depth=depth,
            answer="Dorsan" if is_answered else "The documents do not say.",
            status="finished",
            answer_status="answered" if is_answered else "refused",
            chunks=tuple(chunks),
        )

    def chunk(thread_id: str, rank: int, depth: int, *, is_answered: bool) -> ChunkNode:
        metadata: dict[str, JsonScalar] = {"rank": rank, "source": "kv-133.md", "reason": "It names the gasket."}
        metadata |= {"verdict": "judged", "score": 1 if rank < 3 else 0, "shown_place": rank + 1}
        asks = rank < 3 and left > 1 and depth < max_depth
        found = is_answered and rank == 0
        below = query(f"{thread_id}.{rank}", thread_id, depth + 1, is_answered=found) if asks else None
        return ChunkNode(
            chunk_id=f"{thread_id}/{rank}",
            text="The gasket of a flange of Rating F40 is made of Dorsan.",
            metadata=metadata,
            sub_runs=(below,) if below else (),
        )

    return SearchTree(root=query("1", None, 0, is_answered=True))
