"""One table without lines: its rows, which may have several lines, and its columns, by the edges of its cells."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from itertools import combinations, pairwise
from math import comb
from statistics import fmean, median

from .bands import begins_with_mark
from .rows import GUTTER, LEAST_WIDTH, Row, Segment, Span, is_from_right
from .tables import cell_text, is_broken_at, is_number
from .words import Word

_ALIGNED = 1.0
"""Most difference of the edges or middles of aligned cells, in points."""
_EVEN = 0.4
"""Most difference of distances that are the same, in points."""
_MOST_LINE = 1.9
"""Most distance of the lines of a cell, in heights of letters."""
_LEAST_LINE = 0.8
"""Least distance of two rows, in heights of letters; words that are closer stand a little higher in one row."""
LEAST_ROWS = 3
"""Least number of rows of a table."""
_OF_ONE_UNALIGNED = 4
"""Least number of columns of a table of which one is not aligned, as numbers are that stand by their points."""
_MOST_WAYS = 1_000
"""Most ways in which heads may stand over columns."""
_MOST_OFF = 0.3
"""Most distance of a head from the middle of its columns, in usual widths of a column."""
_ON_GRID = 0.1
"""Most difference of the places of letters on a grid, in widths of a letter."""


class AlignedTable:
    """Rows that may be a table, and its columns."""

    def __init__(self, rows: Sequence[Row], columns: Sequence[Span]) -> None:
        self._rows, self._columns = rows, columns
        self._from_right = is_from_right(rows)
        self._cells = [self._in_columns(row) for row in rows]
        self._groups = self._grouped()

    def _in_columns(self, row: Row) -> list[list[Segment]]:
        """Return the segments of a row in each column."""
        return [
            [each for each in row.segments if left <= (each.left + each.right) / 2 <= right]
            for left, right in self._columns
        ]

    def is_one(self) -> bool:
        """Return whether there are rows enough and no columns of text among the columns, and it is no list or code."""
        filled = [
            sum(any(self._cells[at][each] for at in group) for each in range(len(self._columns)))
            for group in self._groups
        ]
        if sum(count > 1 for count in filled) < LEAST_ROWS - (len(self._columns) > 2) or _is_typed(self._rows):
            return False
        size = median(row.size for row in self._rows)
        wide = [
            at
            for at, cells in enumerate(self._body)
            if cells and fmean(cell[-1].right - cell[0].left for cell in cells) >= LEAST_WIDTH * size
        ]
        is_list = len(self._columns) == 2 and wide == [1] and all(begins_with_mark(cell) for cell in self._body[0])
        return not wide or (len(wide) == 1 and len(self._groups) >= LEAST_ROWS and not is_list)

    @cached_property
    def _body(self) -> list[list[list[Segment]]]:
        """The lines of the cells of each column, without those of the first row."""
        body = [self._cells[at] for group in self._groups[1:] for at in group]
        return [[line[column] for line in body if line[column]] for column in range(len(self._columns))]

    @cached_property
    def gutters(self) -> list[Span]:
        """The spaces between the columns."""
        return [(left, right) for (_, left), (right, _) in pairwise(self._columns)]

    @property
    def is_parted(self) -> bool:
        """Whether the spaces between the columns are as wide as those that part words without alignment."""
        return all(right - left >= GUTTER * self._rows[0].size for left, right in self.gutters)

    @cached_property
    def is_aligned(self) -> bool:
        """Whether the cells of nearly all columns have the same left or right edges, or the same middles."""
        other = [cells for cells in self._body if not _are_aligned(cells)]
        return len(other) <= len(self._columns) // _OF_ONE_UNALIGNED and all(
            is_number(cell) for cells in other for cell in cells
        )

    def _grouped(self) -> list[range]:
        """Return the lines of each row: several where its cells wrap or stand a little higher."""
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
        if len(filled) > 1 and 2 * sum(len(lines) > 1 for lines in filled) > len(filled):
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
        width = self._widths[column]
        lines = [self._cells[at][column] for at in group if self._cells[at][column]]
        return all(
            is_broken_at(above, below, width) and not ((column or is_number(above)) and is_number(below))
            for above, below in pairwise(lines)
        )

    @cached_property
    def _widths(self) -> list[float]:
        """The width of the longest line of each column."""
        return [
            max((line[column][-1].right - line[column][0].left for line in self._cells if line[column]), default=0.0)
            for column in range(len(self._columns))
        ]

    def lines(self) -> list[tuple[float, str]]:
        """Return the rows as lines, each with its height on the page."""
        return [
            (
                self._rows[group.start].base,
                self._joined(
                    [
                        self._text([word for at in group for each in self._cells[at][column] for word in each.words])
                        for column in range(len(self._columns))
                    ]
                ),
            )
            for group in self._groups
        ]

    def _joined(self, cells: Sequence[str]) -> str:
        return " | ".join(cells[::-1] if self._from_right else cells).rstrip(" |")

    def has_below(self, row: Row) -> bool:
        """Return whether each text of a row is aligned with the cells of a column."""
        for each in row.segments:
            found = [
                [line[at] for line in self._cells if line[at]]
                for at, (left, right) in enumerate(self._columns)
                if left < each.right and each.left < right
            ]
            if len(found) != 1 or not _are_aligned([[each], *found[0]]):
                return False
        return True

    def over(self, row: Row) -> str:
        """Return a row whose texts stand over the middles of one or several columns each; "" if it has no such.

        In a table from right to left it has none: its cells may be one text to the file.
        """
        if self._from_right:
            return ""
        if alone := self._over_numbers(row):
            return alone
        middles = [(each.left + each.right) / 2 for each in row.segments]
        count = len(self._columns)
        if comb(count, len(middles) - 1) > _MOST_WAYS:
            return ""
        boxes = self._boxes
        found = []
        for first in (0, 1):
            for cuts in combinations(range(first + 1, count), len(middles) - 1):
                ranges = list(pairwise([first, *cuts, count]))
                if not any(
                    each.left < boxes[begin][0] - row.size or each.right > boxes[end - 1][1] + row.size
                    for each, (begin, end) in zip(row.segments, ranges, strict=True)
                ):
                    far = [
                        abs((boxes[begin][0] + boxes[end - 1][1]) / 2 - middle)
                        for middle, (begin, end) in zip(middles, ranges, strict=True)
                    ]
                    found.append((sum(far), max(far), ranges))
        found.sort(key=lambda each: each[0])
        usual = (boxes[-1][1] - boxes[0][0]) / count
        if not found or found[0][1] > _MOST_OFF * usual or (found[1:] and found[1][0] < 2 * found[0][0] + _ALIGNED):
            return ""
        ranges = found[0][2]
        if len(ranges) == 1 and ranges[0][0] == 0:
            return ""
        texts = [row.text([each]) for each in row.segments]
        cells = [text for text, (begin, end) in zip(texts, ranges, strict=True) for _ in range(begin, end)]
        return self._joined([*[""] * ranges[0][0], *cells])

    def _over_numbers(self, row: Row) -> str:
        """Return a row with a text over each column of numbers and none over the others, such as their units; or ""."""
        first = self._cells[self._groups[0].start]
        numbers = [at for at, cell in enumerate(first) if cell and is_number(cell)]
        below = [
            [at for at, (left, right) in enumerate(self._columns) if left < each.right and each.left < right]
            for each in row.segments
        ]
        if below != [[at] for at in numbers]:
            return ""
        texts = dict(zip(numbers, (row.text([each]) for each in row.segments), strict=True))
        return self._joined([texts.get(at, "") for at in range(len(self._columns))])

    @cached_property
    def _boxes(self) -> list[Span]:
        """Where the cells of each column begin and end without their padding, some of which no word fills."""
        known = [self._edges(at) for at in range(len(self._columns))]
        padding = min(right - left for left, right in self.gutters)
        for _ in known:
            for at, (left, right, middle) in enumerate(known):
                before = known[at - 1][1] if at else None
                after = known[at + 1][0] if at + 1 < len(known) else None
                if left is None and before is not None:
                    left = before + padding  # noqa: PLW2901
                if right is None and after is not None:
                    right = after - padding  # noqa: PLW2901
                if middle is not None and right is None and left is not None:
                    right = 2 * middle - left  # noqa: PLW2901
                if middle is not None and left is None and right is not None:
                    left = 2 * middle - right  # noqa: PLW2901
                known[at] = left, right, middle
        return [
            (own[0] if left is None else min(left, own[0]), own[1] if right is None else max(right, own[1]))
            for (left, right, _), own in zip(known, self._columns, strict=True)
        ]

    def _edges(self, column: int) -> tuple[float | None, float | None, float | None]:
        """Return the left edge, the right edge and the middle of a column as far as its head and its cells tell."""
        cells = [[self._cells[at][column] for at in group if self._cells[at][column]] for group in self._groups]
        head, body = [_place(cell) for cell in cells[0]], [_place(cell) for group in cells[1:] for cell in group]
        if not body:
            return None, None, None
        left, right, middle = (
            places[0] if max(places) - min(places) <= _ALIGNED else None
            for places in ([place[0] for place in body], [place[1] for place in body], [sum(p) / 2 for p in body])
        )
        if not head:
            return (left, right, None if middle is None or left or right else middle)
        near_left, near_right = head[0][0] - (left or 0.0), head[0][1] - (right or 0.0)
        above = sum(head[0]) / 2
        if left is not None and right is not None:  # all are as wide as each other
            left, right, middle = (
                (None, None, above)
                if abs(above - (left + right) / 2) <= _ALIGNED
                else (
                    left if abs(near_left) <= _ALIGNED else None,
                    right if abs(near_right) <= _ALIGNED else None,
                    None,
                )
            )
        elif left is not None:
            middle = above if abs(near_left) > _ALIGNED else None
        elif right is not None:
            middle = above if abs(near_right) > _ALIGNED else None
        return left, right, middle

    def _text(self, words: Sequence[Word]) -> str:
        return cell_text(words, from_right=self._from_right) if words else ""


def _is_typed(rows: Sequence[Row]) -> bool:
    """Return whether all words stand on a grid of letters of one width, as those of code and of typed tables do."""
    words = [word for row in rows for segment in row.segments for word in segment.words]
    widths = [(word.right - word.left) / len(word.text) for word in words]
    usual = median(widths)
    if usual <= 0:
        return False
    places = [(word.left - words[0].left) / usual for word in words]
    return max(widths) - min(widths) < _ON_GRID * usual and all(abs(each - round(each)) < _ON_GRID for each in places)


def _place(cell: Sequence[Segment]) -> Span:
    return cell[0].left, cell[-1].right


def _are_aligned(cells: Sequence[Sequence[Segment]]) -> bool:
    """Return whether cells of a column have the same left or right edges, or the same middles."""
    lefts, rights = [cell[0].left for cell in cells], [cell[-1].right for cell in cells]
    middles = [(left + right) / 2 for left, right in zip(lefts, rights, strict=True)]
    return any(max(places, default=0) - min(places, default=0) <= _ALIGNED for places in (lefts, rights, middles))
