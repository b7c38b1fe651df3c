"""The order in which the words of a page are read: columns one after the other, the rows of a table across."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from statistics import median

from .pdf_lines import joined_lines
from .pdf_words import Word
from .scripts import with_marks

_GUTTER = 0.7
"""Least width of the space between columns, in heights of letters; also the least gap that can be such a space."""
_LEAST_LINES = 3
_LEAST_WIDTH = 9.0
"""Least mean width of a column's lines, in heights of letters; those of tables are mostly narrower."""
_MAX_DEPTH = 3

Rule = tuple[float, float, float]
"""A horizontal line: its height, where it begins and where it ends."""
Span = tuple[float, float]


@dataclass(frozen=True)
class _Segment:
    """Words of a line without a wide gap."""

    words: tuple[Word, ...]

    @cached_property
    def left(self) -> float:
        return min(word.left for word in self.words)

    @cached_property
    def right(self) -> float:
        return max(word.right for word in self.words)

    @property
    def text(self) -> str:
        pieces = [
            (("" if not number or not word.is_apart else " ") + word.text, word.script)
            for number, word in enumerate(self.words)
        ]
        return with_marks(pieces)


@dataclass(frozen=True)
class _Row:
    """Segments at one height, from left to right."""

    base: float
    size: float
    segments: tuple[_Segment, ...]


def in_reading_order(words: Sequence[Word], rules: Sequence[Rule] = ()) -> str:
    """Return the text of a page; lines that are turned against the others follow them.

    Args:
        words: The words of the page.
        rules: Horizontal lines of the page, by which a table is told from columns.
    """
    turned: defaultdict[int, list[Word]] = defaultdict(list)
    for word in words:
        turned[word.turn].append(word)
    parts = [_upright(turned[turn], rules if turn == 0 else ()) for turn in sorted(turned)]
    return "\n\n".join(filter(None, parts))


def _upright(words: Sequence[Word], rules: Sequence[Rule]) -> str:
    return joined_lines(_lines(_rows(words), rules, _MAX_DEPTH))


def _rows(words: Sequence[Word]) -> list[_Row]:
    """Return the rows of some words, from above; words of one row stand at nearly the same height."""
    rows: list[list[Word]] = []
    for word in sorted(words, key=lambda word: -word.base):
        if rows and rows[-1][0].base - word.base <= 0.3 * min(word.size, rows[-1][0].size):
            rows[-1].append(word)
        else:
            rows.append([word])
    return [_Row(row[0].base, median(word.size for word in row), tuple(_segments(row))) for row in rows]


def _segments(row: Sequence[Word]) -> Iterator[_Segment]:
    order = sorted(row, key=lambda word: word.left)
    segment = [order[0]]
    reach = order[0].right
    for word in order[1:]:
        if word.left - reach >= _GUTTER * max(word.size, segment[-1].size):
            yield _Segment(tuple(_read(segment)))
            segment = []
        segment.append(word)
        reach = max(reach, word.right) if len(segment) > 1 else word.right
    yield _Segment(tuple(_read(segment)))


def _read(words: list[Word]) -> list[Word]:
    """Return words from left to right in their order of reading."""
    right_to_left = sum(len(word.text) for word in words if "\u0590" <= word.text[0] <= "\u08ff")
    return words[::-1] if 2 * right_to_left > sum(len(word.text) for word in words) else words


def _lines(rows: Sequence[_Row], rules: Sequence[Rule], depth: int) -> Iterator[tuple[str, bool]]:
    """Yield the lines of some rows in the order of reading, each with whether a new block begins there."""
    for band, gutters in _bands(rows):
        columns = [gutter for gutter in gutters if depth and _is_between_columns(band, gutter, rules)]
        if columns:
            for part in _cut(band, columns):
                for number, (line, is_new) in enumerate(_lines(part, rules, depth - 1)):
                    yield line, is_new or not number
            continue
        cells = [gutter for gutter in gutters if _is_between_cells(band, gutter)]
        for number, row in enumerate(band):
            before = band[number - 1] if number else None
            is_new = before is None or before.base - row.base > 1.6 * max(row.size, before.size)
            yield _row_text(row, cells), is_new


def _row_text(row: _Row, gutters: Sequence[Span]) -> str:
    """Return the segments of a row, those of a table cell by cell, also empty ones before the last."""
    cells = [" ".join(segment.text for segment in inside) for inside in _divided(row, gutters)]
    return " | ".join(cells).rstrip(" |") if any(cells[1:]) else cells[0]


def _bands(rows: Sequence[_Row]) -> Iterator[tuple[list[_Row], list[Span]]]:
    """Yield consecutive rows that leave the same vertical spaces free, with those spaces."""
    band: list[_Row] = []
    free: list[Span] = []
    for row in rows:
        gaps = _gaps(row)
        common = _common(free, gaps, row.size) if band else gaps
        if band and not _inner(common, [*band, row]) and (_inner(free, band) or _inner(gaps, [row])):
            yield from _trimmed(band, _inner(free, band))
            band, common = [], gaps
        band.append(row)
        free = common
    if band:
        yield from _trimmed(band, _inner(free, band))


def _trimmed(band: list[_Row], gutters: list[Span]) -> Iterator[tuple[list[_Row], list[Span]]]:
    """Yield a band, its first and last row apart where they stand away from the others, as running titles do."""
    first, last = 0, len(band)
    if len(band) > _LEAST_LINES and gutters:
        steps = [above.base - below.base for above, below in pairwise(band)]
        usual = 1.6 * median(steps)
        first, last = int(steps[0] > usual), len(band) - int(steps[-1] > usual)
    if first:
        yield band[:first], gutters
    yield band[first:last], gutters
    if last < len(band):
        yield band[last:], gutters


def _gaps(row: _Row) -> list[Span]:
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
        if right - left >= _GUTTER * size:
            common.append((left, right))
        if free[first][1] < gaps[second][1]:
            first += 1
        else:
            second += 1
    return common


def _inner(spaces: Sequence[Span], rows: Sequence[_Row]) -> list[Span]:
    """Return the spaces that have words on both sides."""
    left = min(row.segments[0].left for row in rows)
    right = max(row.segments[-1].right for row in rows)
    return [space for space in spaces if space[0] >= left and space[1] <= right]


def _sides(rows: Sequence[_Row], gutter: Span) -> tuple[list[_Segment], list[_Segment]]:
    middle = sum(gutter) / 2
    all_segments = [segment for row in rows for segment in row.segments]
    return [each for each in all_segments if each.right <= middle], [
        each for each in all_segments if each.left >= middle
    ]


def _is_between_columns(rows: Sequence[_Row], gutter: Span, rules: Sequence[Rule]) -> bool:
    size = median(row.size for row in rows)
    middle = sum(gutter) / 2
    crossing = sum(
        left < gutter[0] and gutter[1] < right and rows[-1].base < y < rows[0].base for y, left, right in rules
    )
    if crossing >= 2:
        return False
    for side in _sides(rows, gutter):
        lines = (
            sum(any((each.left >= middle) == (side[0].left >= middle) for each in row.segments) for row in rows)
            if side
            else 0
        )
        if lines < _LEAST_LINES or sum(each.right - each.left for each in side) / lines < _LEAST_WIDTH * size:
            return False
    return True


def _is_between_cells(rows: Sequence[_Row], gutter: Span) -> bool:
    middle = sum(gutter) / 2
    return sum(row.segments[0].right <= middle <= row.segments[-1].left for row in rows) >= 2


def _cut(rows: Sequence[_Row], gutters: Sequence[Span]) -> Iterator[list[_Row]]:
    """Yield the rows of each column, from left to right."""
    parts = [[_Row(row.base, row.size, part) for part in _divided(row, gutters)] for row in rows]
    yield from ([row for row in column if row.segments] for column in zip(*parts, strict=True))


def _divided(row: _Row, gutters: Sequence[Span]) -> list[tuple[_Segment, ...]]:
    """Return the segments of a row between gutters, from left to right."""
    edges = [float("-inf"), *(sum(gutter) / 2 for gutter in gutters), float("inf")]
    return [tuple(each for each in row.segments if left <= each.left < right) for left, right in pairwise(edges)]
