"""Tables in LaTeX: rules of booktabs, every special character escaped, nothing to load besides booktabs."""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Iterator, Sequence

from ...modules.storage.texts import printable
from .table import Cell, Table

_ESCAPED = {
    "\\": r"\textbackslash{}",
    "{": r"\{",
    "}": r"\}",
    "$": r"\$",
    "&": r"\&",
    "#": r"\#",
    "%": r"\%",
    "_": r"\_",
    "^": r"\textasciicircum{}",
    "~": r"\textasciitilde{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "|": r"\textbar{}",
    '"': "''",
    "`": "{`}",
    "[": "{[}",  # behind a line break it would begin an option
    "]": "{]}",
    "*": "{*}",
    "-": "{-}",  # "--" would be a dash
    "\N{NO-BREAK SPACE}": "~",
    "\N{MINUS SIGN}": "$-$",
}
_TABLE = str.maketrans(_ESCAPED)
_COMMENT_COLUMNS = 100
_LAST_OF_PDFLATEX = "\N{LATIN SMALL LETTER Z WITH CARON}"
"""Beyond Latin letters, pdfLaTeX has no glyphs without further packages."""


def latex_text(text: str) -> str:
    r"""Escape a text.

    >>> latex_text("50 % of a_b & {c}")
    '50 \\% of a\\_b \\& \\{c\\}'
    """
    return " ".join(printable(text).split()).translate(_TABLE)


def latex_table(table: Table) -> str:
    r"""Write a table as a float with caption and label ``tab:NAME``; intervals and notes stand in small type below.

    It compiles with ``\usepackage{booktabs}`` alone.
    """
    columns = "l" * table.texts + "r" * (len(table.head) - table.texts)
    lines = [
        r"\begin{table}[tb]",
        r"\centering",
        rf"\caption{{{latex_text(table.caption)}}}",
        rf"\label{{tab:{table.name}}}",
        r"\footnotesize",
        r"\setlength{\tabcolsep}{4pt}",
        rf"\begin{{tabular}}{{@{{}}{columns}@{{}}}}",
        r"\toprule",
        _row(map(latex_text, table.head)),
        r"\midrule",
        *(line for row in table.rows for line in _lines(row)),
        r"\bottomrule",
        r"\end{tabular}",
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def latex_document(tables: Sequence[Table], *, made_of: str = "") -> str:
    r"""Write tables one after the other, to be read with ``\input``; ``made_of`` is a comment before them."""
    body = "\n".join(map(latex_table, tables))
    hint = "% Needs \\usepackage{booktabs}.\n"
    if any(letter.isalpha() and letter > _LAST_OF_PDFLATEX for letter in body):
        hint += "% Holds letters that pdfLaTeX lacks: use XeLaTeX or LuaLaTeX with a font that has them.\n"
    comment = "".join(f"% {line}\n" for line in textwrap.wrap(printable(made_of), _COMMENT_COLUMNS))
    return f"{comment}{hint}{body}"


def _lines(row: Sequence[Cell]) -> Iterator[str]:
    yield _row(_marked(cell) for cell in row)
    around = [_around(cell) for cell in row]
    if any(around):
        yield _row(rf"{{\scriptsize {latex_text(each)}}}" if each else "" for each in around)


def _around(cell: Cell) -> str:
    interval = f"[{', '.join(cell.bounds)}]" if cell.bounds else ""
    return ", ".join(filter(None, (interval, cell.note)))


def _marked(cell: Cell) -> str:
    return latex_text(cell.text) + (rf"\textsuperscript{{{latex_text(cell.marks)}}}" if cell.marks else "")


def _row(cells: Iterable[str]) -> str:
    return f"{' & '.join(cells)} \\\\"
