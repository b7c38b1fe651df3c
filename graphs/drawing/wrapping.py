"""Levels of a tree that grows downwards: what would make it too wide stands in further rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ..tree.nodes import ChunkNode, QueryNode, fold_queries

MOST_COLUMNS = 6
"""Boxes beside each other; lines that pass by take some more room."""

FOLD = ""
"""Stands for the box of folded chunks in the place of a chunk's id."""

_Size = tuple[int, int]
"""Columns and levels of a query with all below it."""


def levels_below(root: QueryNode, folded: Mapping[str, Sequence[ChunkNode]]) -> dict[tuple[str, str], int]:
    """Return how many levels below its query each chunk stands, by the query's thread and the chunk's id.

    The chunks of a query, each as wide as what is below it, fill rows of ``MOST_COLUMNS`` in their order; a row begins
    below all of the one before. ``folded`` has the chunks of a thread that share one box, the last of its query.
    """
    levels: dict[tuple[str, str], int] = {}

    def place(query: QueryNode, below: list[list[_Size]]) -> _Size:
        hidden = {chunk.chunk_id for chunk in folded.get(query.thread_id, ())}
        sizes = [(chunk.chunk_id, _size_of(sub_runs)) for chunk, sub_runs in zip(query.chunks, below, strict=True)]
        blocks = [each for each in sizes if each[0] not in hidden] + [(FOLD, (1, 1))] * bool(hidden)
        start, columns, height, widest = 1, 0, 0, 1
        for chunk_id, (wide, high) in blocks:
            if columns and columns + wide > MOST_COLUMNS:
                start, columns, height = start + height, 0, 0
            levels[query.thread_id, chunk_id] = start
            columns, height = columns + wide, max(height, high)
            widest = max(widest, columns)
        return widest, start + height

    fold_queries(root, place)
    return levels


def _size_of(sub_runs: Sequence[_Size]) -> _Size:
    """Return the size of a chunk, whose sub-runs stand beside each other."""
    return max(1, sum(wide for wide, _ in sub_runs)), 1 + max((high for _, high in sub_runs), default=0)
