"""The words of a page as rows of segments, and rows cut by columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from statistics import median

from ....reading.scripts import with_marks
from .directions import has_right_to_left, in_order, is_backwards
from .struck import with_strikes
from .words import Word

GUTTER = 0.7
"""Least width of the space between columns, in heights of letters; also the least gap that can be such a space."""
PARAGRAPH = 1.6
"""Least distance of the lines of two paragraphs, in heights of letters."""
LEAST_WIDTH = 9.0
"""Least mean width of a column's lines, in heights of letters; those of tables are mostly narrower."""
Span = tuple[float, float]
"""Where something begins and ends, from left to right."""


@dataclass(frozen=True)
class Segment:
    """Words of a line without a wide gap."""

    words: tuple[Word, ...]
    """From left to right."""

    @cached_property
    def left(self) -> float:
        """Where the segment begins."""
        return min(word.left for word in self.words)

    @cached_property
    def right(self) -> float:
        """Where the segment ends."""
        return max(word.right for word in self.words)


@dataclass(frozen=True)
class Row:
    """Segments at one height, from left to right."""

    base: float
    size: float
    segments: tuple[Segment, ...]
    backwards: bool = False
    """True if it is read from right to left."""
    table: str = ""
    """The lines of a table that stands here; its segment is as wide as the table."""

    def text(self, segments: Sequence[Segment], *, backwards: bool = False) -> str:
        """Return some of its segments as a reader reads them, with marks before scripts.

        Args:
            segments: The segments, from left to right.
            backwards: True if they are read from right to left though the row may not be.
        """
        backwards = backwards or self.backwards
        words = [word for segment in segments for word in segment.words]
        if backwards or has_right_to_left(words):
            return with_marks(in_order(words, backwards=backwards))
        return " ".join(
            with_marks(
                with_strikes(
                    ((" " if at and word.is_apart else "") + word.text, word.script, word.is_struck)
                    for at, word in enumerate(each.words)
                )
            )
            for each in segments
        )


def rows_of(words: Sequence[Word]) -> list[Row]:
    """Return the rows of some words, from above; words of one row stand at nearly the same height."""
    rows: list[list[Word]] = []
    for word in sorted(words, key=lambda word: -word.base):
        if rows and rows[-1][0].base - word.base <= 0.3 * min(word.size, rows[-1][0].size):
            rows[-1].append(word)
        else:
            rows.append([word])
    ordered = [sorted(row, key=lambda word: word.left) for row in rows]
    mixed = {at for at, row in enumerate(ordered) if has_right_to_left(row)} if has_right_to_left(words) else set()
    among = 2 * sum(is_backwards(ordered[at]) for at in mixed) > len(rows)
    return [
        Row(
            row[0].base,
            median(word.size for word in row),
            tuple(_segments(row)),
            at in mixed and is_backwards(row, among=among),
        )
        for at, row in enumerate(ordered)
    ]


def _segments(row: Sequence[Word]) -> Iterator[Segment]:
    segment = [row[0]]
    reach = row[0].right
    for word in row[1:]:
        if word.left - reach >= GUTTER * max(word.size, segment[-1].size):
            yield Segment(tuple(segment))
            segment = []
        segment.append(word)
        reach = max(reach, word.right) if len(segment) > 1 else word.right
    yield Segment(tuple(segment))


def is_from_right(rows: Sequence[Row]) -> bool:
    """Return whether the columns of some rows are read from right to left, as the first row or most of them are."""
    return rows[0].backwards or (
        any(row.backwards for row in rows)
        and is_backwards([word for row in rows for segment in row.segments for word in segment.words])
    )


def divided(row: Row, gutters: Sequence[Span]) -> list[tuple[Segment, ...]]:
    """Return the segments of a row between gutters, from left to right."""
    edges = [float("-inf"), *(sum(gutter) / 2 for gutter in gutters), float("inf")]
    return [tuple(each for each in row.segments if left <= each.left < right) for left, right in pairwise(edges)]
