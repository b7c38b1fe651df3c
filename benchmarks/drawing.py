"""Drawing a search tree of 1,000 nodes, and 300 random trees in which nothing may collide."""

from __future__ import annotations

import time
from typing import get_args

from judgetree.graphs.drawing.dot import Direction
from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.tree.nodes import ChunkNode, QueryNode
from tests.random_trees import random_tree
from tests.svg_geometry import collisions

from .measurement import Row

RANDOM_TREES = 300
BRANCHES = 3
TEXT = "Pumps of class Delta are filled with an oil that 表面 stays thin in the cold. " * 5


def tree_of(nodes: int) -> SearchTree:
    """Make a tree of about ``nodes`` query and chunk nodes, with three chunks per query."""
    left = [nodes]

    def query(depth: int, name: str) -> QueryNode:
        left[0] -= 1 + BRANCHES
        chunks = []
        for number in range(BRANCHES):
            chunk_id = f"{name}.{number}"
            child = query(depth + 1, chunk_id) if left[0] > BRANCHES and depth < 5 else None
            metadata = {
                "chunk_id": chunk_id,
                "source": f"folder/{chunk_id}.md",
                "retrieval_score": 0.5,
                "rank": number,
                "verdict": "judged",
                "score": 1 if child else number % 3,
                "reason": "It names the class, not the oil.",
                "next_query": "Which oil?" if child else "",
                "next_rag_thread_id": chunk_id if child else "",
            }
            chunks.append(
                ChunkNode(chunk_id=chunk_id, text=TEXT, metadata=metadata, sub_runs=(child,) if child else ())
            )
        return QueryNode(
            thread_id=name,
            depth=depth,
            query=f"Which oil does {name} need? 需要什么油?",
            answer="Vellin",
            status="finished",
            answer_status="answered",
            chunks=tuple(chunks),
        )

    return SearchTree(root=query(0, "t"))


def measure() -> list[Row]:
    """Measure SVG and HTML, and look for collisions."""
    tree = tree_of(1000)
    nodes = sum(1 for _ in tree.query_nodes()) + sum(1 for _ in tree.chunk_nodes())
    rows = []
    for name, draw, limit_s in (("SVG", tree.to_svg, 5.0), ("HTML", tree.to_html, None)):
        started = time.perf_counter()
        size = len(draw())
        seconds = time.perf_counter() - started
        rows.append(
            Row(
                f"{name} of a tree of {nodes} nodes",
                f"{seconds:.2f} s",
                f"< {limit_s:.0f} s" if limit_s else "",
                holds=seconds < limit_s if limit_s else None,
                values=(seconds,),
                unit="s",
                note=f"{size / 1e6:.1f} MB",
            )
        )
    return [*rows, *_measure_collisions()]


def _measure_collisions() -> list[Row]:
    """Draw random trees, up to 4 levels deep and 10 chunks a query, in each direction, with and without folding."""
    rows = []
    for direction in get_args(Direction):
        for fold in (True, False):
            pictures = (random_tree(seed).to_svg(direction=direction, fold=fold) for seed in range(RANDOM_TREES))
            found = [len(collisions(svg)) for svg in pictures]
            what = f"{RANDOM_TREES} random trees, {direction}, {'folded' if fold else 'unfolded'}"
            rows.append(
                Row(
                    f"{what}: edges through boxes, overlapping boxes, texts outside their box",
                    f"{sum(found)} in {sum(map(bool, found))} trees",
                    "0",
                    holds=not any(found),
                )
            )
    return rows
