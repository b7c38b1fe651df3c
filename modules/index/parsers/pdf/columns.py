"""The order in which the words of a page are read: columns one after the other, the rows of a table across."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from statistics import median

from .aligned import TablePart, parts_of
from .bands import bands_of, begins_with_mark, grids_in, tables_in
from .grids import grids_of
from .letters import CELL
from .lines import Line, joined_lines
from .pictures import Rule, Rules
from .rows import LEAST_WIDTH, PARAGRAPH, Row, Segment, Span, divided, is_from_right, rows_of
from .sideways import upright_heads
from .tables import crossing, is_across, row_text, ruled_lines, table_lines
from .words import Word

_LEAST_LINES = 3
_WIDE = 18.0
"""Mean width of lines that are those of a column if there are only two of them."""
_WIDE_GUTTER = 1.5
"""Least width of a space that parts the cells of two lines only, in heights of letters."""
_MOST_BETWEEN = 3
"""Most rows from one that a space parts to the next one of a table, whose cells may have several lines."""
_MAX_DEPTH = 3
_MOST_KERNED = 0.3
"""Most overlap of two letters that are moved together, as the T and the o of "To", in heights of letters."""


def in_reading_order(words: Sequence[Word], rules: Rules | None = None) -> str:
    """Return the text of a page; lines that are turned against the others follow them.

    Args:
        words: The words of the page.
        rules: Lines of the page, by which tables are distinguished from columns, and their cells from each other.
    """
    turned: defaultdict[int, list[Word]] = defaultdict(list)
    if any(word.turn for word in words):
        words = [word for part in upright_heads(words) for word in part]
    for word in words:
        turned[word.turn].append(word)
    parts = [
        _upright(_whole_words(turned[turn]) if turn else turned[turn], rules if turn == 0 and rules else Rules())
        for turn in sorted(turned)
    ]
    return "\n\n".join(filter(None, parts))


def _whole_words(words: Sequence[Word]) -> list[Word]:
    """Return turned words, with those as one that touch: PDFium may give their parts in another order."""
    whole: list[Word] = []
    for row in rows_of(words):
        line = [word for segment in row.segments for word in segment.words]
        for before, word in pairwise([None, *line]):
            if before is not None and word is not None and _touch(before, word):
                whole[-1].text += word.text
                whole[-1].right = word.right
            elif word is not None:
                whole.append(word)
    return whole


def _touch(before: Word, word: Word) -> bool:
    near = CELL * word.size
    gap = word.left - before.right
    return (
        -_MOST_KERNED * word.size < gap < near
        and abs(word.base - before.base) < near
        and abs(word.size - before.size) < near
        and not (before.script or word.script)
        and before.is_struck == word.is_struck
    )


def _upright(words: Sequence[Word], rules: Rules) -> str:
    left, across = list(words), rules.across
    tables: list[Row] = []
    for grid in grids_of(rules):
        inner = [word for word in left if grid.holds(word)]
        if not inner or (lines := table_lines(grid, inner)) is None:
            continue
        left = [word for word in left if not grid.holds(word)]
        across = [rule for rule in across if not grid.has(rule)]
        whole = replace(inner[0], left=grid.lefts[0], right=grid.lefts[-1], base=grid.tops[0])
        tables.append(Row(whole.base, whole.size, (Segment((whole,)),), table="\n".join(lines)))
    rows = rows_of(left)
    if tables:
        rows = sorted([*rows, *tables], key=lambda row: -row.base)
    are_placed = any(word.is_placed for word in left)
    return joined_lines(_lines(rows, across, _MAX_DEPTH, are_placed=are_placed))


def _lines(rows: Sequence[Row], rules: Sequence[Rule], depth: int, *, are_placed: bool) -> Iterator[Line]:
    """Yield the lines of some rows in the order of reading; ``are_placed`` if the file places cells apart."""
    if are_placed:
        rows = [row for part in parts_of(rows, rules) for row in (part.rows if part.lines is None else [_whole(part)])]
    across: list[Row] = []
    for band, gutters in bands_of(rows):
        heights = {y for y, _, _ in crossing(rules, gutters, band) if band[-1].base < y < band[0].base}
        parts = list(tables_in(band, gutters)) if depth and gutters and len(heights) < 2 else []
        lines = [row for part, is_table in parts if not is_table for row in part]
        columns = [each for each in gutters if lines and _is_between_columns(lines, each)]
        if not columns:
            across += band
            continue
        for part, is_table in parts:
            if is_table:
                across += part
                continue
            yield from _across(across, rules)
            across = []
            for column in filter(None, _cut(part, columns, from_right=is_from_right(band))):
                for number, (line, is_new) in enumerate(_lines(column, rules, depth - 1, are_placed=are_placed)):
                    yield line, is_new or not number
    yield from _across(across, rules)


def _whole(part: TablePart) -> Row:
    """Return the rows of a table as one."""
    places = [segment for row in part.rows for segment in row.segments]
    word = replace(places[0].words[0], left=min(each.left for each in places), right=max(each.right for each in places))
    return replace(part.rows[0], segments=(Segment((word,)),), table="\n".join(part.lines or ()))


def _across(rows: Sequence[Row], rules: Sequence[Rule]) -> Iterator[Line]:
    """Yield lines that are read across, with the cells of tables."""
    last: Row | None = None
    parts = [(part, gutters, _between_cells(part, gutters)) for part, gutters in grids_in(rows)]
    next_cells = [*(cells for _, _, cells in parts[1:]), []]
    for (part, gutters, cells), below in zip(parts, next_cells[: len(parts)], strict=True):
        from_right = is_from_right(part)
        near = crossing(rules, gutters, part)
        if len({y for y, _, _ in near if part[-1].base < y < part[0].base}) >= 2:
            groups = list(ruled_lines(part, gutters, near, from_right=from_right))
        else:
            own = (
                gutters if len(part) == 1 and below and len(gutters) == len(below) else cells
            )  # heads of other columns
            groups = [
                (
                    [row],
                    [
                        row_text(
                            row, () if len(row.segments) == 1 and is_across(row, own) else own, from_right=from_right
                        )
                    ],
                )
                for row in part
            ]
        for group, lines in groups:
            is_new = last is None or _begins_block(last, group[0])
            for number, line in enumerate(lines):
                yield line, is_new and not number
            last = group[-1]


def _between_cells(rows: Sequence[Row], gutters: Sequence[Span]) -> list[Span]:
    cells = [gutter for gutter in gutters if _is_between_cells(rows, gutter)]
    return [] if len(cells) == 1 and _is_list(rows, cells[0]) else cells


def _begins_block(last: Row, row: Row) -> bool:
    """Return whether a row does not belong to the paragraph of the one above."""
    return bool(last.table or row.table) or last.base - row.base > PARAGRAPH * max(row.size, last.size)


def _is_between_columns(rows: Sequence[Row], gutter: Span) -> bool:
    """Return whether the lines on both sides are many and wide enough to be read one column after the other."""
    size = median(row.size for row in rows)
    for side in zip(*(divided(row, [gutter]) for row in rows), strict=True):
        lines = [each for each in side if each]
        width = sum(each[-1].right - each[0].left for each in lines) / (len(lines) or 1) / size
        if width < LEAST_WIDTH or len(lines) < (2 if width >= _WIDE else _LEAST_LINES):
            return False
    return True


def _is_between_cells(rows: Sequence[Row], gutter: Span) -> bool:
    middle = sum(gutter) / 2
    full = [at for at, row in enumerate(rows) if row.segments[0].right <= middle <= row.segments[-1].left]
    steps = [below - above for above, below in pairwise(full)]
    if len(steps) == 1:
        return steps[0] == 1 and gutter[1] - gutter[0] >= _WIDE_GUTTER * rows[0].size
    return any(max(two) <= _MOST_BETWEEN for two in pairwise(steps))


def _is_list(rows: Sequence[Row], gutter: Span) -> bool:
    """Return whether numbers or bullets stand on the left, and lines of text on the right."""
    sides = [(left, right, row.size) for row in rows for left, right in [divided(row, [gutter])] if left and right]
    widths = [(right[-1].right - right[0].left) / size for _, right, size in sides]
    is_marked = all(begins_with_mark(left) and len(left) == 1 for left, _, _ in sides)
    return is_marked and sum(widths) >= LEAST_WIDTH * len(widths)


def _cut(rows: Sequence[Row], gutters: Sequence[Span], *, from_right: bool) -> Iterator[list[Row]]:
    """Yield the rows of each column in the order of reading."""
    parts = [
        [Row(row.base, row.size, part, row.backwards, row.table) for part in divided(row, gutters)] for row in rows
    ]
    columns = [[row for row in column if row.segments] for column in zip(*parts, strict=True)]
    yield from reversed(columns) if from_right else columns
