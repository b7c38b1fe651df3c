"""Tables of HTML pages as lines, a row each, with every value below the header of its column."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .html_hidden import attribute

if TYPE_CHECKING:
    from bs4.element import PageElement, Tag

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
    columns: int
    rows: int
    has_table: bool


@dataclass(kw_only=True)
class _Table:
    own: list[str] = field(default_factory=list)
    """Text that stands in no cell, such as the caption."""
    rows: list[list[_Cell]] = field(default_factory=list)
    cell: list[str] | None = None
    """Text of the open cell."""
    node: Tag | None = None
    """Element of the open cell."""
    has_table: bool = False
    """True if the open cell holds a table."""


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

    def text(self) -> str:
        """Return all that was written."""
        return "".join(self._page)

    def takes(self, node: Tag) -> bool:
        """Return whether an element is part of a table here; one that is nested too deep is a block."""
        return len(self._tables) < _MAX_NESTED if node.name == "table" else bool(self._tables)

    def steps(self, node: Tag) -> list[PageElement | str | Callable[[], None]]:
        """Return how to read a table, a row or a cell."""
        if node.name == "table":
            return [self._begin_table, *node.contents, self._end_table]
        if node.name in ("td", "th"):
            return [lambda: self._begin_cell(node), *node.contents, lambda: self._end_cell(node)]
        if node.name == "tr":
            return [self._begin_row, *node.contents]
        return list(node.contents)

    def _begin_table(self) -> None:
        if self._tables:
            self._tables[-1].has_table = True
        self._tables.append(_Table())
        self._aim()

    def _end_table(self) -> None:
        self._close_cell()
        table = self._tables.pop()
        self._aim()
        rows = self._rows_of(table.rows)
        self.write("\n" + "".join(table.own) + "\n" + "".join(f"{row}\n" for row in rows) + "\n")

    def _begin_row(self) -> None:
        self._close_cell()
        self._tables[-1].rows.append([])

    def _begin_cell(self, node: Tag) -> None:
        self._close_cell()
        table = self._tables[-1]
        if not table.rows:
            table.rows.append([])
        table.cell, table.node, table.has_table = [], node, False
        self._aim()

    def _end_cell(self, node: Tag) -> None:
        if self._tables and self._tables[-1].node is node:
            self._close_cell()

    def _close_cell(self) -> None:
        table = self._tables[-1]
        if table.cell is None or table.node is None:
            return
        cell = _Cell(
            text="".join(table.cell).strip(),
            columns=_span(table.node, "colspan", _MAX_COLUMN_SPAN),
            rows=_span(table.node, "rowspan", _MAX_ROW_SPAN),
            has_table=table.has_table,
        )
        table.rows[-1].append(cell)
        table.cell = table.node = None
        self._aim()

    def _aim(self) -> None:
        table = self._tables[-1] if self._tables else None
        self._target = self._page if table is None else table.own if table.cell is None else table.cell

    def _rows_of(self, rows: list[list[_Cell]]) -> Iterator[str]:
        spanning: dict[int, tuple[int, str]] = {}  # by column: rows that are left, text
        for cells in rows:
            lines = [" ".join(filter(str.strip, self._lines_of(cell.text))) for cell in cells]
            if any(cell.has_table for cell in cells) or sum(map(len, lines)) > _MAX_ROW_CHARACTERS:
                spanning = {}
                yield "\n".join(cell.text for cell in cells)
                continue
            row, spanning = self._placed(cells, lines, spanning)
            if any(row):
                yield " | ".join(row)

    def _placed(
        self, cells: list[_Cell], lines: list[str], spanning: dict[int, tuple[int, str]]
    ) -> tuple[list[str], dict[int, tuple[int, str]]]:
        """Return the texts of a row by column, and the cells that reach into the next one."""
        row: list[str] = []
        below = {column: (rows - 1, text) for column, (rows, text) in spanning.items() if rows > 1}

        def from_above() -> None:
            while len(row) in spanning:
                row.append(self._repeated(spanning[len(row)][1]))

        for cell, line in zip(cells, lines, strict=True):
            from_above()
            room = max(1, _MAX_COLUMNS - len(row))
            for number in range(min(cell.columns, room) if self._left > 0 else 1):
                if cell.rows > 1 and len(row) < _MAX_COLUMNS:
                    below[len(row)] = (cell.rows - 1, line)
                row.append(self._repeated(line) if number else line)
        from_above()
        return row, below

    def _repeated(self, text: str) -> str:
        self._left -= len(text) + 3
        return text if self._left > 0 else ""


def _span(node: Tag, name: str, most: int) -> int:
    text = attribute(node, name).strip()[:6]
    if not text.isdecimal():
        return 1
    # A cell of no rows reaches to the end of its part of the table.
    return min(int(text), most) or (most if name == "rowspan" else 1)
