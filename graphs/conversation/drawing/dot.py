"""A conversation as Graphviz DOT text and SVG picture: one box for each turn, with the branches side by side."""

from __future__ import annotations

from collections.abc import Iterator

from ....modules.memory.turns import AnsweredFrom, OpenTurn, QaPair
from ...drawing.boxes import (
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
    font,
    legend_label,
    quoted,
    text_rows,
)
from ...drawing.layout import shorten
from ...drawing.words import count_of, format_usage
from .turn_tree import Lane, Reuse, TurnTree
from .words import (
    ANSWERED_WORDS,
    OPEN_WORDS,
    answered_counts,
    format_basis,
    format_conversation,
    format_needed,
    format_open_search,
    format_reuse,
    format_search,
    format_source,
    format_standalone,
    format_switch,
    origin_of,
    refusals,
)

# Okabe and Ito's palette, which colour-blind readers can tell apart.
ANSWER_LOOKS: dict[AnsweredFrom, Look] = {
    "search": Look(fill="#E4EEF8", line="#1F4E79", style="filled,rounded", pen_width=1.4),
    "history": Look(fill="#DDF3EA", line="#00795A", style="filled,rounded", pen_width=1.4),
    "web": Look(fill="#F7E3EF", line="#99407B", style="filled,rounded", pen_width=1.4),
    "knowledge": Look(fill="#FFF1D2", line="#A06800", style="filled,rounded", pen_width=1.4),
    "small_talk": Look(fill="#F3F3F3", line="#767676", style="filled,rounded", pen_width=1.0),
}
OPEN_LOOK = Look(fill="#FFFFFF", line="#1F4E79", style="filled,rounded,dashed", pen_width=1.6)
REUSE_COLOUR = "#00795A"
_PATH_COLOUR = "#5F6B76"
_MARK_WIDTH_PT = 26
_NAME_COLUMNS = 40

_HEAD = f"""\
digraph conversation {{
  graph [rankdir=TB, ranksep=0.3, nodesep=0.5, newrank=true, splines=true, bgcolor=white, pad=0.15,
         fontname="{FONT}", labelloc=b, labeljust=l];
  {NODE_STYLE}
  edge [arrowsize=0.7, color="{_PATH_COLOUR}", penwidth=1.4];"""


def draw_conversation_dot(tree: TurnTree) -> str:
    """Draw the turns as DOT text with shortened labels; each box has its full text as a tooltip.

    Turns have the ids ``t0``, ``t1``, … in the order of the tree, the open turn last.
    """
    turns: list[QaPair | OpenTurn] = [*tree.turns, *([tree.open_turn] if tree.open_turn else [])]
    names = {turn["turn_id"]: f"t{number}" for number, turn in enumerate(turns)}
    lines = [_HEAD, f"  label={_legend(tree)};"]
    for number, lane in enumerate(tree.lanes()):
        lines += _cluster(tree, lane, number, names)
    lines += (_path_edge(tree, turn, names) for turn in turns if tree.parent_of(turn))
    lines += (_reuse_edge(reuse, names) for reuse in tree.reuses())
    return "\n".join([*lines, "}", ""])


def _cluster(tree: TurnTree, lane: Lane, number: int, names: dict[str, str]) -> Iterator[str]:
    """Yield the lines of a branch: a frame with its name around its own turns."""
    branch, origin = lane.branch, origin_of(tree, lane)
    words = [shorten(branch["name"], _NAME_COLUMNS), *(["active"] if lane.is_active else [])]
    label = font(" · ".join(words), ink=INK if lane.is_active else FAINT_INK, bold=lane.is_active)
    if origin:
        label += font(f"  {shorten(origin, _NAME_COLUMNS)}", size=SMALL_SIZE_PT, ink=FAINT_INK)
    line, width = ("#1F4E79", 2.2) if lane.is_active else ("#B9C0C7", 1.0)
    tooltip = " · ".join(filter(None, [branch["name"], "active branch" if lane.is_active else "branch", origin]))
    yield f"  subgraph cluster_{number} {{"
    yield (
        f'    graph [class="branch{" active" if lane.is_active else ""}", label=<{label}>, labelloc=t, labeljust=l, '
        f'style="rounded,filled", fillcolor="#FAFBFC", color="{line}", penwidth={width}, margin=12, '
        f"tooltip={quoted(tooltip)}];"
    )
    yield from (_turn_box(names[turn["turn_id"]], tree, turn) for turn in lane.turns)
    if lane.open_turn:
        yield _open_box(names[lane.open_turn["turn_id"]], tree, lane.open_turn)
    elif not lane.turns:
        empty = font("no turn of its own", size=SMALL_SIZE_PT, ink=FAINT_INK)
        yield f'  empty{number} [shape=plain, label=<{empty}>, tooltip="no turn of its own"];'
    yield "  }"


def _turn_box(name: str, tree: TurnTree, turn: QaPair) -> str:
    look = ANSWER_LOOKS[turn["answered_from"]]
    refused = turn["status"] == "refused"
    if refused:
        look = Look(fill=look.fill, line=ALARM_INK, style="filled,rounded,bold", pen_width=2.6)
    head = f"{format_basis(turn)}{' · REFUSED' if refused else ''}"
    standalone, costs = format_standalone(turn), _costs(tree, turn)
    rows = [
        badge_row(
            str(turn["turn_number"]),
            ANSWER_LOOKS[turn["answered_from"]].line,
            head,
            ink=ALARM_INK if refused else INK,
            width=_MARK_WIDTH_PT,
        ),
        text_rows(box_lines(turn["query"], 4, bold=True), bold=True),
        text_rows(box_lines(f"= {standalone}", 3), ink=FAINT_INK) if standalone else "",
        text_rows(box_lines(f"→ {turn['answer']}", 4), ink=ALARM_INK if refused else INK),
        *(text_rows(box_lines(cost, 2, size=SMALL_SIZE_PT), size=SMALL_SIZE_PT, ink=FAINT_INK) for cost in costs),
    ]
    sources = [f"source: {format_source(ref)}" for ref in turn["chunks"]]
    tooltip = [f"turn {turn['turn_number']} · {head}", turn["query"], f"= {standalone}" if standalone else ""]
    tooltip += [f"→ {turn['answer']}", *costs, *sources, turn["turn_id"]]
    css_class = f"turn {turn['answered_from']}{' refused' if refused else ''}"
    return box(name, css_class, "box", look, rows, "\n".join(filter(None, tooltip)))


def _open_box(name: str, tree: TurnTree, turn: OpenTurn) -> str:
    searched = format_open_search(tree)
    rows = [
        badge_row(str(turn["turn_number"]), OPEN_LOOK.line, f"OPEN · {OPEN_WORDS}", width=_MARK_WIDTH_PT),
        text_rows(box_lines(turn["query"], 4, bold=True), bold=True),
        text_rows(box_lines(searched, 2, size=SMALL_SIZE_PT), size=SMALL_SIZE_PT, ink=FAINT_INK) if searched else "",
    ]
    tooltip = [f"turn {turn['turn_number']} · {OPEN_WORDS}", turn["query"], searched, turn["turn_id"]]
    return box(name, "turn open", "box", OPEN_LOOK, rows, "\n".join(filter(None, tooltip)))


def _costs(tree: TurnTree, turn: QaPair) -> list[str]:
    """List the turn's usage, the size of its search tree, the turns it needs, and a switch of collections."""
    more = format_search(tree, turn), format_needed(tree, turn), format_switch(tree, turn)
    return [f"turn: {format_usage(turn['usage'])}", *filter(None, more)]


def _path_edge(tree: TurnTree, turn: QaPair | OpenTurn, names: dict[str, str]) -> str:
    parent = tree.parent_of(turn)
    assert parent is not None, "only turns that follow one have an edge"
    ends = f"{names[parent['turn_id']]} -> {names[turn['turn_id']]}"
    tooltip = quoted(f"turn {turn['turn_number']} follows turn {parent['turn_number']}")
    if parent["branch_id"] == turn["branch_id"]:
        return f'  {ends} [class="path", weight=10, tooltip={tooltip}];'
    return f'  {ends} [class="fork", tailport=e, headport=w, tooltip={tooltip}];'


def _reuse_edge(reuse: Reuse, names: dict[str, str]) -> str:
    found_in, used_in = reuse.found_in, reuse.used_in
    ends = f"{names[found_in['turn_id']]} -> {names[used_in['turn_id']]}"
    ports = "tailport=e, headport=e" if found_in["branch_id"] == used_in["branch_id"] else "tailport=e"
    return (
        f'  {ends} [class="reuse", style=dashed, constraint=false, {ports}, color="{REUSE_COLOUR}", '
        f"tooltip={quoted(format_reuse(reuse))}];"
    )


def _legend(tree: TurnTree) -> str:
    """Explain the colours that occur, with the totals."""
    entries = [
        (" ", ANSWER_LOOKS[kind].line, f"{ANSWERED_WORDS[kind]} ({count})")
        for kind, count in answered_counts(tree).items()
    ]
    if refused := refusals(tree):
        entries.append((" ", ALARM_INK, f"refused ({refused})"))
    if reused := len(tree.reuses()):
        entries.append(("- -", REUSE_COLOUR, f"{count_of(reused, 'answer')} from evidence found by an earlier turn"))
    return legend_label(entries, format_conversation(tree))
