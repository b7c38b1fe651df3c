"""Tables without lines, by the places of their cells in all rows, of files that place each cell apart."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from statistics import fmean, median

from .aligned_table import LEAST_ROWS, AlignedTable
from .letters import CELL
from .pictures import Rule
from .rows import LEAST_WIDTH, Row, Segment, Span, is_from_right
from .tables import crossing, ruled_lines

_FAR = 1.6
"""Least distance of rows that stand away from each other, in usual distances of rows."""
_MOST_STEP = 5.0
"""Most distance of the rows of a table, in heights of letters."""
_FEW_ROWS = 4
_MOST_COLUMNS = 100
_MOST_HALVES = 8
_MOST_LEAD = 4.0
"""Most distance of heads over several columns to the row below, in heights of letters."""
_MOST_BELOW = 2
"""Most lines below a table that leave the same space free."""
_MOST_HEADS = 3
"""Most lines of the heads of columns."""

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
    table: AlignedTable | None = None
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
    if len(steps) < LEAST_ROWS:
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
        elif at > stop or at - start < LEAST_ROWS or _width(row) >= _width(fullest) or _is_far(rows, at):
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
    unclear = None
    for end in range(stop, max(start, stop - _MOST_BELOW) - 1, -1):
        if end < stop and len(rows[end].segments) > 1:
            break
        inner = start, end, across
        if (found := _below_heads(rows, inner, rules)) or (found := _body(rows, inner, rules)):
            if found.table is not None:
                return _with_heads(rows, found, begin)
            unclear = unclear or found
    return unclear


def _below_heads(rows: Sequence[Row], run: Run, rules: Sequence[Rule]) -> _Found | None:
    """Return a table without its first row, which stands over several of its columns or at other places."""
    start, stop, across = run
    if stop - start <= LEAST_ROWS or len(rows[start].segments) >= max(map(_width, rows[start:stop])):
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
    table = AlignedTable(inner, columns) if columns else None
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
