"""Tables without lines, by the places of their cells in all rows, of files that place each cell apart."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean, median

from .bands import begins_with_mark
from .letters import CELL
from .pictures import Rule
from .rows import LEAST_WIDTH, Row, Segment, Span, is_from_right
from .tables import cell_text, crossing, is_broken_at, ruled_lines
from .words import Word

_ALIGNED = 1.0
"""Most difference of the edges or middles of aligned cells, in points."""
_EVEN = 0.4
"""Most difference of distances that are the same, in points."""
_FAR = 1.6
"""Least distance of rows that stand away from each other, in usual distances of rows."""
_MOST_STEP = 5.0
"""Most distance of the rows of a table, in heights of letters."""
_MOST_LINE = 1.9
"""Most distance of the lines of a cell, in heights of letters."""
_LEAST_LINE = 0.8
_LEAST_ROWS = 3
_MOST_BELOW = 2
"""Most lines below a table that leave the same space free."""
_MOST_HEADS = 3
"""Most lines of the heads of columns."""
_ON_GRID = 0.1
"""Most difference of the places of letters on a grid, in widths of a letter."""
_NUMBER = re.compile(r"[+\-\u2212]?\d[\d.,:%\u2013-]*")

Run = tuple[int, int, frozenset[int]]
"""Where rows begin and end that leave the same spaces free, and which of them are lines across these."""


@dataclass(frozen=True, kw_only=True)
class Part:
    """Rows below each other."""

    rows: Sequence[Row]
    lines: list[str] | None = None
    """The lines of a table; None if the rows are none."""


def parts_of(rows: Sequence[Row], rules: Sequence[Rule]) -> Iterator[Part]:
    """Yield rows in order, those of tables apart.

    Args:
        rows: The rows of a page or of a column.
        rules: Lines that lie flat; where several cross the spaces between columns, they part the rows.
    """
    split = [_split(row) for row in rows]
    begin = 0
    for start, stop, across in _runs(split):
        while start < stop and len(split[start].segments) == 1:
            start += 1  # noqa: PLW2901
        found = _read(split, (start, stop, across), rules)
        if found is None:
            continue
        first, stop, lines = found  # noqa: PLW2901
        if begin < first:
            yield Part(rows=rows[begin:first])
        yield Part(rows=rows[first:stop], lines=lines)
        begin = stop
    if begin < len(rows):
        yield Part(rows=rows[begin:])


def _split(row: Row) -> Row:
    """Return a row whose segments are parted where the file places a text apart, too."""
    return replace(row, segments=tuple(part for each in row.segments for part in _parted(each)))


def _parted(segment: Segment) -> Iterator[Segment]:
    begin = 0
    for at, (before, word) in enumerate(pairwise(segment.words), 1):
        if word.is_placed and word.left - before.right >= CELL * word.size:
            yield Segment(segment.words[begin:at])
            begin = at
    yield Segment(segment.words[begin:]) if begin else segment


def _runs(rows: Sequence[Row]) -> Iterator[Run]:
    """Yield consecutive rows whose words leave at least as many spaces free as each of them has."""
    start = 0
    while start < len(rows):
        spans, most, stop = _spans(rows[start : start + 1]), len(rows[start].segments), start + 1
        across: set[int] = set()
        fullest = rows[start]
        for at in range(start + 1, len(rows)):
            row, above = rows[at], rows[at - 1]
            if row.table or above.table or above.base - row.base > _MOST_STEP * row.size:
                break
            joined = _joined([*spans, *_places(row)], CELL * row.size)
            is_across = len(row.segments) == 1 and _crosses(row, fullest)
            if len(joined) >= max(most, len(row.segments)) and not is_across:
                spans, most, stop = joined, max(most, len(row.segments)), at + 1
                fullest = max(fullest, row, key=_width)
            elif at > stop or at - start < _LEAST_ROWS:
                break
            else:
                across.add(at)
        yield start, stop, frozenset(each for each in across if each < stop)
        start = stop


def _crosses(row: Row, other: Row) -> bool:
    """Return whether words of a row without a space between stand below several texts of another one."""
    return any(
        sum(each.left < place.right and place.left < each.right for place in other.segments) > 1
        for each in row.segments
    )


def _places(row: Row) -> list[Span]:
    return [(segment.left, segment.right) for segment in row.segments]


def _spans(rows: Sequence[Row]) -> list[Span]:
    """Return where words stand in some rows, from left to right."""
    places = [place for row in rows for place in _places(row)]
    return _joined(places, CELL * rows[0].size) if rows else []


def _joined(places: Sequence[Span], least: float) -> list[Span]:
    joined: list[Span] = []
    for left, right in sorted(places):
        if joined and left - joined[-1][1] < least:
            joined[-1] = joined[-1][0], max(joined[-1][1], right)
        else:
            joined.append((left, right))
    return joined


def _read(rows: Sequence[Row], run: Run, rules: Sequence[Rule]) -> tuple[int, int, list[str]] | None:
    """Return where the rows of a table in a run begin and end, and its lines; None if they are none."""
    start, stop, across = run
    for end in range(stop, max(start, stop - _MOST_BELOW) - 1, -1):
        if end < stop and len(rows[end].segments) > 1:
            return None
        found = _table_in(rows, (start, end, across), rules)
        if found is not None:
            return found
    return None


def _table_in(rows: Sequence[Row], run: Run, rules: Sequence[Rule]) -> tuple[int, int, list[str]] | None:
    """Return what ``_read`` does for a run without lines below the table."""
    start, stop, across = run
    inner = [row for at, row in enumerate(rows[start:stop], start) if at not in across]
    if max(map(_width, inner), default=0) < 2:
        return None
    columns = _columns(inner)
    if columns is None:
        return start, stop, [row.text(row.segments) for row in rows[start:stop]]
    table = _Table(inner, columns)
    if not table.is_one():
        return None
    gutters = [(left, right) for (_, left), (right, _) in pairwise(columns)]
    near = crossing(rules, gutters, rows[start:stop])
    if len({y for y, _, _ in near if rows[stop - 1].base < y < rows[start].base}) >= 2:
        parts = ruled_lines(rows[start:stop], gutters, near, from_right=is_from_right(inner))
        return start, stop, [line for _, lines in parts for line in lines]
    return start, stop, table.lines()


def _width(row: Row) -> int:
    return len(row.segments)


def _columns(rows: Sequence[Row]) -> list[Span] | None:
    """Return the columns of a table; None if it cannot be said which heads stand over which of them."""
    spans = _spans(rows)
    most = max(len(row.segments) for row in rows)
    if len(spans) == most:
        return spans
    for count in range(1, min(_MOST_HEADS, len(rows) - 1) + 1):
        matched = _matched(_spans(rows[:count]), _spans(rows[count:]))
        if matched is not None and len(matched) >= most:
            return matched
    return None


def _matched(heads: Sequence[Span], body: Sequence[Span]) -> list[Span] | None:
    """Return columns of which some have a head and words below it that stand beside it, both from left to right."""
    pairs = [
        (at, other)
        for at, head in enumerate(heads)
        for other, span in enumerate(body)
        if head[0] < span[1] and span[0] < head[1]
    ]
    if any(not (before[0] < after[0] and before[1] < after[1]) for before, after in pairwise(pairs)):
        return None
    columns: list[Span] = []
    last = (-1, -1)
    for pair in [*pairs, (len(heads), len(body))]:
        above, below = heads[last[0] + 1 : pair[0]], body[last[1] + 1 : pair[1]]
        if above and below and len(above) != len(below):
            return None
        both = [(min(a[0], b[0]), max(a[1], b[1])) for a, b in zip(above, below, strict=False)]
        columns += both or [*above, *below]
        if pair[0] < len(heads):
            head, span = heads[pair[0]], body[pair[1]]
            columns.append((min(head[0], span[0]), max(head[1], span[1])))
        last = pair
    return columns


class _Table:
    """Rows that may be a table, and its columns."""

    def __init__(self, rows: Sequence[Row], columns: Sequence[Span]) -> None:
        self._rows, self._columns = rows, columns
        self._cells = [self._in_columns(row) for row in rows]
        self._groups = self._grouped()

    def _in_columns(self, row: Row) -> list[list[Segment]]:
        """Return the segments of a row in each column."""
        return [
            [each for each in row.segments if left <= (each.left + each.right) / 2 <= right]
            for left, right in self._columns
        ]

    def is_one(self) -> bool:
        """Return whether the cells are aligned, few of them wide, and written row by row in the file."""
        filled = [
            sum(any(self._cells[at][each] for at in group) for each in range(len(self._columns)))
            for group in self._groups
        ]
        if sum(count > 1 for count in filled) < _LEAST_ROWS - (len(self._columns) > 2):
            return False
        orders = [
            [word.blanks for segment in row.segments for word in segment.words]
            for row in self._rows
            if len(row.segments) > 1
        ]
        if 2 * sum(max(above) > min(below) for above, below in pairwise(orders)) >= len(orders):
            return False
        size = median(row.size for row in self._rows)
        if _is_typed(self._rows):
            return False
        body = [self._cells[at] for group in self._groups[1:] for at in group]
        inner = [[line[column] for line in body if line[column]] for column in range(len(self._columns))]
        wide = [
            cells for cells in inner if cells and fmean(c[-1].right - c[0].left for c in cells) >= LEAST_WIDTH * size
        ]
        if len(inner) == 2 and wide == inner[1:] and all(begins_with_mark(cell) for cell in inner[0]):
            return False
        if len(self._groups) < _LEAST_ROWS and wide:
            return False
        return len(wide) < 2 and all(_are_aligned(cells) for cells in inner)

    def _grouped(self) -> list[range]:
        """Return the lines of each row: several if cells of it have broken lines or stand a little higher."""
        alone = [range(at, at + 1) for at in range(len(self._rows))]
        near = [
            (above, below, self._rows[above].base - self._rows[below].base)
            for column in range(len(self._columns))
            for above, below in pairwise(at for at, line in enumerate(self._cells) if line[column])
        ]
        size = median(row.size for row in self._rows)
        step = min((distance for _, _, distance in near), default=0.0)
        tries = [[(above, below) for above, below, distance in near if distance <= step + _EVEN]]
        if not 0 < step <= _MOST_LINE * size:
            tries = []
        for links in [*tries, []]:
            groups = self._linked(links, _LEAST_LINE * size)
            if len(groups) > 1 and all(self._is_one_row(group, step) for group in groups):
                return groups
        return alone

    def _linked(self, links: Sequence[tuple[int, int]], least: float) -> list[range]:
        """Return lines in groups, those together that a link goes across or that are closer than a distance."""
        joined = {at for above, below in links for at in range(above, below)}
        groups: list[range] = []
        for at, row in enumerate(self._rows):
            if groups and (at - 1 in joined or self._rows[at - 1].base - row.base < least):
                groups[-1] = range(groups[-1].start, at + 1)
            else:
                groups.append(range(at, at + 1))
        return groups

    def _is_one_row(self, group: range, step: float) -> bool:
        """Return whether lines are the broken lines of the cells of one row, these at one height."""
        if len(group) == 1:
            return True
        filled = [
            [at for at in group if self._cells[at][column]]
            for column in range(len(self._columns))
            if any(self._cells[at][column] for at in group)
        ]
        if len(filled) > 1 and len({len(lines) for lines in filled}) == 1 and len(filled[0]) > 1:
            return False
        high, low = self._rows[group.start].base, self._rows[group.stop - 1].base
        for lines in filled:
            first, last = self._rows[lines[0]].base, self._rows[lines[-1]].base
            if min(high - first, last - low, abs(high + low - first - last) / 2) > _ALIGNED:
                return False
            if any(self._rows[a].base - self._rows[b].base > step + _EVEN for a, b in pairwise(lines)):
                return False
        return all(self._is_broken(column, group) for column in range(len(self._columns)))

    def _is_broken(self, column: int, group: range) -> bool:
        """Return whether the lines of a cell are broken since the next word would not fit, and are no numbers."""
        width = max(c[column][-1].right - c[column][0].left for c in self._cells if c[column])
        lines = [self._cells[at][column] for at in group if self._cells[at][column]]
        return all(
            is_broken_at(above, below, width) and not (_is_number(above) and _is_number(below))
            for above, below in pairwise(lines)
        )

    def lines(self) -> list[str]:
        """Return the rows as lines."""
        from_right = is_from_right(self._rows)
        lines = []
        for group in self._groups:
            cells = [
                self._text(
                    [word for at in group for each in self._cells[at][column] for word in each.words], from_right
                )
                for column in range(len(self._columns))
            ]
            lines.append(" | ".join(cells[::-1] if from_right else cells).rstrip(" |"))
        return lines

    @staticmethod
    def _text(words: Sequence[Word], from_right: bool) -> str:
        return cell_text(words, from_right=from_right) if words else ""


def _is_typed(rows: Sequence[Row]) -> bool:
    """Return whether all words stand on a grid of letters of one width, as those of code and of typed tables do."""
    words = [word for row in rows for segment in row.segments for word in segment.words]
    widths = [(word.right - word.left) / len(word.text) for word in words]
    usual = median(widths)
    places = [(word.left - words[0].left) / usual for word in words]
    return max(widths) - min(widths) < _ON_GRID * usual and all(abs(each - round(each)) < _ON_GRID for each in places)


def _is_number(cell: Sequence[Segment]) -> bool:
    return _NUMBER.fullmatch("".join(word.text for each in cell for word in each.words)) is not None


def _are_aligned(cells: Sequence[Sequence[Segment]]) -> bool:
    """Return whether cells of a column have the same left or right edges, or the same middles."""
    lefts, rights = [cell[0].left for cell in cells], [cell[-1].right for cell in cells]
    middles = [(left + right) / 2 for left, right in zip(lefts, rights, strict=True)]
    return any(max(places, default=0) - min(places, default=0) <= _ALIGNED for places in (lefts, rights, middles))
