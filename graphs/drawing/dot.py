"""A search tree as Graphviz DOT text: query, its chunks, their sub-questions, to the right or downwards."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal

from ..threads.snapshots import ThreadStatus
from ..tree.counts import count_verdicts
from ..tree.leading import find_leading
from ..tree.nodes import ChunkNode, QueryNode, VerdictLabel, walk_chunks, walk_queries, walk_shared
from .boxes import (
    ALARM_INK,
    FAINT_INK,
    FONT,
    INK,
    NODE_STYLE,
    SMALL_SIZE_PT,
    Look,
    badge_row,
    box,
    box_lines,
    legend_label,
    text_rows,
)
from .decisive import decisive_sentence
from .marks import UNMARKED, Mark, Marks
from .words import (
    VERDICT_MARKS,
    VERDICT_WORDS,
    caveat_lines,
    format_answer,
    format_caveat,
    format_cost,
    format_grant,
    format_origin,
    format_skip,
    format_tree,
)
from .wrapping import FOLD, levels_below

# Okabe and Ito's palette, which colour-blind readers can tell apart, over pale tints of it.
VERDICT_LOOKS: dict[VerdictLabel, Look] = {
    "2": Look(fill="#DDF3EA", line="#00795A", pen_width=2.2),
    "1": Look(fill="#FFF1D2", line="#A06800", pen_width=1.6),
    "0": Look(fill="#F3F3F3", line="#767676", pen_width=0.8),
    "unknown": Look(fill="#F7E3EF", line="#99407B", style="filled,dashed", pen_width=1.6),
    "cancelled": Look(fill="#FFFFFF", line="#A3260C", style="filled,dotted", pen_width=1.6),
    "pending": Look(fill="#FFFFFF", line="#767676", style="filled,dashed", pen_width=0.8),
}
THREAD_LOOKS: dict[ThreadStatus, Look] = {
    "finished": Look(fill="#E4EEF8", line="#1F4E79", style="filled,rounded", pen_width=1.6),
    "failed": Look(fill="#FBE9E5", line="#A3260C", style="filled,rounded,bold", pen_width=2.6),
    "open": Look(fill="#FFFFFF", line="#1F4E79", style="filled,rounded,dashed", pen_width=1.6),
}

LINKED_LOOK = Look(fill="#F5F5F5", line="#5B6B7B", style="filled,rounded,dashed", pen_width=1.2)
"""Look of a thread of another tree."""

Direction = Literal["right", "down"]
"""Where a tree grows: to the right for a wide window, downwards for a narrow column."""

_HEAD = f"""\
digraph search_tree {{
  graph [ordering=out, splines=true, bgcolor=white, pad=0.15, fontname="{FONT}", labelloc=b, labeljust=l];
  {NODE_STYLE}"""
_DIRECTIONS: dict[Direction, str] = {
    "right": "graph [rankdir=LR, ranksep=0.45, nodesep=0.14]; edge [arrowsize=0.6, tailport=e, headport=w];",
    "down": "graph [rankdir=TB, ranksep=0.6, nodesep=0.2]; edge [arrowsize=0.6, tailport=s, headport=n];",
}


def draw_dot(root: QueryNode, *, direction: Direction = "right", fold: bool = True, marks: Marks = UNMARKED) -> str:
    """Draw the tree as DOT text with shortened labels; each box has its full text as a tooltip.

    Query nodes have the ids ``q0``, ``q1``, …, chunk nodes ``c0``, …, in the order of ``walk_queries`` and
    ``walk_chunks``. With ``fold``, the chunks of a query that do not help share a box ``z0``, ``z1``, … with the
    query's number, unless it has only one. Lines that lead to the answer are thick. A tree that grows downwards stays
    narrow: chunks go on in further rows.
    """
    names = {node.thread_id: f"q{number}" for number, node in enumerate(walk_queries(root))}
    folded = {node.thread_id: _unhelpful(node, marks) for node in walk_queries(root)} if fold else {}
    leading = find_leading(root)
    levels = levels_below(root, folded) if direction == "down" else {}
    lines = [_HEAD, f"  {_DIRECTIONS[direction]}", f"  label={_legend(root, marks.remarks)};"]
    grants = {each.thread_id: format_grant(chunk, each) for _, chunk in walk_chunks(root) for each in chunk.sub_runs}
    lines += [_query_box(names[node.thread_id], node, grants.get(node.thread_id, "")) for node in walk_queries(root)]
    chunk_names: dict[tuple[str, str], str] = {}
    for number, (parent, chunk) in enumerate(walk_chunks(root)):
        if any(chunk is other for other in folded.get(parent.thread_id, ())):
            continue
        name = chunk_names[parent.thread_id, chunk.chunk_id] = f"c{number}"
        if start := chunk_names.get((parent.thread_id, chunk.linked_from)):
            lines.append(f'  {start} -> {name} [color="#8C8C8C", style=dotted, constraint=false];')
        lines.append(_chunk_box(name, chunk, parent.query, marks.chunks.get((parent.thread_id, chunk.chunk_id))))
        level = levels.get((parent.thread_id, chunk.chunk_id), 1)
        leads = (parent.thread_id, chunk.chunk_id) in leading.chunks
        lines.append(_edge_to_chunk(names[parent.thread_id], name, level, leads=leads))
        for sub_run in chunk.sub_runs:
            width = 3 if leads and sub_run.thread_id in leading.queries else 1.6
            lines.append(f'  {name} -> {names[sub_run.thread_id]} [color="#1F4E79", penwidth={width}];')
    for parent, chunk, shared in walk_shared(root):
        name = chunk_names[parent.thread_id, chunk.chunk_id]
        lines.append(f'  {name} -> {names[shared.thread_id]} [color="#1F4E79", style=dashed, constraint=false];')
    for thread_id, chunks in folded.items():  # after the others, so that the box is a query's last one
        if chunks:
            name = f"z{names[thread_id][1:]}"
            level = levels.get((thread_id, FOLD), 1)
            lines += [_folded_box(name, chunks), _edge_to_chunk(names[thread_id], name, level)]
    return "\n".join([*lines, "}", ""])


def _unhelpful(node: QueryNode, marks: Marks) -> list[ChunkNode]:
    """Return two or more chunks that do not help and have nothing else to show, or none."""
    plain = (chunk for chunk in node.chunks if (node.thread_id, chunk.chunk_id) not in marks.chunks)
    chunks = [chunk for chunk in plain if chunk.verdict_label == "0" and not chunk.sub_runs and not chunk.sub_run_error]
    return chunks if len(chunks) > 1 else []


def _edge_to_chunk(query: str, chunk: str, level: int, *, leads: bool = False) -> str:
    more = (f", minlen={level}" if level > 1 else "") + (", penwidth=3" if leads else "")
    return f'  {query} -> {chunk} [color="#8C8C8C", arrowhead=none{more}];'


def _query_box(name: str, node: QueryNode, granted: str) -> str:
    kind = "query" if node.parent_thread_id is None else f"sub-question, depth {node.depth}"
    flag = "" if node.status == "finished" else f" · {node.status.upper()}"
    flag += f" · {granted}" if granted else ""
    flag += " · linked" if node.linked_from else ""
    look = LINKED_LOOK if node.linked_from else THREAD_LOOKS[node.status]
    plain_answer = node.status == "finished" and node.answer_status == "answered"
    rows = [
        text_rows([f"{kind}{flag}"], size=SMALL_SIZE_PT, ink=look.line, bold=True),
        text_rows(box_lines(node.query, 5, bold=True), bold=True),
        text_rows(box_lines(f"→ {format_answer(node)}", 4), ink=INK if plain_answer else ALARM_INK),
        *([badge_row("!", ALARM_INK, format_caveat(node.caveats))] if node.caveats else []),
        text_rows(box_lines(format_cost(node), 2, size=SMALL_SIZE_PT), size=SMALL_SIZE_PT, ink=FAINT_INK),
    ]
    said = [f"→ {format_answer(node)}", *caveat_lines(node.caveats), format_cost(node)]
    tooltip = "\n".join([f"{kind}{flag}", node.query, *said, node.thread_id])
    return box(name, f"query {node.status}", "box", look, rows, tooltip)


def _chunk_box(name: str, chunk: ChunkNode, query: str, mark: Mark | None) -> str:
    label = chunk.verdict_label
    look = VERDICT_LOOKS[label]
    rows = [
        badge_row(VERDICT_MARKS[label], look.line, VERDICT_WORDS[label]),
        *([badge_row("!", mark.colour, mark.word)] if mark else []),
        text_rows(box_lines(format_origin(chunk), 2, size=SMALL_SIZE_PT), size=SMALL_SIZE_PT, ink=FAINT_INK),
        text_rows(box_lines(decisive_sentence(chunk.text, query=query, reason=chunk.reason), 3)),
        *(text_rows(box_lines(note, 3), ink=ink) for note, ink in _chunk_notes(chunk)),
    ]
    notes = [note for note, _ in _chunk_notes(chunk)]
    marked = [mark.words] if mark else []
    tooltip = "\n".join([VERDICT_WORDS[label], *marked, format_origin(chunk), chunk.text, *notes])
    return box(name, f"chunk verdict-{label}", "note", look, rows, tooltip)


def _folded_box(name: str, chunks: Sequence[ChunkNode]) -> str:
    look = VERDICT_LOOKS["0"]
    tooltip = "\n".join(f"{format_origin(chunk)} · {chunk.reason or chunk.text}" for chunk in chunks)
    row = badge_row(VERDICT_MARKS["0"], look.line, f"{len(chunks)} that do not help")
    return box(name, "folded verdict-0", "note", look, [row], tooltip)


def _chunk_notes(chunk: ChunkNode) -> Iterator[tuple[str, str]]:
    """Yield the notes on a chunk with their ink, without the question and answer of its sub-run's own box."""
    if chunk.round:
        yield f"found by: {chunk.found_by}", FAINT_INK
    if chunk.reason:
        yield f"because: {chunk.reason}", FAINT_INK
    asked = chunk.child.query if chunk.child else ""
    if chunk.next_query and chunk.next_query != asked:
        yield f"asks: {chunk.next_query}", INK
    if chunk.is_shared_from_elsewhere:
        yield "asked already, earlier in the conversation", FAINT_INK
    elif chunk.shared_thread_id:
        yield "asked already, as the dashed arrow shows", FAINT_INK
    if chunk.sub_answer and chunk.child is None:
        yield f"sub-answer: {chunk.sub_answer}", INK
    if chunk.skipped is not None:
        yield format_skip(chunk.skipped), ALARM_INK
    if chunk.sub_run_error:
        yield f"sub-run: {chunk.sub_run_error}", ALARM_INK


def _legend(root: QueryNode, remarks: Sequence[str]) -> str:
    """Explain the colours that occur, with the totals and remarks."""
    entries = [
        (VERDICT_MARKS[label], VERDICT_LOOKS[label].line, f"{VERDICT_WORDS[label]} ({count})")
        for label, count in count_verdicts(root).items()
        if count
    ]
    return legend_label(entries, format_tree(root), *remarks)
