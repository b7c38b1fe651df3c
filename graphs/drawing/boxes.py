"""Boxes of text in Graphviz DOT, for all drawings that use boxes.

Box widths are computed here, since Graphviz's built-in metrics give a Chinese character the width of a blank.
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from ...modules.storage.texts import printable
from .layout import glyph_ems, wrap

FONT = "Helvetica"
CARD_WIDTH_PT = 262
BADGE_WIDTH_PT = 18
TEXT_SIZE_PT = 10
SMALL_SIZE_PT = 8.5
LINE_HEIGHT = 1.35
INK, FAINT_INK, ALARM_INK = "#1A1A1A", "#555555", "#A3260C"
NODE_STYLE = f'node [fontname="{FONT}", fontsize={TEXT_SIZE_PT}, fontcolor="{INK}", margin="0.08,0.06"];'


@dataclass(frozen=True, kw_only=True)
class Look:
    """Look of one kind of node, distinct by colour, outline and words, so that it survives grey prints."""

    fill: str
    line: str
    style: str = "filled"
    pen_width: float = 1.2


def box(name: str, css_class: str, shape: str, look: Look, rows: Iterable[str], tooltip: str) -> str:
    """Make a node of that name and id, with table rows and a tooltip of any length."""
    head = f'<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="0" CELLPADDING="0" WIDTH="{CARD_WIDTH_PT}">'
    label = f"<{head}{''.join(rows)}</TABLE>>"
    return (
        f'  {name} [id="{name}", class="{css_class}", shape={shape}, style="{look.style}", fillcolor="{look.fill}", '
        f'color="{look.line}", penwidth={look.pen_width}, tooltip={quoted(tooltip)}, label={label}];'
    )


def badge_row(mark: str, colour: str, text: str, *, ink: str = INK, width: int = BADGE_WIDTH_PT) -> str:
    """Make a table row of a badge and one line of text."""
    words = font(f"\u00a0{text}", ink=ink, bold=True)
    rest = CARD_WIDTH_PT - width
    return f'<TR>{badge(mark, colour, width=width)}<TD ALIGN="LEFT" WIDTH="{rest}">{words}</TD></TR>'


def badge(mark: str, colour: str, *, width: int = BADGE_WIDTH_PT) -> str:
    """Make a table cell with a white mark on a colour."""
    return f'<TD WIDTH="{width}" HEIGHT="15" BGCOLOR="{colour}">{font(mark, ink="#FFFFFF", bold=True)}</TD>'


def text_rows(lines: Sequence[str], *, size: float = TEXT_SIZE_PT, ink: str = INK, bold: bool = False) -> str:
    """Make a table row per line, with a fixed height: Graphviz sets bold lines so tightly that Chinese ones touch."""
    height = round(size * LINE_HEIGHT)
    return "".join(
        f'<TR><TD COLSPAN="2" ALIGN="LEFT" HEIGHT="{height}">{font(line, size=size, ink=ink, bold=bold)}</TD></TR>'
        for line in lines
    )


def font(text: str, *, size: float = TEXT_SIZE_PT, ink: str, bold: bool = False) -> str:
    """Escape a text and set its size and ink."""
    # Entities are read before \N and the like are expanded, so only a doubled backslash stays one. A text of closing
    # brackets alone is a syntax error to Graphviz 2.43.
    escaped = html.escape(text).replace("\\", "\\\\").replace("]", "&#93;")
    weight = f"<B>{escaped}</B>" if bold else escaped
    return f'<FONT POINT-SIZE="{size}" COLOR="{ink}">{weight}</FONT>'


def box_lines(text: str, max_lines: int, *, size: float = TEXT_SIZE_PT, bold: bool = False) -> list[str]:
    """Wrap a text at the width of a box; the last line ends in "…" if the text was cut."""
    ems = CARD_WIDTH_PT / size / (1.08 if bold else 1)
    return wrap(text, ems, max_lines=max_lines, measure=glyph_ems)


def legend_label(entries: Sequence[tuple[str, str, str]], *totals: str) -> str:
    """Make a label that explains badges (mark, colour, words), with lines of totals below."""
    cells = "".join(
        f'{badge(mark, colour)}<TD ALIGN="LEFT" WIDTH="{_width_pt(words)}">{font(words, ink=INK)}</TD>'
        for mark, colour, words in entries
    )
    span = max(2 * len(entries), 1)
    below = "".join(f'<TR><TD COLSPAN="{span}" ALIGN="LEFT">{font(line, ink=FAINT_INK)}</TD></TR>' for line in totals)
    above = f"<TR>{cells}</TR>" if cells else ""
    return f'<<TABLE BORDER="0" CELLBORDER="0" CELLSPACING="3" CELLPADDING="2">{above}{below}</TABLE>>'


def _width_pt(line: str) -> int:
    return round(sum(map(glyph_ems, line)) * TEXT_SIZE_PT) + BADGE_WIDTH_PT


def quoted(text: str) -> str:
    """Quote a text of several lines as a DOT string for a tooltip.

    Graphviz decodes a tooltip's entities once and its backslashes twice (``dot`` 2.43 and graphviz-pure 16.1).
    """
    lines = printable(text).replace("\r\n", "\n").replace("\r", "\n").split("\n")
    return '"' + "\\n".join(html.escape(line).replace("\\", "\\" * 4) for line in lines) + '"'
