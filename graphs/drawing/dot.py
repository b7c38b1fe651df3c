"""A search tree as Graphviz DOT text, left to right: query, its chunks, their sub-questions.

Boxes get their width from here and not from Graphviz, whose built-in metrics take a Chinese character for a blank.
"""

from __future__ import annotations

import html
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from ..tree_nodes import ChunkNode, QueryNode, ThreadStatus, VerdictLabel, count_verdicts, walk_chunks, walk_queries
from .layout import glyph_ems, printable, wrap
from .words import VERDICT_MARKS, VERDICT_WORDS, answer_words, origin_words, tree_words, usage_words

FONT = "Helvetica"
CARD_WIDTH_PT = 262
BADGE_WIDTH_PT = 18
TEXT_SIZE_PT = 10
SMALL_SIZE_PT = 8.5
LINE_HEIGHT = 1.35
INK, FAINT_INK, ALARM_INK = "#1A1A1A", "#555555", "#A3260C"


@dataclass(frozen=True, kw_only=True)
class Look:
    """How one kind of node is drawn: told apart by colour, by outline and in words, so that grey prints will do."""

    fill: str
    line: str
    style: str = "filled"
    pen_width: float = 1.2


# Okabe and Ito's palette, which colour-blind readers can tell apart, over pale tints of it.
VERDICT_LOOKS: dict[VerdictLabel, Look] = {
    "2": Look(fill="#DDF3EA", line="#00795A", pen_width=2.2),
    "1": Look(fill="#FFF1D2", line="#A86E00", pen_width=1.6),
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

_HEAD = f"""\
digraph search_tree {{
  graph [rankdir=LR, ranksep=0.45, nodesep=0.14, ordering=out, splines=true, bgcolor=white, pad=0.15,
         fontname="{FONT}", labelloc=b, labeljust=l];
  node [fontname="{FONT}", fontsize={TEXT_SIZE_PT}, fontcolor="{INK}", margin="0.08,0.06"];
  edge [arrowsize=0.6, tailport=e, headport=w];"""


def draw_dot(root: QueryNode, *, legend: bool = True) -> str:
    """The tree as DOT text. Every box carries its full text as a tooltip; labels are shortened.

    Query nodes have the ids ``q0``, ``q1``, …, chunk nodes ``c0``, …, both in the order of the tree's own walks.
    """
    names = {node.thread_id: f"q{number}" for number, node in enumerate(walk_queries(root))}
    lines = [_HEAD]
    if legend:
        lines.append(f"  label={_legend(root)};")
    lines.extend(_query_box(names[node.thread_id], node) for node in walk_queries(root))
    for number, (parent, chunk) in enumerate(walk_chunks(root)):
        name = f"c{number}"
        lines.append(_chunk_box(name, chunk))
        lines.append(f'  {names[parent.thread_id]} -> {name} [color="#8C8C8C", arrowhead=none];')
        if chunk.child is not None:
            lines.append(f'  {name} -> {names[chunk.child.thread_id]} [color="#1F4E79", penwidth=1.6];')
    return "\n".join([*lines, "}", ""])


def _query_box(name: str, node: QueryNode) -> str:
    kind = "query" if node.parent_thread_id is None else f"sub-question, depth {node.depth}"
    flag = "" if node.status == "finished" else f" · {node.status.upper()}"
    plain_answer = node.status == "finished" and node.answer_status == "answered"
    rows = [
        _text_rows([f"{kind}{flag}"], size=SMALL_SIZE_PT, ink=THREAD_LOOKS[node.status].line, bold=True),
        _text_rows(_lines(node.query, 5, bold=True), bold=True),
        _text_rows(_lines(f"→ {answer_words(node)}", 4), ink=INK if plain_answer else ALARM_INK),
        _text_rows(_lines(usage_words(node.cost), 2, size=SMALL_SIZE_PT), size=SMALL_SIZE_PT, ink=FAINT_INK),
    ]
    tooltip = "\n".join(
        [f"{kind}{flag}", node.query, f"→ {answer_words(node)}", usage_words(node.cost), node.thread_id]
    )
    return _box(name, f"query {node.status}", "box", THREAD_LOOKS[node.status], rows, tooltip)


def _chunk_box(name: str, chunk: ChunkNode) -> str:
    label = chunk.verdict_label
    look = VERDICT_LOOKS[label]
    rows = [
        _badge_row(label),
        _text_rows(_lines(origin_words(chunk), 2, size=SMALL_SIZE_PT), size=SMALL_SIZE_PT, ink=FAINT_INK),
        _text_rows(_lines(chunk.text, 2)),
        *(_text_rows(_lines(note, 3), ink=ink) for note, ink in _chunk_notes(chunk)),
    ]
    notes = [note for note, _ in _chunk_notes(chunk)]
    tooltip = "\n".join([VERDICT_WORDS[label], origin_words(chunk), chunk.text, *notes])
    return _box(name, f"chunk verdict-{label}", "note", look, rows, tooltip)


def _chunk_notes(chunk: ChunkNode) -> Iterator[tuple[str, str]]:
    """What is said of a chunk, each with its ink; a child's own box already tells question and answer."""
    if chunk.round:
        yield f"found by: {chunk.found_by}", FAINT_INK
    if chunk.reason:
        yield f"because: {chunk.reason}", FAINT_INK
    asked = chunk.child.query if chunk.child else ""
    if chunk.next_query and chunk.next_query != asked:
        yield f"asks: {chunk.next_query}", INK
    if chunk.sub_answer and chunk.child is None:
        yield f"sub-answer: {chunk.sub_answer}", INK
    if chunk.sub_run_error:
        yield f"sub-run: {chunk.sub_run_error}", ALARM_INK


def _box(name: str, css_class: str, shape: str, look: Look, rows: Sequence[str], tooltip: str) -> str:
    return (
        f'  {name} [id="{name}", class="{css_class}", shape={shape}, style="{look.style}", fillcolor="{look.fill}", '
        f'color="{look.line}", penwidth={look.pen_width}, tooltip={_quoted(tooltip)}, label={_table(rows)}];'
    )


def _table(rows: Sequence[str]) -> str:
    cells = "".join(rows)
    return f'<<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="0" WIDTH="{CARD_WIDTH_PT}">{cells}</TABLE>>'


def _badge_row(label: VerdictLabel) -> str:
    words = _font(f"\u00a0{VERDICT_WORDS[label]}", ink=INK, bold=True)
    rest = CARD_WIDTH_PT - BADGE_WIDTH_PT
    return f'<TR>{_badge(label)}<TD ALIGN="LEFT" WIDTH="{rest}">{words}</TD></TR>'


def _badge(label: VerdictLabel) -> str:
    mark = _font(VERDICT_MARKS[label], ink="#FFFFFF", bold=True)
    return f'<TD WIDTH="{BADGE_WIDTH_PT}" HEIGHT="15" BGCOLOR="{VERDICT_LOOKS[label].line}">{mark}</TD>'


def _text_rows(lines: Sequence[str], *, size: float = TEXT_SIZE_PT, ink: str = INK, bold: bool = False) -> str:
    """A table row a line, its height given: Graphviz sets bold lines so tight that Chinese ones touch."""
    height = round(size * LINE_HEIGHT)
    return "".join(
        f'<TR><TD COLSPAN="2" ALIGN="LEFT" HEIGHT="{height}">{_font(line, size=size, ink=ink, bold=bold)}</TD></TR>'
        for line in lines
    )


def _font(text: str, *, size: float = TEXT_SIZE_PT, ink: str, bold: bool = False) -> str:
    # Here entities are read before \N and the like are expanded, so only a doubled backslash stays one.
    escaped = html.escape(text).replace("\\", "\\\\")
    weight = f"<B>{escaped}</B>" if bold else escaped
    return f'<FONT POINT-SIZE="{size}" COLOR="{ink}">{weight}</FONT>'


def _lines(text: str, max_lines: int, *, size: float = TEXT_SIZE_PT, bold: bool = False) -> list[str]:
    ems = CARD_WIDTH_PT / size / (1.08 if bold else 1)
    return wrap(text, ems, max_lines=max_lines, measure=glyph_ems)


def _legend(root: QueryNode) -> str:
    """Totals, and what each colour that occurs means."""
    counts = {label: count for label, count in count_verdicts(root).items() if count}
    cells = "".join(
        f'{_badge(label)}<TD ALIGN="LEFT">{_font(f"{VERDICT_WORDS[label]} ({count})   ", ink=INK)}</TD>'
        for label, count in counts.items()
    )
    span = max(2 * len(counts), 1)
    totals = f'<TR><TD COLSPAN="{span}" ALIGN="LEFT">{_font(tree_words(root), ink=FAINT_INK)}</TD></TR>'
    verdicts = f"<TR>{cells}</TR>" if cells else ""
    return f'<<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="3" CELLPADDING="2">{verdicts}{totals}</TABLE>>'


def _quoted(text: str) -> str:
    """A DOT string of several lines, for a tooltip.

    Graphviz reads a tooltip's entities, and its backslashes twice (both ``dot`` 2.43 and graphviz-pure 16.1 do).
    """
    lines = printable(text).replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return '"' + "\\n".join(html.escape(line).replace("\\", "\\" * 4) for line in lines) + '"'
