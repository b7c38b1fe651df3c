"""What of a search tree leads to its answer, and what led nowhere."""

from __future__ import annotations

from dataclasses import dataclass

from .nodes import ChunkNode, QueryNode, walk_queries


@dataclass(frozen=True, kw_only=True)
class Leading:
    """The parts of a tree by their part in its answer."""

    queries: frozenset[str]
    """Threads of the root and of the sub-questions that lead to the answer."""
    chunks: frozenset[tuple[str, str]]
    """Thread and id of the chunks that lead to the answer."""
    dead: frozenset[str]
    """Threads that do not lead to the answer; before there is one, those that ended without an answer of their own."""


def find_leading(root: QueryNode) -> Leading:
    """Find the chunks that readers saw and that help, and the sub-questions that they asked and that were answered.

    A chunk leads to the answer if its query does; the root does. Where it is not kept what the reader saw, all that
    helps counts. The page of the server has the same rule.
    """
    queries, chunks, dead = {root.thread_id}, set(), set()
    is_over = root.status != "open"
    for query in walk_queries(root):
        if query.thread_id not in queries:
            if is_over or not (query.status == "open" or query.answer_status == "answered"):
                dead.add(query.thread_id)
            continue
        for chunk in _read_chunks(query):
            chunks.add((query.thread_id, chunk.chunk_id))
            queries |= {each.thread_id for each in chunk.sub_runs if each.answer_status == "answered"}
    return Leading(queries=frozenset(queries), chunks=frozenset(chunks), dead=frozenset(dead))


def _read_chunks(query: QueryNode) -> list[ChunkNode]:
    """Return the chunks that help and that the reader saw, once there is an answer."""
    if query.answer_status is None:
        return []
    if query.shown_chunks:
        return [chunk for chunk in query.shown_chunks if chunk.verdict_label != "0"]
    return [chunk for chunk in query.chunks if chunk.verdict_label in ("1", "2")]
