"""Tables as browsers print them, which of their values stand elsewhere in the text of a page, and what is no table."""

from __future__ import annotations

import random
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path

from tests.browser import CHROMIUM, HOW_TO_INSTALL

_NAMES = (
    "Boiler",
    "Pump",
    "Valve",
    "Gate",
    "Crane",
    "Heron",
    "Reed",
    "Flange",
    "Gasket",
    "Lever",
    "Copper",
    "Harbour",
    "Bridge",
    "Tower",
    "Anchor",
    "Rudder",
)
_HEADS = (
    "P",
    "T",
    "Q",
    "kg",
    "bar",
    "Flow",
    "Head",
    "Power",
    "Year",
    "Mass",
    "Length",
    "DN",
    "kW",
    "rpm",
    "Price",
    "Stock",
)
_GROUPS = "Inlet", "Outlet", "Summer", "Winter", "Inside", "Outside"
FAMILIES = "Liberation", "DejaVu"
"""Fonts that tables are printed in, each with and without serifs; letters of the second are wider and kerned more."""
_FONTS = "16px '{} Serif'", "14px '{} Sans'", "12px '{} Sans'", "16px '{} Sans'"
_ABOVE = "The herons of the lake were counted in the spring of that year by Ada and her brother, who had a boat."
_BELOW = "Nobody counted them again before the autumn of the year after that one, when the boat was sold."


@dataclass(frozen=True, kw_only=True)
class Style:
    """How tables look; what is not said is chosen at random for each."""

    paddings: tuple[int, int] = (1, 12)
    """Least and most padding of the cells, in pixels."""
    is_ruled: bool = False
    turn: int = 0
    """Degrees by which the table is turned clockwise."""
    is_wide: bool = False
    """True if the table is as wide as the page."""
    is_wrapped: bool = False
    """True if first cells have several lines."""
    is_grouped: bool = False
    """True if heads stand over several columns."""
    are_heads_turned: bool = False
    is_alone: bool = False
    """True if nothing else is on the page."""


@dataclass(frozen=True, kw_only=True)
class PrintedTable:
    """A table as HTML, with what stands in it."""

    html: str
    groups: Sequence[str]
    """The head over each column; none if there are no such heads."""
    heads: Sequence[str]
    rows: Sequence[Sequence[str]]

    def misplaced_in(self, text: str) -> list[str]:
        """Return the values that do not stand under their heads, in the row of their first cell."""
        lines = [[" ".join(cell.split()) for cell in line.split("|")] for line in text.splitlines()]
        known = {cell for row in self.rows for cell in row}
        heads = next((line for line in lines if line[-1] == self.heads[-1] and not known & set(line)), [])
        above = [line for line, below in pairwise([line for line in lines if any(line)]) if below is heads]
        groups = above[0] if self.groups and above else []
        return [
            value
            for row in self.rows
            for column, value in enumerate(row)
            if column
            and value
            and not any(
                line[0] == row[0]
                and line[column : column + 1] == [value]
                and heads[column : column + 1] == [self.heads[column]]
                and (not self.groups or groups[column : column + 1] == [self.groups[column]])
                for line in lines
            )
        ]


def printed(pages: Sequence[str]) -> bytes:
    """Return a PDF file of HTML pages as Chromium prints it."""
    assert CHROMIUM is not None, HOW_TO_INSTALL
    with tempfile.TemporaryDirectory() as folder:
        page, done = Path(folder, "page.html"), Path(folder, "page.pdf")
        whole = "".join(f'<section style="page-break-after:always">{page}</section>' for page in pages)
        page.write_text(f'<meta charset="utf-8">{whole}', encoding="utf-8")
        flags = ["--headless", "--no-sandbox", "--disable-gpu", "--no-first-run", "--no-pdf-header-footer"]
        subprocess.run(
            [CHROMIUM, *flags, f"--user-data-dir={folder}/profile", f"--print-to-pdf={done}", page.as_uri()],
            capture_output=True,
            check=True,
            timeout=180,
        )
        return done.read_bytes()


def tables_of(style: Style, count: int, *, seed: int, family: str) -> Iterator[PrintedTable]:
    """Yield tables of a style with 2 to 6 columns, 3 to 8 rows and empty cells at any places."""
    chance = random.Random(seed)
    for _ in range(count):
        yield _table(style, chance, family)


def _table(style: Style, chance: random.Random, family: str) -> PrintedTable:
    columns = chance.randint(3 if style.is_grouped or style.are_heads_turned else 2, 6)
    heads = ["Model", *chance.sample(_HEADS, columns - 1)]
    values = iter(chance.sample(range(10, 10_000), 60))
    rows = [
        [
            _first(style, chance, number),
            *("" if chance.random() < 0.2 else _value(chance, next(values)) for _ in heads[1:]),
        ]
        for number in range(chance.randint(3, 8))
    ]
    groups, spans = _groups(columns, chance) if style.is_grouped else ([], [])
    look = f"padding:{chance.randint(*style.paddings)}px;{'border:1px solid black;' if style.is_ruled else ''}"
    upright = f"vertical-align:{chance.choice(['middle', 'top', 'bottom', 'baseline'])};"
    sides = [f"text-align:{chance.choice(['left', 'right', 'center'])};" for _ in heads]
    sides_of_heads = chance.choice([sides, [""] * columns])

    def cell(tag: str, column: int, text: str) -> str:
        side = sides_of_heads[column] if tag == "th" else sides[column] if column else ""
        width = "width:90px;" if style.is_wrapped and not column else "white-space:nowrap;"
        if style.are_heads_turned and tag == "th" and column:
            text = f'<span style="writing-mode:vertical-rl;transform:rotate(180deg)">{text}</span>'
        return f'<{tag} style="{look}{upright}{side}{width}">{text}</{tag}>'

    over = "".join(f'<th colspan={span} style="{look}">{text}</th>' for text, span in spans)
    lines = [f'<th style="{look}"></th>{over}'] if over else []
    lines += ["".join(cell("th", *each) for each in enumerate(heads))]
    lines += ["".join(cell("td", *each) for each in enumerate(row)) for row in rows]
    table = "".join(f"<tr>{line}</tr>" for line in lines)
    table = f'<table style="border-collapse:collapse;{"width:100%" if style.is_wide else ""}">{table}</table>'
    if style.turn:
        size = "transform-origin:300px 300px;width:600px;height:600px"
        table = f'<div style="height:600px"><div style="transform:rotate({style.turn}deg);{size}">{table}</div></div>'
    page = table if style.is_alone else f"<p>{_ABOVE}</p>{table}<p>{_BELOW}</p>"
    return PrintedTable(
        html=f'<div style="font:{chance.choice(_FONTS).format(family)}">{page}</div>',
        groups=groups,
        heads=heads,
        rows=rows,
    )


def _first(style: Style, chance: random.Random, number: int) -> str:
    words = chance.sample(_NAMES, chance.randint(2, 4) if style.is_wrapped and chance.random() < 0.6 else 1)
    return f"{' '.join(words)}-{number}"


def _value(chance: random.Random, number: int) -> str:
    """Return a text that stands once in a table."""
    return chance.choice([f"{number}", f"{number / 100:.2f}", f"{number} {chance.choice(['ab', 'cd', 'ef'])}"])


def _groups(columns: int, chance: random.Random) -> tuple[list[str], list[tuple[str, int]]]:
    """Return the head over each column, and each such head with the number of its columns."""
    spans: list[tuple[str, int]] = []
    left = columns - 1
    for name in chance.sample(_GROUPS, len(_GROUPS)):
        if left:
            spans.append((name, min(left, chance.choice([1, 2, 2, 3]))))
            left -= spans[-1][1]
    return ["", *(text for text, span in spans for _ in range(span))], spans


_PROSE = (
    "The heron stood in the shallow water for an hour without a single step and then took the largest of the "
    "sticklebacks before it flew away over the reeds. Copper prices fell again last Tuesday because the harbour in the "
    "north was closed for repairs to both of its cranes and no ship could be unloaded there. "
)
_CHAPTERS = [("1.1 Introduction", 1), ("1.2 The heron and its food", 12), ("2.1 Copper", 20), ("2.2 Harbours", 33)]
_CALLS = "f(x)", "g(y)", "h(z)", "k(w)"
NO_TABLES = {
    "two columns": f'<div style="columns:2"><p>{_PROSE * 3}</p><p>{_PROSE * 2}</p></div>',
    "two justified columns": f'<div style="columns:2;text-align:justify"><p>{_PROSE * 3}</p><p>{_PROSE * 2}</p></div>',
    "two justified columns of letters placed one by one": '<div style="font:14.4px sans-serif;columns:2;'
    f'text-align:justify"><h2>A <i>short</i> heading</h2><p>{_PROSE} <code>x</code> <b>or</b> {_PROSE * 2}</p></div>',
    "three columns": f'<div style="columns:3;font-size:12px"><p>{_PROSE * 6}</p></div>',
    "bullets": "<ul><li>apples<li>pears from the north<li>plums</ul>",
    "numbers": f"<ol>{'<li>apples<li><b>pears</b> from the north<li>plums' * 4}</ol>",
    "code in a list": f"<ul>{''.join(f'<li><code>{call}</code> is what you call' for call in _CALLS * 2)}</ul>",
    "addresses": "<p>Ada Byron<br>12 Main Street<br>London W1 4AB<p>Charles Babbage<br>5 Park Lane<br>Devon",
    "labels": "<p>Tel.: 555 1234<br>Fax: 555 4321<br>Web: example.org",
    "a letter": f'<div style="float:right">London, 5 May 1840</div><p>Ada Byron<br>12 Main Street<p>{_PROSE}',
    "contents with typed dots": "".join(f"<p>{text} {'.' * (60 - len(text))} {page}" for text, page in _CHAPTERS),
    "contents with a line of dots": "".join(
        f'<div style="display:flex"><span>{text}</span><span style="flex:1;overflow:hidden;white-space:nowrap">'
        f"{'. ' * 200}</span><span>{page}</span></div>"
        for text, page in _CHAPTERS
    ),
    "code in colours": "<pre>"
    + "".join(f"<b>def</b> <i>{name}</i>(x):\n    <b>return</b> <i>x</i> + 1\n" for name in ("fill", "push", "take"))
    + "</pre>",
    "a poem": "<p>The heron stood<br>in water cold<br>and took a fish<br>of scales of gold",
    "formulas": "<p align=center><i>a</i><sup>2</sup> + <i>b</i><sup>2</sup> = <i>c</i><sup>2</sup>" * 4,
    "references": "".join(
        f'<div style="display:flex"><div style="width:40px">[{number}]</div><div>{_PROSE[:120]}</div></div>'
        for number in range(1, 5)
    ),
    "bold words": " ".join(f"<b>{word}</b>" if at % 3 == 0 else word for at, word in enumerate(_PROSE.split() * 2)),
}
"""Pages by what they have, none of which is a table."""


def spaced(family: str, spacing: str) -> tuple[str, Sequence[str]]:
    """Return a page with letters spaced by a length of CSS, and what is read there."""
    sentence = "The herons were counted in the spring by Ada 12 345 times."
    style = f"letter-spacing:{spacing}"
    page = (
        f"<div style=\"font-family:'{family} Sans'\"><h1 style='{style}'>Report of the Harbour</h1><p>{_PROSE}"
        f"<p style='{style}'>{sentence}<p style='{style};text-transform:uppercase'>In <b>all</b> 1998 of them.</div>"
    )
    return page, ("Report of the Harbour", sentence, "IN ALL 1998 OF THEM.")


_SIMPLE = [
    ["Boiler", "12.5", "", "40"],
    ["Pump long name", "", "7", "52"],
    ["Valve", "3", "8", "6"],
    ["Gate", "4", "", "61"],
]


def _simple(
    style: str = "border-collapse:collapse",
    *,
    cells: str = "padding:3px",
    heads: Sequence[str] = ("Model", "P", "T", "kg"),
    rows: Sequence[Sequence[str]] = _SIMPLE,
    below: str = "",
) -> str:
    lines = [f"<th style='{cells}'>" + f"<th style='{cells}'>".join(heads)]
    lines += [f"<td style='{cells}'>" + f"<td style='{cells}'>".join(row) for row in rows]
    return f"<table style='{style}'>{''.join(f'<tr>{line}</tr>' for line in lines)}{below}</table>"


_LEVER = "".join(f"<td style='padding:3px'>{cell}" for cell in ("Lever", "", "9", "2"))
_READ = "Model | P | T | kg Boiler | 12.5 | | 40 Pump long name | | 7 | 52 Valve | 3 | 8 | 6 Gate | 4 | | 61"
OTHER_TABLES = {
    "space between the cells": (_simple("", cells="padding:1px"), _READ),
    "letters placed one by one": (f"<div style='font-size:14.4px'>{_simple()}</div>", _READ),
    "letters placed one by one, more space": (
        f"<div style='font-size:14.4px'>{_simple(cells='padding:8px')}</div>",
        _READ,
    ),
    "below letters placed one by one": (
        f"<p style='font:14.4px sans-serif;text-align:justify'>{_PROSE * 2}</p>{_simple()}",
        _READ,
    ),
    "lines below the rows": (_simple(cells="padding:3px;border-bottom:1px solid gray"), _READ),
    "letters of one width": (f"<div style='font-family:monospace'>{_simple()}</div>", _READ),
    "above a paragraph whose last line is short": (
        f"{_simple(cells='padding:5px')}<p>{_BELOW}<br>It was sold.",
        f"{_READ} {_BELOW} It was sold.",
    ),
    "a row over several columns below": (
        _simple(below="<tr><td colspan=3>Total of all of these machines<td>159</tr>"),
        f"{_READ} Total of all of these machines 159",
    ),
    "a heading among the rows": (
        _simple(below=f"<tr><th colspan=4>Fittings and other parts</th></tr>{_LEVER}"),
        f"{_READ} Fittings and other parts Lever | | 9 | 2",
    ),
    "two below each other": (
        _simple()
        + "<br>"
        + _simple(heads=["Site", "Year", "Staff", "Cost"], rows=[["North", "1998", "", "7"], ["South", "", "5", "6"]]),
        f"{_READ} Site | Year | Staff | Cost North | 1998 | | 7 South | | 5 | 6",
    ),
    "powers": (
        _simple(
            rows=[["Boiler", "10<sup>6</sup>", "", "40"], ["Pump", "", "7<sup>2</sup>", "52"], ["Valve", "3", "8", "6"]]
        ),
        "Model | P | T | kg Boiler | 10^6 | | 40 Pump | | 7^2 | 52 Valve | 3 | 8 | 6",
    ),
    "Chinese": (
        _simple(
            heads=["型号", "压力", "温度", "重量"],
            rows=[["锅炉", "12.5", "", "40"], ["水泵", "", "7", "52"], ["阀门", "3", "8", "6"]],
        ),
        "型号 | 压力 | 温度 | 重量 锅炉 | 12.5 | | 40 水泵 | | 7 | 52 阀门 | 3 | 8 | 6",
    ),
    "no head over the first cells": (_simple(heads=["", "P", "T", "kg"]), _READ.replace("Model ", "", 1)),
    "cells of one letter": (
        _simple(
            heads=["Site", *"ABCDEF"], rows=[[name, *"123456"] for name in ("North", "South", "West", "East", "Sea")]
        ),
        "Site | A | B | C | D | E | F North | 1 | 2 | 3 | 4 | 5 | 6 South | 1 | 2 | 3 | 4 | 5 | 6 West | 1",
    ),
    "digits one pixel apart": (
        _simple(cells="padding:0 1px", heads="123456", rows=["987654", "456123", "741852"]).replace("th", "td"),
        "1 | 2 | 3 | 4 | 5 | 6 9 | 8 | 7 | 6 | 5 | 4 4 | 5 | 6 | 1 | 2 | 3 7 | 4 | 1 | 8 | 5 | 2",
    ),
    "letters one pixel apart": (
        _simple(
            cells="padding:0 1px",
            heads=["Site", *"ABCD"],
            rows=[["North", *"9876"], ["South sea", *"4561"], ["x", *"7418"]],
        ),
        "Site | A | B | C | D North | 9 | 8 | 7 | 6 South sea | 4 | 5 | 6 | 1 x | 7 | 4 | 1 | 8",
    ),
    "units without heads": (
        _simple(
            heads=["", "2023", "", "2024", ""],
            rows=[
                ["Revenue", "1200", "kEUR", "1350", "kEUR"],
                ["Loss", "30", "t", "50", "kg"],
                ["Cars", "4", "t", "6", "t"],
            ],
        ),
        " | 2023 | | 2024 Revenue | 1200 | kEUR | 1350 | kEUR Loss | 30 | t | 50 | kg Cars | 4 | t | 6 | t",
    ),
    "from right to left, an empty cell": (
        "<div dir=rtl>"
        + _simple(heads=["דגם", "לחץ", "חום"], rows=[["אב", "12", ""], ["גד", "", "7"], ["הו", "3", "8"]])
        + "</div>",
        "דגם לחץ חום אב 12 גד",
    ),
    "lines broken by hand": (
        _simple(rows=[["Boiler<br>KV-7", "12.5", "", "40"], ["Pump", "", "7", "52"], ["Valve<br>KV-9", "3", "8", "6"]]),
        "Model | P | T | kg Boiler KV-7 | 12.5 | | 40 Pump | | 7 | 52 Valve KV-9 | 3 | 8 | 6",
    ),
}
"""Tables by what is special about them, each with how it is read; line ends count as spaces."""
