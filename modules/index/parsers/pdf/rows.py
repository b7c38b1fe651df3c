"""The words of a page as rows of segments, and rows cut by columns."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from statistics import median

from .words import Word
from ..scripts import with_marks

GUTTER = 0.7
"""Least width of the space between columns, in heights of letters; also the least gap that can be such a space."""
PARAGRAPH = 1.6
"""Least distance of the lines of two paragraphs, in heights of letters."""
Span = tuple[float, float]
"""Where something begins and ends, from left to right."""


@dataclass(frozen=True)
class Segment:
    """Words of a line without a wide gap."""

    words: tuple[Word, ...]

    @cached_property
    def left(self) -> float:
        """Where the segment begins."""
        return min(word.left for word in self.words)

    @cached_property
    def right(self) -> float:
        """Where the segment ends."""
        return max(word.right for word in self.words)

    @property
    def text(self) -> str:
        """The words as a reader reads them, with marks before scripts."""
        pieces = [
            (("" if not number or not word.is_apart else " ") + word.text, word.script)
            for number, word in enumerate(self.words)
        ]
        return with_marks(pieces)


@dataclass(frozen=True)
class Row:
    """Segments at one height, from left to right."""

    base: float
    size: float
    segments: tuple[Segment, ...]


def rows_of(words: Sequence[Word]) -> list[Row]:
    """Return the rows of some words, from above; words of one row stand at nearly the same height."""
    rows: list[list[Word]] = []
    for word in sorted(words, key=lambda word: -word.base):
        if rows and rows[-1][0].base - word.base <= 0.3 * min(word.size, rows[-1][0].size):
            rows[-1].append(word)
        else:
            rows.append([word])
    return [Row(row[0].base, median(word.size for word in row), tuple(_segments(row))) for row in rows]


def _segments(row: Sequence[Word]) -> Iterator[Segment]:
    order = sorted(row, key=lambda word: word.left)
    segment = [order[0]]
    reach = order[0].right
    for word in order[1:]:
        if word.left - reach >= GUTTER * max(word.size, segment[-1].size):
            yield Segment(tuple(_read(segment)))
            segment = []
        segment.append(word)
        reach = max(reach, word.right) if len(segment) > 1 else word.right
    yield Segment(tuple(_read(segment)))


def _read(words: list[Word]) -> list[Word]:
    """Return words from left to right in their order of reading."""
    right_to_left = sum(len(word.text) for word in words if "\u0590" <= word.text[0] <= "\u08ff")
    return words[::-1] if 2 * right_to_left > sum(len(word.text) for word in words) else words


def divided(row: Row, gutters: Sequence[Span]) -> list[tuple[Segment, ...]]:
    """Return the segments of a row between gutters, from left to right."""
    edges = [float("-inf"), *(sum(gutter) / 2 for gutter in gutters), float("inf")]
    return [tuple(each for each in row.segments if left <= each.left < right) for left, right in pairwise(edges)]
