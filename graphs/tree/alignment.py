"""Two search trees side by side: queries aligned by their words or the chunk that asks them, chunks by their ids."""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Iterator
from dataclasses import dataclass

from .nodes import ChunkNode, QueryNode


@dataclass(frozen=True, kw_only=True)
class ChunkPair:
    """A chunk of a query in two trees; one side may lack it."""

    a: ChunkNode | None
    b: ChunkNode | None

    @property
    def either(self) -> ChunkNode:
        """The chunk of ``a``, or of ``b`` if ``a`` lacks it."""
        found = self.a or self.b
        if found is None:
            raise ValueError("a pair holds a chunk of at least one tree")
        return found


@dataclass(frozen=True, kw_only=True)
class QueryPair:
    """A query in two trees; one side may lack it."""

    a: QueryNode | None
    b: QueryNode | None
    chunks: tuple[ChunkPair, ...] = ()
    """By rank in ``a``, then those of ``b`` alone."""
    children: tuple[QueryPair, ...] = ()
    """The sub-questions of its chunks, in the order of ``a``, then those of ``b`` alone."""

    @property
    def either(self) -> QueryNode:
        """The query of ``a``, or of ``b`` if ``a`` lacks it."""
        found = self.a or self.b
        if found is None:
            raise ValueError("a pair holds a query of at least one tree")
        return found


def align_queries(a: QueryNode | None, b: QueryNode | None) -> QueryPair:
    """Align two queries with all that is below them; it takes time in proportion to the nodes.

    A sub-question is the same on both sides if it has the same words, whichever chunk of the query asks it; of the
    others, those that the same chunk asks are paired.
    """
    queue = [(a, b)]
    below: list[range] = []
    for one, other in queue:  # level by level; the queue grows
        queue += _child_pairs(_asked(one), _asked(other))
        below.append(range(below[-1].stop if below else 1, len(queue)))
    pairs: dict[int, QueryPair] = {}
    for place in reversed(range(len(queue))):
        one, other = queue[place]
        pairs[place] = QueryPair(
            a=one,
            b=other,
            chunks=tuple(_chunk_pairs(one.chunks if one else (), other.chunks if other else ())),
            children=tuple(pairs.pop(child) for child in below[place]),
        )
    return pairs[0]


def walk_pairs(root: QueryPair) -> Iterator[QueryPair]:
    """Yield every pair of queries, level by level."""
    queue = deque([root])
    while queue:
        pair = queue.popleft()
        yield pair
        queue.extend(pair.children)


def same_words(a: str, b: str) -> bool:
    """Return whether two questions have the same words, whatever their case and white space."""
    return _words(a) == _words(b)


def _chunk_pairs(a: tuple[ChunkNode, ...], b: tuple[ChunkNode, ...]) -> Iterator[ChunkPair]:
    others = {chunk.chunk_id: chunk for chunk in b}
    for chunk in a:
        yield ChunkPair(a=chunk, b=others.pop(chunk.chunk_id, None))
    for chunk in others.values():
        yield ChunkPair(a=None, b=chunk)


_Asked = list[tuple[str, QueryNode]]
"""The sub-questions of a query, with the ids of the chunks that ask them."""


def _asked(node: QueryNode | None) -> _Asked:
    chunks = node.chunks if node else ()
    return [(chunk.chunk_id, sub_run) for chunk in chunks for sub_run in chunk.sub_runs]


def _child_pairs(a: _Asked, b: _Asked) -> Iterator[tuple[QueryNode | None, QueryNode | None]]:
    by_words: defaultdict[str, list[QueryNode]] = defaultdict(list)
    for _, child in b:
        by_words[_words(child.query)].append(child)
    partners = {child.thread_id: same.pop(0) for _, child in a if (same := by_words[_words(child.query)])}
    taken = {id(child) for child in partners.values()}
    by_chunk: defaultdict[str, list[QueryNode]] = defaultdict(list)
    for chunk_id, child in b:
        if id(child) not in taken:
            by_chunk[chunk_id].append(child)
    for chunk_id, child in a:
        partner = partners.get(child.thread_id)
        if partner is None and by_chunk[chunk_id]:
            partner = by_chunk[chunk_id].pop(0)
        yield child, partner
    for left in by_chunk.values():
        for child in left:
            yield None, child


def _words(query: str) -> str:
    return " ".join(query.casefold().split())
