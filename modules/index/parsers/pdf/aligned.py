"""Tables without lines, by the places of their cells in all rows, of files that place each cell apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations, pairwise
from math import comb
from statistics import fmean, median

from .bands import begins_with_mark
from .letters import CELL
from .pictures import Rule
from .rows import GUTTER, LEAST_WIDTH, Row, Segment, Span, is_from_right
from .tables import cell_text, crossing, is_broken_at, is_number, ruled_lines
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
_FEW_ROWS = 4
_OF_ONE_UNALIGNED = 4
"""Least number of columns of a table of which one is not aligned, as numbers are that stand by their points."""
_MOST_COLUMNS = 100
_MOST_WAYS = 1_000
"""Most ways in which heads may stand over columns."""
_MOST_HALVES = 8
_MOST_LEAD = 4.0
"""Most distance of heads over several columns to the row below, in heights of letters."""
_MOST_OFF = 0.3
"""Most distance of a head from the middle of its columns, in usual widths of a column."""
_MOST_BELOW = 2
"""Most lines below a table that leave the same space free."""
_MOST_HEADS = 3
"""Most lines of the heads of columns."""
_ON_GRID = 0.1
"""Most difference of the places of letters on a grid, in widths of a letter."""

Run = tuple[int, int, frozenset[int]]
"""Where rows begin and end that leave the same spaces free, and which of them are lines across these."""


@dataclass(frozen=True, kw_only=True)
class TablePart:
    """Rows below each other."""

    rows: Sequence[Row]
    lines: list[str] | None = None
    """The lines of a table; None if the rows are none."""


@dataclass(frozen=True, kw_only=True)
class _Found:
    """Rows in which a table was found."""

    start: int
    stop: int
    lines: list[str]
    table: _Table | None = None
    """None if it cannot be said in which columns its words stand, which are read across."""


def parts_of(rows: Sequence[Row], rules: Sequence[Rule]) -> Iterator[TablePart]:
    """Yield rows in order, those of tables apart.

    Args:
        rows: The rows of a page or of a column.
        rules: Lines that lie flat; where several cross the spaces between columns, they part the rows.
    """
    split = [_split(row) for row in rows]
    begin = 0
    for run in _runs(split):
        waiting, halves = [run], _MOST_HALVES
        while waiting:
            each = waiting.pop()
            found = _read(split, each, begin, rules)
            if found is None:
                halves -= 1
                waiting += _halves(split, each) if halves > 0 else []
                continue
            if begin < found.start:
                yield TablePart(rows=rows[begin : found.start])
            yield TablePart(rows=rows[found.start : found.stop], lines=found.lines)
            begin = found.stop
    if begin < len(rows):
        yield TablePart(rows=rows[begin:])


def _halves(rows: Sequence[Row], run: Run) -> list[Run]:
    """Return the two parts of a run, the lower one first, if rows in it stand away from each other."""
    start, stop, across = run
    steps = [(above.base - below.base, at) for at, (above, below) in enumerate(pairwise(rows[start:stop]), start + 1)]
    if len(steps) < _LEAST_ROWS:
        return []
    step, at = max(steps)
    return [(at, stop, across), (start, at, across)] if step > _FAR * median(step for step, _ in steps) else []


def _split(row: Row) -> Row:
    """Return a row whose segments are parted where the file places a text apart, too."""
    if not any(word.is_placed for each in row.segments for word in each.words[1:]):
        return row
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
        near = rows[max(0, start - 1) : start], rows[start + 1 : start + 2]
        if _width(rows[start]) == 1 or (
            _is_of_columns(rows[start]) and any(_is_of_columns(row) for part in near for row in part)
        ):
            start += 1
            continue
        stop, across = _run_from(rows, start)
        is_ended = (
            stop - start <= _FEW_ROWS
            and stop < len(rows)
            and _width(rows[stop]) > 1
            and (stop - start == 1 or _width(rows[start]) < max(map(_width, rows[start:stop])))
        )
        if is_ended and _run_from(rows, start + 1)[0] > stop:  # the first row has heads over several columns
            stop = start + 1
        yield start, stop, frozenset(each for each in across if each < stop)
        start = stop


def _is_of_columns(row: Row) -> bool:
    """Return whether several texts of a row are as wide as lines of columns."""
    return len(row.segments) > 1 and sum(right - left >= LEAST_WIDTH * row.size for left, right in _places(row)) > 1


def _run_from(rows: Sequence[Row], start: int) -> tuple[int, set[int]]:
    """Return where the rows from one on end that leave the same spaces free, and the lines across these."""
    spans, stop, fullest = _spans(rows[start : start + 1]), start + 1, rows[start]
    across: set[int] = set()
    for at in range(start + 1, len(rows)):
        row, above = rows[at], rows[at - 1]
        if row.table or above.table or above.base - row.base > _MOST_STEP * row.size:
            break
        if max(len(spans), len(row.segments)) > _MOST_COLUMNS or (_is_of_columns(above) and _is_of_columns(row)):
            break
        joined = _joined([*spans, *_places(row)], CELL * row.size)
        is_across = len(row.segments) == 1 and _crosses(row, fullest)
        if len(joined) >= max(_width(fullest), _width(row)) and not is_across:
            spans, stop, fullest = joined, at + 1, max(fullest, row, key=_width)
        elif at > stop or at - start < _LEAST_ROWS or _width(row) >= _width(fullest) or _is_far(rows, at):
            break
        else:
            across.add(at)
    return stop, across


def _is_far(rows: Sequence[Row], at: int) -> bool:
    """Return whether a row stands away from the two above it."""
    return rows[at - 1].base - rows[at].base > _FAR * (rows[at - 2].base - rows[at - 1].base)


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


def _read(rows: Sequence[Row], run: Run, begin: int, rules: Sequence[Rule]) -> _Found | None:
    """Return what a run has of a table, with a row of heads over several columns above it, not before ``begin``."""
    start, stop, across = run
    for end in range(stop, max(start, stop - _MOST_BELOW) - 1, -1):
        if end < stop and len(rows[end].segments) > 1:
            return None
        inner = start, end, across
        if (found := _below_heads(rows, inner, rules)) or (found := _body(rows, inner, rules)):
            return _with_heads(rows, found, begin)
    return None


def _below_heads(rows: Sequence[Row], run: Run, rules: Sequence[Rule]) -> _Found | None:
    """Return a table without its first row, which stands over several of its columns or at other places."""
    start, stop, across = run
    if stop - start <= _LEAST_ROWS or len(rows[start].segments) >= max(map(_width, rows[start:stop])):
        return None
    found = _body(rows, (start + 1, stop, across), rules)
    if found is None or found.table is None:
        return None
    return None if found.table.has_below(rows[start]) and not found.table.over(rows[start]) else found


def _with_heads(rows: Sequence[Row], found: _Found, begin: int) -> _Found:
    """Return a table with the row above if that has heads over its columns."""
    first = found.start - 1
    if found.table is None or first < begin or rows[first].base - rows[first + 1].base > _MOST_LEAD * rows[first].size:
        return found
    heads = found.table.over(rows[first])
    widths = [each.right - each.left for each in rows[first].segments]
    if not heads and (len(widths) == 1 or max(widths) >= LEAST_WIDTH * rows[first].size):
        return found
    return replace(found, start=first, lines=[heads or rows[first].text(rows[first].segments), *found.lines])


def _body(rows: Sequence[Row], run: Run, rules: Sequence[Rule]) -> _Found | None:
    """Return the table of a run, which has a head over each column or none."""
    start, stop, across = run
    inner = [row for at, row in enumerate(rows[start:stop], start) if at not in across]
    if max(map(_width, inner), default=0) < 2 or not _is_row_by_row(inner):
        return None
    columns = _columns(inner)
    table = _Table(inner, columns) if columns else None
    if table is None or not table.is_one() or not table.is_aligned:
        as_it_stands = [row.text(row.segments) for row in rows[start:stop]]
        is_close = _is_narrow(inner) if table is None else table.is_one() and not table.is_parted
        return _Found(start=start, stop=stop, lines=as_it_stands) if is_close else None
    near = crossing(rules, table.gutters, rows[start:stop])
    if len({y for y, _, _ in near if rows[stop - 1].base < y < rows[start].base}) >= 2:
        parts = ruled_lines(rows[start:stop], table.gutters, near, from_right=is_from_right(inner))
        lines = [line for _, lines in parts for line in lines]
    else:
        placed = [(row.base, row.text(row.segments)) for row in (rows[at] for at in across if start <= at < stop)]
        lines = [line for _, line in sorted([*table.lines(), *placed], key=lambda each: -each[0])]
    return _Found(start=start, stop=stop, lines=lines, table=table)


def _is_narrow(rows: Sequence[Row]) -> bool:
    """Return whether the texts of rows are shorter than lines of columns."""
    return fmean(right - left for row in rows for left, right in _places(row)) < LEAST_WIDTH * rows[0].size


def _is_row_by_row(rows: Sequence[Row]) -> bool:
    """Return whether the file has most rows one after the other, not column by column."""
    orders = [
        [word.blanks for segment in row.segments for word in segment.words] for row in rows if len(row.segments) > 1
    ]
    return 2 * sum(max(above) > min(below) for above, below in pairwise(orders)) < len(orders)


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
    return None if any(before[1] > after[0] for before, after in pairwise(columns)) else columns


class _Table:
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
        if sum(count > 1 for count in filled) < _LEAST_ROWS - (len(self._columns) > 2) or _is_typed(self._rows):
            return False
        size = median(row.size for row in self._rows)
        wide = [
            at
            for at, cells in enumerate(self._body)
            if cells and fmean(cell[-1].right - cell[0].left for cell in cells) >= LEAST_WIDTH * size
        ]
        is_list = len(self._columns) == 2 and wide == [1] and all(begins_with_mark(cell) for cell in self._body[0])
        return not wide or (len(wide) == 1 and len(self._groups) >= _LEAST_ROWS and not is_list)

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
        """Return a row whose texts stand over the middles of one or several columns each; "" if it has no such."""
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
