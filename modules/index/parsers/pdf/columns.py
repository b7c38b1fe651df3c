"""The order in which the words of a page are read: columns one after the other, the rows of a table across."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from statistics import median

from .bands import bands_of
from .lines import Line, joined_lines
from .pictures import Rule
from .rows import PARAGRAPH, Row, Span, divided, is_from_right, rows_of
from .tables import row_text, ruled_lines
from .words import Word

_LEAST_LINES = 3
_LEAST_WIDTH = 9.0
"""Least mean width of a column's lines, in heights of letters; those of tables are mostly narrower."""
_WIDE = 18.0
"""Mean width of lines that are those of a column if there are only two of them."""
_MAX_DEPTH = 3


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
    return joined_lines(_lines(rows_of(words), rules, _MAX_DEPTH))


def _lines(rows: Sequence[Row], rules: Sequence[Rule], depth: int) -> Iterator[Line]:
    """Yield the lines of some rows in the order of reading."""
    last: Row | None = None
    for band, gutters in bands_of(rows):
        from_right = is_from_right(band)
        crossing = [rule for rule in rules if any(rule[1] < left and right < rule[2] for left, right in gutters)]
        heights = sorted({y for y, _, _ in crossing if band[-1].base < y < band[0].base})
        if columns := [each for each in gutters if depth and len(heights) < 2 and _is_between_columns(band, each)]:
            for part in _cut(band, columns, from_right=from_right):
                for number, (line, is_new) in enumerate(_lines(part, rules, depth - 1)):
                    yield line, is_new or not number
            last = None
            continue
        if len(heights) >= 2:
            yield from ruled_lines(band, gutters, sorted({y for y, _, _ in crossing}), from_right=from_right)
            last = None
            continue
        cells = [gutter for gutter in gutters if _is_between_cells(band, gutter)]
        for row in band:
            is_new = last is None or last.base - row.base > PARAGRAPH * max(row.size, last.size)
            yield row_text([row], cells, from_right=from_right), is_new
            last = row


def _is_between_columns(rows: Sequence[Row], gutter: Span) -> bool:
    """Return whether the lines on both sides are many and wide enough to be read one column after the other."""
    size = median(row.size for row in rows)
    for side in zip(*(divided(row, [gutter]) for row in rows), strict=True):
        lines = [each for each in side if each]
        width = sum(each[-1].right - each[0].left for each in lines) / (len(lines) or 1) / size
        if width < _LEAST_WIDTH or len(lines) < (2 if width >= _WIDE else _LEAST_LINES):
            return False
    return True


def _is_between_cells(rows: Sequence[Row], gutter: Span) -> bool:
    middle = sum(gutter) / 2
    return sum(row.segments[0].right <= middle <= row.segments[-1].left for row in rows) >= 2


def _cut(rows: Sequence[Row], gutters: Sequence[Span], *, from_right: bool) -> Iterator[list[Row]]:
    """Yield the rows of each column in the order of reading."""
    parts = [[Row(row.base, row.size, part, row.backwards) for part in divided(row, gutters)] for row in rows]
    columns = [[row for row in column if row.segments] for column in zip(*parts, strict=True)]
    yield from reversed(columns) if from_right else columns
