"""Tables of HTML pages as lines, a row each, with every value below the header of its column."""

from __future__ import annotations

from bisect import bisect_left
from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

from .html_hidden import attribute

if TYPE_CHECKING:
    from bs4.element import PageElement, Tag

    Steps = list[PageElement | str | Callable[[], None]]
    """Elements to read, texts to write, and what to do between."""

_MAX_NESTED = 20
_MAX_COLUMN_SPAN, _MAX_ROW_SPAN = 1_000, 65_534
"""As HTML has them."""
_MAX_COLUMNS = 1_000
"""Most columns of a row that spanning cells fill."""
_MAX_ROW_CHARACTERS = 1_000
_MAX_REPEATED = 2_000_000
"""Most characters of all cells repeated in the columns and rows that they span."""


@dataclass(kw_only=True)
class _Cell:
    text: str
    line: str
    """The text on one line."""
    columns: int
    rows: int
    has_table: bool
    has_code: bool


@dataclass(kw_only=True)
class _Row:
    part: int
    cells: list[_Cell] = field(default_factory=list)

    def is_layout(self) -> bool:
        """Return whether its cells are read as blocks: one holds a table, all hold lines of code, or they are long."""
        return (
            any(cell.has_table for cell in self.cells)
            or (bool(self.cells) and all(cell.has_code for cell in self.cells))
            or sum(len(cell.line) for cell in self.cells) > _MAX_ROW_CHARACTERS
        )


@dataclass(frozen=True, kw_only=True)
class _Span:
    """Columns of a row with one text."""

    start: int
    end: int
    rows: int
    """Number of rows from this one on that the cell reaches down to."""
    text: str
    is_first: bool = True
    """False in the rows below that of the cell."""


@dataclass(kw_only=True)
class _Table:
    own: list[str] = field(default_factory=list)
    """Text that stands in no cell, such as the caption."""
    rows: list[_Row] = field(default_factory=list)
    part: int = 0
    """Number of the head, body or foot to which the next row belongs."""
    head: int = -1
    """Number of the first head, which is shown above all; -1 without one."""
    foot: int = -1
    """Number of the first foot, which is shown below all; -1 without one."""
    cell: list[str] | None = None
    """Text of the open cell."""
    node: Tag | None = None
    """Element of the open cell."""
    has_table: bool = False
    """True if the open cell holds a table."""
    has_code: bool = False
    """True if the open cell holds several lines that are kept."""


class TableText:
    """A text with tables in it: what is written in a cell stands in its row.

    Cells and rows may lack their ends, so that the next one stands inside of them in the tree.
    """

    def __init__(self, lines_of: Callable[[str], Iterator[str]]) -> None:
        self._lines_of = lines_of
        self._page: list[str] = []
        self._tables: list[_Table] = []
        self._target = self._page
        self._left = _MAX_REPEATED

    def write(self, text: str) -> None:
        """Add to the open cell, or to the page."""
        self._target.append(text)

    def keep_lines(self) -> None:
        """Note that the open cell holds several lines that are kept."""
        if self._tables:
            self._tables[-1].has_code = True

    def text(self) -> str:
        """Return all that was written."""
        return "".join(self._page)

    def takes(self, node: Tag) -> bool:
        """Return whether an element is part of a table here; one that is nested too deep is a block."""
        return len(self._tables) < _MAX_NESTED if node.name == "table" else bool(self._tables)

    def steps(self, node: Tag, contents: Steps) -> Steps:
        """Return how to read a table, a row or a cell with these contents."""
        if node.name == "table":
            return [self._begin_table, *contents, self._end_table]
        if node.name in ("td", "th"):
            return [lambda: self._begin_cell(node), *contents, lambda: self._end_cell(node)]
        if node.name == "tr":
            return [self._begin_row, *contents]
        return [lambda: self._begin_part(node.name), *contents, lambda: self._begin_part("tbody")]

    def _begin_table(self) -> None:
        if self._tables:
            self._tables[-1].has_table = True
        self._tables.append(_Table())
        self._aim()

    def _end_table(self) -> None:
        self._close_cell()
        table = self._tables.pop()
        self._aim()
        order = {table.head: 0, table.foot: 2}
        rows = self._rows_of(sorted(table.rows, key=lambda row: order.get(row.part, 1)))
        self.write("\n" + "".join(table.own) + "\n" + "".join(f"{row}\n" for row in rows) + "\n")

    def _begin_part(self, name: str) -> None:
        self._close_cell()
        table = self._tables[-1]
        table.part += 1
        if name == "thead" and table.head < 0:
            table.head = table.part
        elif name == "tfoot" and table.foot < 0:
            table.foot = table.part

    def _begin_row(self) -> None:
        self._close_cell()
        self._tables[-1].rows.append(_Row(part=self._tables[-1].part))

    def _begin_cell(self, node: Tag) -> None:
        self._close_cell()
        table = self._tables[-1]
        if not table.rows:
            table.rows.append(_Row(part=table.part))
        table.cell, table.node, table.has_table, table.has_code = [], node, False, False
        self._aim()

    def _end_cell(self, node: Tag) -> None:
        if self._tables and self._tables[-1].node is node:
            self._close_cell()

    def _close_cell(self) -> None:
        table = self._tables[-1]
        if table.cell is None or table.node is None:
            return
        text = "".join(table.cell).strip()
        cell = _Cell(
            text=text,
            line=" ".join(filter(str.strip, self._lines_of(text))),
            columns=_span(table.node, "colspan", _MAX_COLUMN_SPAN),
            rows=_span(table.node, "rowspan", _MAX_ROW_SPAN),
            has_table=table.has_table,
            has_code=table.has_code,
        )
        table.rows[-1].cells.append(cell)
        table.cell = table.node = None
        self._aim()

    def _aim(self) -> None:
        table = self._tables[-1] if self._tables else None
        self._target = self._page if table is None else table.own if table.cell is None else table.cell

    def _rows_of(self, rows: list[_Row]) -> Iterator[str]:
        placed: list[list[_Span]] = []
        above: list[_Span] = []
        part = 0
        for row in rows:
            if row.part != part or row.is_layout():
                above, part = [], row.part
            above = [] if row.is_layout() else _placed(row.cells, above)
            placed.append(above)
        # Columns in which no cell begins have no width.
        columns = sorted({span.start for spans in placed for span in spans})
        for row, spans in zip(rows, placed, strict=True):
            if row.is_layout():
                yield "\n".join(cell.text for cell in row.cells)
            elif any(texts := self._texts(spans, columns)):
                yield " | ".join(texts)

    def _texts(self, spans: list[_Span], columns: list[int]) -> list[str]:
        """Return the texts of a row by column."""
        texts: list[str] = []
        for span in spans:
            first = bisect_left(columns, span.start)
            texts += [""] * (first - len(texts))
            for at in range(len(texts), bisect_left(columns, span.end)):
                is_own = span.is_first and at == first
                texts.append(span.text if is_own else self._repeated(span.text))
        return texts

    def _repeated(self, text: str) -> str:
        self._left -= len(text) + 3
        return text if self._left > 0 else ""


def _placed(cells: list[_Cell], above: list[_Span]) -> list[_Span]:
    """Return the columns of the cells of a row, from the left, with those that reach down from the row above."""
    spans = [replace(span, rows=span.rows - 1, is_first=False) for span in above if span.rows > 1]
    waiting = deque(spans)
    start = 0
    for cell in cells:
        while waiting and waiting[0].start <= start:
            start = max(start, waiting.popleft().end)
        end = start + max(1, min(cell.columns, _MAX_COLUMNS - start))
        spans.append(_Span(start=start, end=end, rows=cell.rows, text=cell.line))
        start = end
    return sorted(spans, key=lambda span: span.start)


def _span(node: Tag, name: str, most: int) -> int:
    text = attribute(node, name).strip()[:6]
    if not text.isdecimal():
        return 1
    # A cell of no rows reaches to the end of its part of the table.
    return min(int(text), most) or (most if name == "rowspan" else 1)
