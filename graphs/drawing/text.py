"""A search tree for the terminal: indented, with Chinese text counted as two columns a character."""

from __future__ import annotations

from collections.abc import Iterator

from ..tree.nodes import ChunkNode, QueryNode
from .layout import columns, one_line, shorten
from .words import VERDICT_MARKS, answer_words, origin_words, tree_words, usage_words, verdict_counts_words


def draw_text(root: QueryNode, *, width: int = 100) -> str:
    """The tree as lines of at most ``width`` columns, the root first, totals last; what is too long ends in "…".

    A chunk stands as ``[verdict] #rank · retrieval score · source · what the judge said``.
    """
    lines = [_fit(*line, width) for line in _query_lines(root)]
    totals = [tree_words(root), f"verdicts: {verdict_counts_words(root) or 'none'}"]
    return "\n".join([*lines, *(shorten(line, width) for line in totals)])


def _fit(indent: str, text: str, cost: str, width: int) -> str:
    """One line; of text and cost it is the text that gives way."""
    room = max(width - columns(indent) - columns(cost), 20)
    return indent + shorten(text, room) + cost


def _query_lines(node: QueryNode) -> Iterator[tuple[str, str, str]]:
    """An indent, the text after it, and what it cost."""
    yield "", f"Q: {one_line(node.query)}", ""
    yield "", f"A: {one_line(answer_words(node))}", f"  ({usage_words(node.cost)})"
    for chunk in node.chunks:
        last = chunk is node.chunks[-1]
        yield "└─ " if last else "├─ ", _chunk_text(chunk), ""
        indent = "   " if last else "│  "
        if chunk.sub_run_error:
            yield indent, f"! sub-run: {chunk.sub_run_error}", ""
        if chunk.child is not None:
            for deeper, text, cost in _query_lines(chunk.child):
                yield indent + deeper, text, cost


def _chunk_text(chunk: ChunkNode) -> str:
    said = chunk.reason or (f"asks: {chunk.next_query}" if chunk.next_query else chunk.text)
    return f"[{VERDICT_MARKS[chunk.verdict_label]}] {origin_words(chunk)} · {said}"
