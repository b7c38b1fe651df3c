"""A neighbourhood as Graphviz DOT text: passages as boxes, phrases as ellipses, relations as labels."""

from __future__ import annotations

from collections.abc import Collection, Mapping

import networkx as nx

from ...modules.structure.neighbourhood import GraphEdge, GraphNode, Neighbourhood
from ..drawing.boxes import (
    FAINT_INK,
    FONT,
    INK,
    NODE_STYLE,
    SMALL_SIZE_PT,
    Look,
    box,
    box_lines,
    font,
    legend_label,
    quoted,
    text_rows,
)
from ..drawing.layout import glyph_ems, wrap
from .words import PassageText, format_neighbourhood, shown_phrases

_PASSAGE = Look(fill="#F3F3F3", line="#767676", pen_width=0.8)
_HIT = Look(fill="#E4EEF8", line="#1F4E79", pen_width=1.8)
_PHRASE = Look(fill="#FFFFFF", line="#767676", pen_width=0.8)
_ASKED = Look(fill="#FFF1D2", line="#A06800", pen_width=1.8)
_PHRASE_EMS, _RELATION_EMS = 16, 13
_HEAD = f"""\
graph neighbourhood {{
  graph [rankdir=LR, ranksep=1.0, nodesep=0.16, splines=true, bgcolor=white, pad=0.15, fontname="{FONT}", labelloc=b,
    labeljust=l];
  {NODE_STYLE}
  edge [fontname="{FONT}", fontsize={SMALL_SIZE_PT}, fontcolor="{FAINT_INK}", color="#8C8C8C", arrowsize=0.6];"""


def draw_neighbourhood_dot(found: Neighbourhood, texts: Mapping[str, PassageText]) -> str:
    """Draw a neighbourhood as DOT text with shortened labels; each node has its full text as a tooltip.

    Nodes are ``n`` with their number in the graph. Passages that the search found, and phrases of the question, are
    coloured.
    """
    names = shown_phrases(found, texts)
    head, _, totals = format_neighbourhood(found).partition(": ")
    entries = [("P", _HIT.line, "found by the search"), ("Q", _ASKED.line, "named by the question")]
    lines = [_HEAD, f"  label={legend_label(entries, f'{head}: {totals}')};"]
    for place in _from_below(found):
        is_passage = place.kind == "passage"
        lines.append(_passage_box(place, texts.get(place.name)) if is_passage else _phrase(place, names[place.node]))
    passages = {place.node for place in found.places if place.kind == "passage"}
    lines += (_edge(bond, passages) for bond in found.bonds)
    return "\n".join([*lines, "}", ""])


def _from_below(found: Neighbourhood) -> list[GraphNode]:
    """Return the places as Graphviz stacks them from left to right: the first at the bottom.

    At the top is the part that is connected with the best place, below it the further parts, the best of each deciding,
    and last those without an edge.
    """
    score = {place.node: place.score for place in found.places}
    parts = nx.connected_components(nx.Graph([(bond.source, bond.target) for bond in found.bonds]))
    part_of = {node: (max(map(score.__getitem__, part)), min(part)) for part in parts for node in part}
    alone = (0.0, 0)
    return sorted(
        found.places,
        key=lambda each: (each.node in part_of, part_of.get(each.node, alone), each.score, -each.node),
    )


def _passage_box(place: GraphNode, text: PassageText | None) -> str:
    look = _HIT if place.seed else _PASSAGE
    title, body = (text.title, text.text) if text else (place.name, "")
    words = f"PageRank {place.score:.3f}"
    rows = [
        text_rows(box_lines(title, 2, bold=True), ink=INK, bold=True),
        text_rows(box_lines(body, 3, size=SMALL_SIZE_PT), size=SMALL_SIZE_PT),
        text_rows([words], size=SMALL_SIZE_PT, ink=FAINT_INK),
    ]
    return box(f"n{place.node}", "passage", "box", look, rows, "\n".join([title, body, words, place.name]))


def _phrase(place: GraphNode, shown: str) -> str:
    look = _ASKED if place.seed else _PHRASE
    label = _lines(shown, _PHRASE_EMS)
    tooltip = quoted(f"{shown}\nPageRank {place.score:.3f}")
    return (
        f'  n{place.node} [id="n{place.node}", class="phrase", shape=box, style="filled,rounded", '
        f'fillcolor="{look.fill}", color="{look.line}", penwidth={look.pen_width}, margin="0.12,0.05", '
        f"tooltip={tooltip}, label={label}];"
    )


def _edge(bond: GraphEdge, passages: Collection[int]) -> str:
    ends = f"  n{bond.source} -- n{bond.target}"
    if not bond.relation:  # from the passage, so that passages are in one column: as they come they make long chains
        return f"  n{bond.target} -- n{bond.source};" if bond.target in passages else f"{ends};"
    stated = f"{bond.relation}\nstated by {', '.join(each[:12] for each in bond.passages) or 'no passage here'}"
    label = _lines(bond.relation, _RELATION_EMS, size=SMALL_SIZE_PT, ink=FAINT_INK)
    return f'{ends} [dir=forward, color="#1F4E79", penwidth=1.4, tooltip={quoted(stated)}, label={label}];'


def _lines(text: str, ems: float, *, size: float = 10, ink: str = INK) -> str:
    """Make a label of at most two lines, as wide as its text, which Graphviz measures too narrow if it is Chinese."""
    lines = wrap(text, ems, max_lines=2, measure=glyph_ems) or ["\u00a0"]
    width = round(max(sum(map(glyph_ems, line)) for line in lines) * size)
    rows = "".join(f'<TR><TD ALIGN="LEFT" WIDTH="{width}">{font(line, size=size, ink=ink)}</TD></TR>' for line in lines)
    return f'<<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="0">{rows}</TABLE>>'
