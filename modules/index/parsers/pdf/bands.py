"""Bands of rows that leave the same vertical spaces free, as the rows of columns and of tables do."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import groupby, pairwise
from statistics import median
from typing import Literal

from .rows import GUTTER, LEAST_WIDTH, PARAGRAPH, Row, Segment, Span, divided

_LEAST_ROWS = 3
_FAR = 1.6
"""Least distance of rows that stand away from each other, in usual distances of rows."""
_ALIGNED = 2.0
"""Most difference of the places of aligned words, in points."""
_PARAGRAPH_LINES = 2
"""Least number of lines across the spaces of a table that are a paragraph below it."""
_MOST_STEP = 5.0
"""Most distance of the rows of a table, in heights of letters."""
_MARK = re.compile(r"[(\[]?(?:\d{1,3}(?:\.\d{1,3})*[.)\]:]?|[a-zA-Z]{1,4}[.)\]:])|\W{1,2}")
"""A number or a bullet of a list."""


def bands_of(rows: Sequence[Row]) -> Iterator[tuple[list[Row], list[Span]]]:
    """Yield consecutive rows that leave the same vertical spaces free, with those spaces."""
    band: list[Row] = []
    free: list[Span] = []
    extent = (0.0, 0.0)
    for row, below in zip(rows, [*rows[1:], None], strict=True):
        gaps, own = _gaps(row), _extent(row)
        common = _common(free, gaps, row.size) if band else gaps
        both = (min(extent[0], own[0]), max(extent[1], own[1])) if band else own
        splits = _inner(free, extent) or _inner(gaps, own) or (below is not None and _is_beside(row, below))
        if band and not _inner(common, both) and splits:
            yield from _trimmed(band, _inner(free, extent))
            band, common, both = [], gaps, own
        band.append(row)
        free, extent = common, both
    if band:
        yield from _trimmed(band, _inner(free, extent))


def _is_beside(row: Row, below: Row) -> bool:
    """Return whether a row is beside the one below it, as lines of columns with other line heights do."""
    apart = max(
        below.segments[0].left - max(segment.right for segment in row.segments),
        row.segments[0].left - max(segment.right for segment in below.segments),
    )
    return row.base - below.base < PARAGRAPH * row.size and apart >= GUTTER * row.size


def _trimmed(band: list[Row], gutters: list[Span]) -> Iterator[tuple[list[Row], list[Span]]]:
    """Yield a band, its first and last row apart where they stand away from the others, as running titles do.

    One-line paragraphs begin where the lines of their columns do. Short lines between columns that end above them and
    others that begin below them stand apart, too.
    """
    first, last = 0, len(band)
    if len(band) > _LEAST_ROWS and gutters:
        steps = [above.base - below.base for above, below in pairwise(band)]
        usual = _FAR * median(steps)
        inner = band[1:-1]
        first = int(steps[0] > usual and not _begins_as(inner, band[0], gutters))
        last = len(band) - int(steps[-1] > usual and not _begins_as(inner, band[-1], gutters))
    if first:
        yield band[:first], gutters
    for part in _between_headings(band[first:last], gutters):
        yield part, gutters
    if last < len(band):
        yield band[last:], gutters


def _begins_as(rows: Sequence[Row], row: Row, gutters: Sequence[Span]) -> bool:
    """Return whether a row has one text in each column, which begins where the lines of some rows do."""
    sides = list(zip(divided(row, gutters), *(divided(each, gutters) for each in rows), strict=True))
    return all(
        len(own) == 1 and abs(own[0].left - min((side[0].left for side in others if side), default=0)) < _ALIGNED
        for own, *others in sides
    )


def _between_headings(rows: Sequence[Row], gutters: Sequence[Span]) -> Iterator[list[Row]]:
    """Yield rows of columns in order, those apart that are a heading between columns that end and others that begin."""
    if len(rows) <= 2 * _LEAST_ROWS or not gutters:
        yield list(rows)
        return
    are_full = [all(divided(row, gutters)) for row in rows]
    steps = [above.base - below.base for above, below in pairwise(rows)]
    least = _FAR * median(steps)
    is_far = [True, *(step > max(least, PARAGRAPH * row.size) for step, row in zip(steps, rows, strict=False)), True]
    is_short = [not are_full[at] and is_far[at] and is_far[at + 1] for at in range(len(rows))]
    runs = [list(group) for _, group in groupby(range(len(rows)), key=lambda at: is_short[at])]
    is_enough = [not is_short[run[0]] and sum(are_full[at] for at in run) >= _LEAST_ROWS for run in runs]
    part: list[Row] = []
    for number, run in enumerate(runs):
        is_between = 0 < number < len(runs) - 1 and is_enough[number - 1] and is_enough[number + 1]
        if is_between and all(map(any, (are_full[run[0] - 2 : run[0]], are_full[run[-1] + 1 : run[-1] + 3]))):
            yield part
            yield [rows[at] for at in run]
            part = []
        else:
            part += [rows[at] for at in run]
    if part:
        yield part


def grids_in(rows: Sequence[Row]) -> Iterator[tuple[list[Row], list[Span]]]:
    """Yield consecutive rows whose words stand below each other, with the spaces between their columns.

    A row that has words across such a space, as headings have, ends no table.
    """
    if all(len(row.segments) == 1 for row in rows):
        if rows:
            yield list(rows), []
        return
    grid = _Grid()
    for row in rows:
        ended = grid.take(row)
        if ended is not None:
            yield ended
    if grid.rows:
        yield grid.rows, grid.gutters


class _Grid:
    """Rows that may be a table, and the spaces between their columns."""

    def __init__(self) -> None:
        self.rows: list[Row] = []
        self._free: list[Span] = []
        self._extent = (0.0, 0.0)
        self._full = 0
        """Number of rows whose spaces count."""
        self._lines = 0
        """Number of lines at the end that stand across the spaces."""

    @property
    def gutters(self) -> list[Span]:
        """The spaces with words on both sides."""
        return _inner(self._free, self._extent)

    def take(self, row: Row) -> tuple[list[Row], list[Span]] | None:
        """Add a row; return the rows before it, with their spaces, if it begins other ones."""
        if not self.rows:
            return self._begin_with(row)
        is_full = len(row.segments) > 1
        if (is_full and not self._full) or self.rows[-1].base - row.base > _MOST_STEP * row.size:
            return self._begin_with(row)
        gaps, own = _gaps(row), _extent(row)
        common = _common(self._free, gaps, row.size)
        both = min(self._extent[0], own[0]), max(self._extent[1], own[1])
        is_across = bool(self._full) and not _are_kept(self.gutters, common)
        is_finer = bool(self._full) and not _are_kept(_inner(gaps, own), common)
        self._lines = self._lines + 1 if is_across and not is_full else 0
        if self._lines == _PARAGRAPH_LINES:
            above = self.rows.pop()
            ended = self._begin_with(above)
            self.take(row)
            return ended
        if (is_finer and (is_across or self._full >= _LEAST_ROWS)) or self._is_other(row, _inner(common, both)):
            return self._begin_with(row)
        if is_finer:
            self._free, self._extent, self._full = gaps, own, 0
        elif not is_across:
            self._free, self._extent = common, both
        self.rows.append(row)
        self._full += is_full
        return None

    def _begin_with(self, row: Row) -> tuple[list[Row], list[Span]] | None:
        ended = (self.rows, self.gutters) if self.rows else None
        self.rows, self._free, self._extent = [row], _gaps(row), _extent(row)
        self._full, self._lines = int(len(row.segments) > 1), 0
        return ended

    def _is_other(self, row: Row, gutters: Sequence[Span]) -> bool:
        """Return whether a row begins another table though it leaves the same spaces free."""
        if len(self.rows) == 1:
            return _is_head(self.rows[0], row, len(gutters))
        return self._full > 1 and _may_be_other(self.rows, row) and _stands_elsewhere(self.rows, row)


def _is_head(above: Row, row: Row, gutters: int) -> bool:
    """Return whether a row has as many cells as the one below it, but at other places."""
    return len(above.segments) == len(row.segments) > 2 and gutters >= len(row.segments)


def _may_be_other(part: Sequence[Row], row: Row) -> bool:
    """Return whether another table may begin with a row: it stands away from those above, below a line, or has more
    cells."""
    if len(part[-1].segments) == 1:
        return len(row.segments) > 1
    step = part[-1].base - row.base
    return (len(part) > 1 and step > _FAR * (part[-2].base - part[-1].base)) or len(row.segments) > max(
        len(each.segments) for each in part
    )


def _stands_elsewhere(part: Sequence[Row], row: Row) -> bool:
    """Return whether most words of a row begin, end and have their middle elsewhere than those above them."""
    above = [segment for each in part if len(each.segments) > 1 for segment in each.segments]
    balance = 0
    for one in row.segments:
        below = [other for other in above if other.left < one.right and one.left < other.right]
        if below:
            balance += 1 if any(_are_aligned(one, other) for other in below) else -1
    return balance < 0


def _are_aligned(one: Segment, other: Segment) -> bool:
    left, right = one.left - other.left, one.right - other.right
    return min(abs(left), abs(right), abs(left + right) / 2) < _ALIGNED


def tables_in(rows: Sequence[Row], gutters: Sequence[Span]) -> Iterator[tuple[list[Row], bool]]:
    """Yield the rows of a band in order, those of tables apart, and whether they are a table.

    Lines of columns are wide. A table has short words, and more spaces than the band or none of its lines nearby.
    """
    kinds = [_kind(row, gutters) for row in rows]
    begin = 0
    if "wide" not in kinds or kinds.count("wide") < len(kinds) - 1:
        steps = [above.base - below.base for above, below in pairwise(rows)]
        gaps = [True, *(step > _FAR * median(steps) for step in steps), True]
        for is_wide, group in groupby(range(len(rows)), key=lambda at: kinds[at] == "wide"):
            found = None if is_wide else _table_among(rows, kinds, gaps, list(group), len(gutters))
            if found is None:
                continue
            if found.start > begin:
                yield list(rows[begin : found.start]), False
            yield list(rows[found.start : found.stop]), True
            begin = found.stop
    if begin < len(rows):
        yield list(rows[begin:]), False


_Kind = Literal["wide", "cells", "short", "part"]


def _kind(row: Row, gutters: Sequence[Span]) -> _Kind:
    """Return whether a row has a wide line, more cells than columns, a short one for several, or only for one."""
    widths = [segment.right - segment.left for segment in row.segments]
    widest = max(widths) / row.size
    if row.table or widest >= 2 * LEAST_WIDTH:
        return "wide"
    sides = [side for side in divided(row, gutters) if side]
    has_cells = any(len(side) > 1 + begins_with_mark(side) for side in sides)
    if len(sides) > 1 and has_cells:
        return "cells"
    if widest >= LEAST_WIDTH:
        return "wide"
    return "short" if len(sides) > 1 or has_cells else "part"


def begins_with_mark(side: Sequence[Segment]) -> bool:
    """Return whether the first words of a line are the number or the bullet of a list."""
    text = "".join(word.text for word in side[0].words)
    return _MARK.fullmatch(text) is not None


def _table_among(
    rows: Sequence[Row], kinds: Sequence[_Kind], gaps: Sequence[bool], run: Sequence[int], columns: int
) -> range | None:
    """Return which of some consecutive rows without wide lines are a table; ``gaps[i]`` is the one above row i."""
    of_table = [at for at in run if kinds[at] in ("cells", "short")]
    with_cells = [at for at in run if kinds[at] == "cells"]
    apart = [at for at in of_table if gaps[at]]
    if apart and gaps[run[-1] + 1] and len([at for at in of_table if at >= apart[0]]) >= _LEAST_ROWS:
        return range(apart[0], run[-1] + 1)
    if len(with_cells) < 2:
        return None
    found = range(with_cells[0], of_table[-1] + 1)
    for part, gutters in grids_in([rows[at] for at in found]):
        least = (GUTTER if len(part) >= _LEAST_ROWS else 2 * GUTTER) * part[0].size
        if len(part) > 1 and sum(right - left >= least for left, right in gutters) > columns:
            return found
    return None


def _are_kept(spaces: Sequence[Span], common: Sequence[Span]) -> bool:
    return all(any(left <= each[0] and each[1] <= right for each in common) for left, right in spaces)


def _extent(row: Row) -> Span:
    return row.segments[0].left, max(segment.right for segment in row.segments)


def _gaps(row: Row) -> list[Span]:
    edges = [(segment.left, segment.right) for segment in row.segments]
    return [
        (before, after)
        for before, after in zip(
            [float("-inf"), *(right for _, right in edges)], [*(left for left, _ in edges), float("inf")], strict=True
        )
    ]


def _common(free: Sequence[Span], gaps: Sequence[Span], size: float) -> list[Span]:
    """Return the spaces that two sorted lists have in common and that are wide enough."""
    common, first, second = [], 0, 0
    while first < len(free) and second < len(gaps):
        left, right = max(free[first][0], gaps[second][0]), min(free[first][1], gaps[second][1])
        if right - left >= GUTTER * size:
            common.append((left, right))
        if free[first][1] < gaps[second][1]:
            first += 1
        else:
            second += 1
    return common


def _inner(spaces: Sequence[Span], extent: Span) -> list[Span]:
    """Return the spaces that have words on both sides."""
    return [space for space in spaces if space[0] >= extent[0] and space[1] <= extent[1]]
