"""What differs between two aligned search trees, in the order in which one difference may cause the next."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Literal

from .alignment import ChunkPair, QueryPair, same_words, walk_pairs
from .nodes import ChunkNode, QueryNode

DifferenceKind = Literal["question", "chunk", "verdict", "sub_question", "answer"]


@dataclass(frozen=True, kw_only=True)
class Difference:
    """One difference between two search trees."""

    kind: DifferenceKind
    """question: the root asks something else. chunk: found on one side alone, or at another rank. verdict: judged
    otherwise. sub_question: asked on one side alone, or in other words. answer: a query's answer."""
    depth: int
    """Level of its query; 0 for the root."""
    query: str
    """The query it belongs to, in the words of the first tree that has it."""
    chunk_id: str = ""
    """``""`` for questions and answers."""
    source: str = ""
    title: str = ""
    """Title of the chunk's document; ``""`` if the name of its file says as much."""
    a: str
    """What is in the first tree; ``""`` if nothing is."""
    b: str


def differences_of(root: QueryPair) -> tuple[Difference, ...]:
    """Return all differences: level by level what was found, judged and asked, then the answers from the deepest up.

    The first one is where the two searches part. What is below a sub-question of one side alone is not compared.
    """
    both = [pair for pair in walk_pairs(root) if pair.a is not None and pair.b is not None]
    causes = [each for pair in both for each in _searched_otherwise(pair)]
    return (*_asked_otherwise(root), *causes, *(each for pair in reversed(both) for each in _answered_otherwise(pair)))


def _asked_otherwise(root: QueryPair) -> Iterator[Difference]:
    if root.a and root.b and not same_words(root.a.query, root.b.query):
        yield Difference(kind="question", depth=0, query=root.a.query, a=root.a.query, b=root.b.query)


def _searched_otherwise(pair: QueryPair) -> Iterator[Difference]:
    yield from _by_chunk("chunk", pair, _place)
    yield from _by_chunk("verdict", pair, _verdict)
    yield from _by_chunk("sub_question", pair, _sub_question)


_Said = Callable[[ChunkNode | None, ChunkPair], str]


def _by_chunk(kind: DifferenceKind, pair: QueryPair, said: _Said) -> Iterator[Difference]:
    for chunks in pair.chunks:
        a, b = said(chunks.a, chunks), said(chunks.b, chunks)
        if a != b and not (kind == "sub_question" and same_words(a, b)):
            yield Difference(
                kind=kind,
                depth=pair.either.depth,
                query=pair.either.query,
                chunk_id=chunks.either.chunk_id,
                source=chunks.either.source,
                title=chunks.either.title,
                a=a,
                b=b,
            )


def _place(chunk: ChunkNode | None, _: ChunkPair) -> str:
    return "" if chunk is None else f"#{chunk.position}" if chunk.position is not None else "found"


def _verdict(chunk: ChunkNode | None, pair: ChunkPair) -> str:
    """Return the verdict; ``""`` on both sides where one has none, as under a system without a judge."""
    both = pair.a and pair.b and "pending" not in (pair.a.verdict_label, pair.b.verdict_label)
    return chunk.verdict_label if chunk and both else ""


def _sub_question(chunk: ChunkNode | None, _: ChunkPair) -> str:
    return "; ".join(sub_run.query for sub_run in chunk.sub_runs) if chunk else ""


def _answered_otherwise(pair: QueryPair) -> Iterator[Difference]:
    if pair.a and pair.b and _answer(pair.a) != _answer(pair.b):
        depth, query = pair.a.depth, pair.a.query
        yield Difference(kind="answer", depth=depth, query=query, a=_answer(pair.a), b=_answer(pair.b))


def _answer(node: QueryNode) -> str:
    return node.answer or node.error or f"({node.status})"
