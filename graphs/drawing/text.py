"""A search tree as indented text for the terminal; Chinese characters count as two columns."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from ..tree.nodes import ChunkNode, QueryNode
from ..tree.places import chunk_name, query_numbers
from .layout import columns, one_line, shorten
from .marks import UNMARKED, Marks
from .words import (
    VERDICT_MARKS,
    caveat_lines,
    format_answer,
    format_cost,
    format_grant,
    format_origin,
    format_skip,
    format_verdict_counts,
    tree_lines,
)

_MOST_INDENT = 1_000
"""Most characters of an indent that are kept; lines show less."""


def draw_text(root: QueryNode, *, width: int = 100, marks: Marks = UNMARKED) -> str:
    """Draw the tree as lines of at most ``width`` columns, root first, totals last; longer lines end in "…".

    A chunk is ``[verdict] #rank · retrieval score · source · the judge's reason``.
    """
    numbers = query_numbers(root) if marks.numbers else {}
    lines = [_fit(*line, width) for line in _query_lines(root, numbers, marks)]
    totals = [*tree_lines(root), f"verdicts: {format_verdict_counts(root) or 'none'}", *marks.remarks]
    return "\n".join([*lines, *(shorten(line, width) for line in totals)])


def _fit(indent: str, text: str, cost: str, width: int) -> str:
    """Fit a line into ``width`` by shortening the text, not the cost."""
    if len(indent) > width // 2:  # a deep tree would be drawn far to the right of the terminal
        indent = f"…{indent[-(width // 2) :]}"
    room = max(width - columns(indent) - columns(cost), 20)
    return indent + shorten(text, room) + cost


def _query_lines(root: QueryNode, numbers: Mapping[str, int], marks: Marks) -> Iterator[tuple[str, str, str]]:
    """Yield indent, text and cost of each line, without recursion."""
    stack = [("", _lines_of(root, numbers, marks, ""))]
    while stack:
        indent, lines = stack[-1]
        line = next(lines, None)
        if line is None:
            stack.pop()
            continue
        step, content, cost = line
        if isinstance(content, str):
            yield indent + step, content, cost
        else:  # a sub-run, and where it was granted
            deeper = (indent + step)[-_MOST_INDENT:]
            stack.append((deeper, _lines_of(content, numbers, marks, cost)))


def _lines_of(
    node: QueryNode, numbers: Mapping[str, int], marks: Marks, granted: str
) -> Iterator[tuple[str, str | QueryNode, str]]:
    """Yield the lines of a query alone, and in their places its sub-runs with their indent and grant."""
    number = numbers.get(node.thread_id)
    place = f" ({granted})" if granted else ""
    yield "", f"{f'{number} ' if number else ''}Q{place}: {one_line(node.query)}", ""
    yield "", f"A: {one_line(format_answer(node))}", f"  ({format_cost(node)})"
    for line in caveat_lines(node.caveats):
        yield "", f"! {line}", ""
    for chunk in node.chunks:
        last = chunk is node.chunks[-1]
        name = f"{chunk_name(number, chunk)} " if number else ""
        mark = marks.chunks.get((node.thread_id, chunk.chunk_id))
        yield "└─ " if last else "├─ ", f"{name}{_chunk_text(chunk)}", ""
        indent = "   " if last else "│  "
        if mark is not None:
            yield indent, mark.words, ""
        if chunk.sub_run_error:
            yield indent, f"! sub-run: {chunk.sub_run_error}", ""
        if chunk.skipped is not None:
            yield indent, f"! {format_skip(chunk.skipped)}: {chunk.next_query}", ""
        if chunk.shared_thread_id:
            yield indent, f"↪ asked already: {chunk.next_query} → {chunk.sub_answer}", ""
        for sub_run in chunk.sub_runs:
            yield indent, sub_run, format_grant(chunk, sub_run)


def _chunk_text(chunk: ChunkNode) -> str:
    said = chunk.reason or (f"asks: {chunk.next_query}" if chunk.next_query else chunk.text)
    return f"[{VERDICT_MARKS[chunk.verdict_label]}] {format_origin(chunk)} · {said}"
