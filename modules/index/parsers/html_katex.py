"""Formulas that KaTeX writes as boxes of HTML, where their page has no MathML beside them."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from typing import TYPE_CHECKING

from ...reading.scripts import APART
from .html_formulas import LEVEL, LOWERED, RAISED, elements_of
from .html_hidden import attribute

if TYPE_CHECKING:
    from bs4.element import PageElement, Tag

    from .html_formulas import FormulaSteps

_HEIGHT = re.compile(r"(?:^|[;\s])top:\s?-([0-9]{1,3}(?:\.[0-9]{1,9})?)em")
_STRUT = re.compile(r"height:\s?([0-9]{1,3}(?:\.[0-9]{1,9})?)em")
_COMMON_STRUT = 2.7
_LEVEL = 0.01
"""Heights of letters up to which a row stands on its line."""
_MOST_AROUND = 8
"""Most elements around the rows of a box, and around the text of a row."""


def katex_steps(node: Tag) -> FormulaSteps | None:
    """Return the steps of a box whose rows stand above each other; None for any other element."""
    for name in attribute(node, "class").split():
        if name in _BOXES:
            return _BOXES[name](node)
    return None


@dataclass(frozen=True, kw_only=True)
class _Row:
    rise: float
    """How far it stands above its line, in heights of letters."""
    text: Tag
    is_line: bool


def _rows(node: Tag) -> Sequence[_Row]:
    """Return the rows of a box, from above; none if it has another form."""
    around = node
    for _ in range(_MOST_AROUND):
        if attribute(around, "class") == "vlist":
            break
        around = next(iter(elements_of(around)), around)
    rows: list[_Row] = []
    for each in elements_of(around):
        if found := _HEIGHT.search(attribute(each, "style")):
            classes = {attribute(part, "class") for part in elements_of(each)}
            strut = _STRUT.search(next((attribute(part, "style") for part in elements_of(each)), ""))
            rise = float(found[1]) - (float(strut[1]) if strut else _COMMON_STRUT)
            rows.append(_Row(rise=rise, text=each, is_line="frac-line" in classes or "hide-tail" in classes))
    return sorted(rows, key=lambda row: -row.rise)


def _script_steps(node: Tag) -> FormulaSteps:
    """Return the steps of a box whose rows are scripts, the lower one first, behind the row that is their base."""
    rows = _rows(node)
    steps: FormulaSteps = [row.text for row in rows if abs(row.rise) < _LEVEL]
    for row in reversed(rows):
        if abs(row.rise) >= _LEVEL:
            steps += [RAISED if row.rise > 0 else LOWERED, row.text, LEVEL]
    return steps or [*node.contents]


def _fraction_steps(node: Tag) -> FormulaSteps:
    rows = _rows(node)
    texts = [row.text for row in rows if not row.is_line]
    if len(texts) != 2:
        return [*node.contents]
    if len(rows) == 2:
        return [texts[0], "; ", texts[1]]
    return [APART, *_in_parentheses(texts[0]), "/", *_in_parentheses(texts[1]), APART]


def _root_steps(node: Tag) -> FormulaSteps:
    *degree, box = elements_of(node) or [node]
    inner = [row.text for row in _rows(box) if not row.is_line]
    raised: FormulaSteps = [APART, RAISED, degree[0], LEVEL] if degree else []
    return [*raised, "√(", *inner, ")"] if inner else [*node.contents]


def _matrix_steps(node: Tag) -> FormulaSteps:
    """Return the steps of a matrix, which is written column by column."""
    columns = [_rows(each) for each in elements_of(node) if attribute(each, "class").startswith("col-align")]
    steps: FormulaSteps = []
    for cells in zip_longest(*columns):
        steps.append("; " * bool(steps))
        for at, cell in enumerate(cells):
            steps += [", " * bool(at), cell.text if cell else ""]
    return steps or [*node.contents]


def _in_parentheses(row: Tag) -> FormulaSteps:
    """Return the steps of a part of a fraction, which needs no parentheses if it is one number or name."""
    part: PageElement = row
    for _ in range(_MOST_AROUND):
        if isinstance(part, str):
            return [row] if part.isalnum() else ["(", row, ")"]
        inner = getattr(part, "contents", ())
        parts = [each for each in inner if isinstance(each, str) or getattr(each, "contents", None)]
        if len(parts) != 1:
            break
        part = parts[0]
    return ["(", row, ")"]


_BOXES: Mapping[str, Callable[[Tag], FormulaSteps]] = {
    **dict.fromkeys(("msupsub", "op-limits"), _script_steps),
    "mfrac": _fraction_steps,
    "sqrt": _root_steps,
    "mtable": _matrix_steps,
}
"""How boxes are read, by a class of theirs."""
