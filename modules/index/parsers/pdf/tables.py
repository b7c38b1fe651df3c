"""Rows of tables on a page, each as a line with all its cells."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import groupby, pairwise
from statistics import median

from .directions import has_right_to_left
from .grids import Grid, areas_of
from .lines import joined_lines
from .pictures import THIN, Rule
from .rows import LEAST_WIDTH, PARAGRAPH, Row, Segment, Span, divided, is_from_right, rows_of
from .words import Word

_MOST_CHARACTERS = 1_000
"""Most characters of a cell; a table with more in one is a layout."""
_MOST_REPEATED = 200
"""Most characters of a cell that is repeated in the columns and rows that it spans."""
_NARROW = 12.0
"""Most width of a column without words at the side of a table, beyond which only ends of its lines reach."""
_FEW_LINES = 2
_NUMBER = re.compile(r"[+\-\u2212]?\d[\d.,:%\u2013-]*")
_BLANK = 0.25
"""Usual width of a space, in heights of letters."""


@dataclass(frozen=True, eq=False)
class _Area:
    """Rows and columns of a grid that no line parts, with the words in them."""

    rows: range
    columns: range
    words: Sequence[Word]


def table_lines(grid: Grid, words: Sequence[Word]) -> list[str] | None:
    """Return the lines of a table; None if the grid is none, such as a frame around paragraphs.

    A short cell stands in all columns and rows that it spans. Where no lines part the rows, each line is a row, unless
    its cells are those of broken lines.
    """
    placed: defaultdict[tuple[int, int], list[Word]] = defaultdict(list)
    falling = [-top for top in grid.tops]
    for word in words:
        row = bisect_right(falling, -(word.base + 0.3 * word.size)) - 1
        column = bisect_right(grid.lefts, (word.left + word.right) / 2) - 1
        placed[min(max(row, 0), len(falling) - 2), min(max(column, 0), len(grid.lefts) - 2)].append(word)
    used = {column for _, column in placed}
    widths = [right - left for left, right in pairwise(grid.lefts)]
    columns = range(
        int(0 not in used and widths[0] < _NARROW),
        len(widths) - int(len(widths) - 1 not in used and widths[-1] < _NARROW),
    )
    if len(falling) == 2 and len(rows_of(words)) == 1:  # a shaded row of a table
        return None
    from_right = has_right_to_left(words) and is_from_right(rows_of(words))
    cells = _Cells(grid, placed, columns, from_right=from_right)
    return cells.lines() if cells.are_short() else None


class _Cells:
    """The cells of a table, by row and column."""

    def __init__(
        self, grid: Grid, placed: dict[tuple[int, int], list[Word]], columns: range, *, from_right: bool
    ) -> None:
        self._grid, self._columns, self._from_right = grid, columns, from_right
        self._at: dict[tuple[int, int], _Area] = {}
        size = median(word.size for words in placed.values() for word in words)
        self._padding = (1.0 if grid.down is not None else 2.0) * size
        for rows, across in areas_of(grid, columns):
            inner = [word for row in rows for column in across for word in placed.get((row, column), ())]
            for area in self._parts(_Area(rows, across, inner)):
                self._at.update({(row, column): area for row in area.rows for column in area.columns})
        self._texts = {id(area): cell_text(area.words, from_right=from_right) for area in self._at.values()}

    def are_short(self) -> bool:
        return max(map(len, self._texts.values())) <= _MOST_CHARACTERS

    def _parts(self, area: _Area) -> Iterator[_Area]:
        """Yield what a reader sees as cells where no line parts them: words below headers, one line a row."""
        if len(area.rows) == len(area.columns) == 1 or not area.words:
            yield area
            return
        lines = rows_of(area.words)
        lefts, tops = self._grid.lefts, self._grid.tops

        def column_of(left: float, right: float) -> int:
            first, last = bisect_right(lefts, left + THIN) - 1, bisect_right(lefts, right - THIN) - 1
            return first if first == last else -1

        found = {column_of(each.left, each.right) for line in lines for each in line.segments}
        if len(area.columns) > 1 and len(found) > 1 and -1 not in found:
            for column in area.columns:
                inner = [
                    word for word in area.words if lefts[column] <= (word.left + word.right) / 2 < lefts[column + 1]
                ]
                yield from self._parts(_Area(area.rows, range(column, column + 1), inner))
            return
        in_rows = [
            [line for line in lines if tops[row] >= line.base + 0.3 * line.size > tops[row + 1]] for row in area.rows
        ]
        is_line_each = len(area.rows) > 1 and all(len(each) == 1 for each in in_rows)
        if is_line_each and _is_apart(lines, self._width(area.columns)):
            for row, (line,) in zip(area.rows, in_rows, strict=True):
                words = [word for segment in line.segments for word in segment.words]
                yield _Area(range(row, row + 1), area.columns, words)
            return
        yield area

    def lines(self) -> list[str]:
        """Return the rows as lines."""
        lines: list[str] = []
        for row in range(len(self._grid.tops) - 1):
            if (parts := self._lines_apart(row)) is not None:
                lines += parts
                continue
            cells = []
            for column in self._columns:
                area = self._at[row, column]
                text = self._texts[id(area)]
                is_first = row == area.rows.start and column == area.columns.start
                is_whole = len(area.columns) == len(self._columns)
                cells.append(text if is_first or (len(text) <= _MOST_REPEATED and not is_whole) else "")
            lines.append(self._joined(cells))
        return [line for line in lines if line]

    def _joined(self, cells: list[str]) -> str:
        return " | ".join(cells[::-1] if self._from_right else cells).rstrip(" |")

    def _lines_apart(self, row: int) -> list[str] | None:
        """Return the lines between two lines of the table if each is a row; None if they are one."""
        areas = [self._at[row, column] for column in self._columns]
        words = [word for area in dict.fromkeys(areas) for word in area.words]
        if len(words) < 2 or any(len(area.rows) > 1 or len(area.columns) > 1 for area in areas):
            return None
        if max(word.base for word in words) - min(word.base for word in words) < 0.5 * words[0].size:
            return None
        column_of = {id(word): column for column, area in enumerate(areas) for word in area.words}
        parts = [
            [replace(line, segments=tuple(_in_column(line, column, column_of))) for column in range(len(areas))]
            for line in rows_of(words)
        ]
        if self._from_right:
            parts = [cells[::-1] for cells in parts]
        if self._grid.down is not None:
            is_full = all(cells[0].segments and sum(bool(cell.segments) for cell in cells) > 1 for cells in parts)
            if not is_full or len(parts) <= _FEW_LINES < len(self._grid.tops) - 1:
                return None
        widths = [self._width(range(column, column + 1)) for column in self._columns]
        if _is_one_row(parts, widths[::-1] if self._from_right else widths, are_ruled=self._are_ruled):
            return None
        return [
            " | ".join(cell.text(cell.segments, backwards=self._from_right) for cell in cells).rstrip(" |")
            for cells in parts
        ]

    @cached_property
    def _are_ruled(self) -> bool:
        """Whether more lines stand alone between two lines of the table than with others."""
        counts = [0] * (len(self._grid.tops) - 1)
        for area in dict.fromkeys(self._at.values()):
            if area.words and len(area.rows) == 1:
                counts[area.rows.start] = max(counts[area.rows.start], len(rows_of(area.words)))
        return counts.count(1) > sum(count for count in counts if count > 1)

    def _width(self, columns: range) -> float:
        """Return about the width of the lines of some columns."""
        return self._grid.lefts[columns.stop] - self._grid.lefts[columns.start] - self._padding


def _in_column(line: Row, column: int, column_of: Mapping[int, int]) -> Iterator[Segment]:
    """Yield what of the segments of a line stands in a column."""
    for segment in line.segments:
        if inner := tuple(word for word in segment.words if column_of[id(word)] == column):
            yield Segment(inner)


def cell_text(words: Sequence[Word], *, from_right: bool) -> str:
    """Return the text of a cell, in which lines may be broken; "" for an empty one."""
    if len(words) == 1 and not from_right and not words[0].is_struck:
        return words[0].text
    lines = ((row.text(row.segments, backwards=from_right), False) for row in rows_of(words))
    return joined_lines(lines).replace("\n", " ")


def _width(row: Row) -> float:
    return row.segments[-1].right - row.segments[0].left if row.segments else 0.0


def _is_one_row(lines: Sequence[Sequence[Row]], widths: Sequence[float], *, are_ruled: bool) -> bool:
    """Return whether lines are one row whose cells break at the ends of their columns.

    Args:
        lines: The lines from above, each with a row for each column in the order of reading, which may be empty.
        widths: Widths of the columns.
        are_ruled: True if rules part most rows of the table.
    """
    columns = list(zip(*lines, strict=True))
    if any(above[0].base - below[0].base > PARAGRAPH * above[0].size for above, below in pairwise(lines)):
        return False
    longer = [at for at, column in enumerate(columns) if sum(bool(row.segments) for row in column) > 1]
    if len(longer) == 1 and longer[0] and lines[0][0].segments:  # the only cell with several lines
        return True
    if any(_is_apart(column, width) for column, width in zip(columns, widths, strict=True)):
        return False
    if len(longer) == 1:
        return True
    broken = [_is_sentence(column) for column in columns]
    is_full = all(line[0].segments and sum(bool(cell.segments) for cell in line) > 1 for line in lines)
    if is_full and any(is_number(cell.segments) for line in lines[1:] for cell in line[1:]):
        return False
    return are_ruled or (any(broken) and (broken[0] or not is_full))


def _is_sentence(column: Sequence[Row]) -> bool:
    """Return whether some lines of a column, the last one aside, are as wide as those of sentences."""
    filled = [row for row in column if row.segments][:-1]
    return bool(filled) and sum(map(_width, filled)) / len(filled) >= LEAST_WIDTH * filled[0].size


def _is_apart(column: Sequence[Row], width: float) -> bool:
    """Return whether a word that begins a line of a column would fit in the line above, so that none was broken."""
    filled = [at for at, row in enumerate(column) if row.segments]
    if not filled:
        return False
    if filled[-1] - filled[0] >= len(filled):
        return True
    for above, below in pairwise(column[at] for at in filled):
        if not is_broken_at(above.segments, below.segments, width, backwards=below.backwards):
            return True
    return False


def is_number(cell: Sequence[Segment]) -> bool:
    """Return whether a cell is a number alone."""
    return _NUMBER.fullmatch("".join(word.text for each in cell for word in each.words)) is not None


def is_broken_at(above: Sequence[Segment], below: Sequence[Segment], width: float, *, backwards: bool = False) -> bool:
    """Return whether the first word of a line does not fit in the line above, as in cells with broken lines."""
    first = below[-1].words[-1] if backwards else below[0].words[0]
    return above[-1].right - above[0].left + _BLANK * first.size + first.right - first.left >= width


def row_text(row: Row, gutters: Sequence[Span], *, from_right: bool) -> str:
    """Return a line of a table, cell by cell, also empty ones before the last; the lines of a whole table."""
    if row.table:
        return row.table
    cells = [row.text(part, backwards=from_right and bool(gutters)).strip() for part in divided(row, gutters)]
    if from_right:
        cells.reverse()
    return " | ".join(cells).rstrip(" |") if any(cells[1:]) else cells[0]


def ruled_lines(
    rows: Sequence[Row], gutters: Sequence[Span], rules: Sequence[Rule], *, from_right: bool
) -> Iterator[tuple[list[Row], list[str]]]:
    """Yield the rows and the lines of a table whose rows are parted by rules, and its columns by free space."""
    for is_heading, group in groupby(rows, key=lambda row: bool(row.table) or is_across(row, gutters)):
        inner = list(group)
        lines = None if is_heading else _ruled(inner, gutters, rules)
        if lines is None:
            yield from (([row], [row_text(row, gutters, from_right=from_right)]) for row in inner)
        else:
            yield inner, lines


def crossing(rules: Sequence[Rule], gutters: Sequence[Span], rows: Sequence[Row]) -> list[Rule]:
    """Return the lines among rows and near them that cross one of some spaces."""
    reach = PARAGRAPH * rows[0].size
    low, high = rows[-1].base - reach, rows[0].base + reach
    return [
        rule
        for rule in rules
        if low < rule[0] < high and any(rule[1] < left and right < rule[2] for left, right in gutters)
    ]


def is_across(row: Row, gutters: Sequence[Span]) -> bool:
    """Return whether words of a row stand in several columns without a space between."""
    return any(each.left < left and right < each.right for each in row.segments for left, right in gutters)


def _ruled(rows: Sequence[Row], gutters: Sequence[Span], rules: Sequence[Rule]) -> list[str] | None:
    middles = [sum(gutter) / 2 for gutter in gutters]
    left = min(row.segments[0].left for row in rows)
    right = max(segment.right for row in rows for segment in row.segments)
    heights = sorted({y for y, _, _ in rules if rows[-1].base < y < rows[0].base}, reverse=True)
    grid = Grid(
        lefts=[min(left, middles[0]), *middles, max(right, middles[-1])],
        tops=[rows[0].base + rows[0].size, *heights, rows[-1].base - rows[-1].size],
        across=rules,
        down=None,
    )
    return table_lines(grid, [word for row in rows for segment in row.segments for word in segment.words])
