"""Letters of a page that are struck out by a thin line through them, also if they are a part of a word."""

from __future__ import annotations

import math
from bisect import bisect_left, bisect_right
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field

from ....reading.scripts import Script
from .letters import PageLetters, Piece
from .objects import Box
from .strokes import PageStrokes, Stroke

_ON_LINE = 0.19, 0.48
"""Where a line strikes a letter out, above the line it stands on, in sizes of its font."""
_RAISED = -0.5, 1.0
"""Where it strikes out a smaller letter that is raised or lowered beside others that it strikes out."""
_SMALL = 0.88
"""Most size of such a letter, in sizes of the others."""
_UNDERLINE = 0.04
"""Least distance of an underline from the line that letters stand on, in sizes of their font."""
_THICKNESS, _WAVES = 0.2, 0.35
"""Most thickness of a line, and most height of waves, in sizes of the letters; more is a band of colour behind them."""
_LEAST_THICKNESS = 0.8
"""Thickness of a line that is thin for letters of all sizes, in points: browsers draw none that is thinner."""
_FLAT = 2.0
"""Least length of a line, in thicknesses of it."""
_REACH = 0.35
"""Most that such a line reaches beyond its letters, in sizes of their font; a table's reaches further."""
_MOST_NEAR = 50
"""Most heights of lines at that of a letter; a page with more there is a drawing."""
_LEVEL = 0.02
"""Most difference of the heights of lines that are found together, in points."""
_CUT = 0.15
"""Most that it reaches into a letter beside them, in sizes of their font."""
_COVERED = 0.6
"""Least length of such a line, in lengths of its letters."""
_TOUCHING = 1.0
"""Most distance of two lines that follow each other, in points."""
_NEAR = 10.0
"""Most difference of the heights of such lines, in points."""
MARK = "~~"


@dataclass(slots=True)
class _Line:
    """A line that lies flat, and the letters that it may strike out."""

    stroke: Stroke
    box: Box
    letters: list[tuple[int, int]] = field(default_factory=list)
    """Each as the number of its piece and its place in it."""
    left: float = math.inf
    right: float = -math.inf
    size: float = 0.0
    """That of the largest of the letters."""
    cut: float = 0.0
    """Most that it reaches into a letter that it does not strike out."""

    @property
    def height(self) -> float:
        """Where it is between above and below."""
        return (self.box[1] + self.box[3]) / 2

    def is_thin(self, size: float) -> bool:
        """Return whether it is thin for letters of a size."""
        most = _WAVES if self.stroke.is_wavy else _THICKNESS
        return self.stroke.is_quad or self.box[3] - self.box[1] <= max(most * size, _LEAST_THICKNESS)

    def take(self, number: int, piece: Piece, letters: PageLetters) -> None:
        """Add the letters of a piece whose middles it crosses."""
        for at, (left, right) in enumerate(letters.places_of(piece)):
            if self.box[0] <= (left + right) / 2 <= self.box[2]:
                self.letters.append((number, at))
                self.left, self.right = min(self.left, left), max(self.right, right)
                self.size = max(self.size, piece.size)
            elif self.box[0] < right and left < self.box[2]:
                self.cut = max(self.cut, min(right, self.box[2]) - max(left, self.box[0]))

    def is_as_long(self) -> bool:
        """Return whether it strikes letters out, and begins and ends where they do."""
        begin, end, reach = self.box[0], self.box[2], _REACH * self.size
        if not self.letters or self.stroke.is_quad:
            return bool(self.letters)
        is_over = end - begin >= _COVERED * (self.right - self.left) and self.cut <= _CUT * self.size
        return is_over and abs(self.left - begin) <= reach and abs(self.right - end) <= reach


def struck_pieces(
    pieces: Sequence[Piece], letters: PageLetters, strokes: PageStrokes
) -> tuple[Sequence[Piece], list[Box]]:
    """Return pieces of a page with those apart that are struck out, and where the lines are that strike them out.

    Args:
        pieces: The pieces, in the order of the file.
        letters: The letters of the page.
        strokes: The thin lines of the page.
    """
    if not strokes:
        return pieces, []
    turned: defaultdict[int, list[int]] = defaultdict(list)
    for number, piece in enumerate(pieces):
        turned[(piece.turn - strokes.shown) % 360].append(number)
    striking = [
        line for own, numbers in turned.items() for line in _striking(pieces, numbers, letters, strokes.turned(own))
    ]
    striking = [
        line
        for line, is_seen in zip(striking, strokes.visible(each.stroke for each in striking), strict=True)
        if is_seen
    ]
    struck: defaultdict[int, set[int]] = defaultdict(set)
    for line in striking:
        for number, at in line.letters:
            struck[number].add(at)
    parted = [
        part
        for number, piece in enumerate(pieces)
        for part in (_parted(piece, letters, struck[number]) if number in struck else (piece,))
    ]
    return parted, [line.stroke.box for line in striking]


def with_strikes(texts: Iterable[tuple[str, Script, bool]]) -> Iterator[tuple[str, Script]]:
    """Yield the texts of a line with ``~~`` before and behind those that are struck out.

    Args:
        texts: Each with its script, and whether it is struck out; it may begin with a space.

    >>> list(with_strikes([("for", "", False), (" 40", "", True), (" 50", "", False)]))
    [('for', ''), (' ', ''), ('~~', ''), ('40', ''), ('~~', ''), (' 50', '')]
    """
    is_open = False
    for text, script, is_struck in texts:
        if is_open and not is_struck:
            yield MARK, ""
        if is_struck and not is_open:
            if text[:1] == " ":
                yield " ", ""
            yield MARK, ""
            yield text.removeprefix(" "), script
        else:
            yield text, script
        is_open = is_struck
    if is_open:
        yield MARK, ""


def _striking(
    pieces: Sequence[Piece], numbers: Sequence[int], letters: PageLetters, placed: Sequence[tuple[Stroke, Box]]
) -> list[_Line]:
    """Return the lines that strike letters out, out of those along some pieces, which are given from below."""
    lines = [_Line(stroke, box) for stroke, box in placed if stroke.is_quad or _is_flat(box)]
    _cross(lines, [(number, pieces[number]) for number in numbers], letters)
    striking = [line for line in lines if line.is_as_long()]
    ends = _ends_of(striking)
    others = [line for line in lines if not line.is_as_long() and (line.letters or _follows(line, ends))]
    if striking or others:
        most = _SMALL * max(line.size for line in lines)
        small = [(number, pieces[number]) for number in numbers if pieces[number].size <= most]
        _cross(sorted([*striking, *others], key=lambda line: line.height), small, letters, beside=True)
    return striking + [line for line in others if line.is_as_long()]


def _cross(
    lines: Sequence[_Line], pieces: Iterable[tuple[int, Piece]], letters: PageLetters, *, beside: bool = False
) -> None:
    """Give lines the letters that they cross.

    Args:
        lines: The lines, from below.
        pieces: The pieces of the letters, with their numbers.
        letters: The letters of the page.
        beside: True for letters that are raised or lowered beside others that the lines may strike out.
    """
    low, high = _RAISED if beside else _ON_LINE
    levels = _levels(lines)
    heights = [level[0].height for level in levels]
    host: Piece | None = None
    for number, piece in pieces:
        lowest = piece.base + low * piece.size
        if host is not None and _is_lowered(piece, host) and not beside:
            lowest = max(lowest, host.base - _UNDERLINE * host.size)
        else:
            host = piece
        first, last = bisect_left(heights, lowest), bisect_right(heights, piece.base + high * piece.size)
        for level in levels[first:last] if last - first <= _MOST_NEAR else ():
            for at in range(bisect_right(level, piece.left, key=_end_of), len(level)):
                line = level[at]
                if line.box[0] >= piece.right:
                    break
                if line.is_thin(max(piece.size, line.size)):
                    line.take(number, piece, letters)


def _levels(lines: Sequence[_Line]) -> list[list[_Line]]:
    """Return lines that are given from below by their heights, those of one height from the left."""
    levels: list[list[_Line]] = []
    for line in lines:
        if levels and line.height - levels[-1][0].height <= _LEVEL:
            levels[-1].append(line)
        else:
            levels.append([line])
    return [sorted(level, key=_end_of) for level in levels]


def _end_of(line: _Line) -> float:
    return line.box[2]


def _is_lowered(piece: Piece, host: Piece) -> bool:
    """Return whether a piece stands lower than one before it, as an index does, which an underline may cross."""
    is_smaller = piece.size <= _SMALL * host.size and piece.turn == host.turn
    return is_smaller and 0 < host.base - piece.base < 0.5 * host.size and piece.left >= host.left


def _is_flat(box: Box) -> bool:
    return box[2] - box[0] > _FLAT * (box[3] - box[1])


_Ends = Mapping[tuple[int, int, int], Sequence[_Line]]
"""Lines by their side, their place there and their height, both in whole points or tens of them."""


def _ends_of(lines: Iterable[_Line]) -> _Ends:
    """Return lines by the places of their ends: 0 for the left ones, 1 for the right ones."""
    ends: defaultdict[tuple[int, int, int], list[_Line]] = defaultdict(list)
    for line in lines:
        for side in (0, 1):
            ends[side, round(line.box[2 * side]), int(line.height // _NEAR)].append(line)
    return ends


def _follows(line: _Line, ends: _Ends) -> bool:
    """Return whether a line touches another one with larger letters, as that through a raised or lowered number."""
    row = int(line.height // _NEAR)
    for side in (0, 1):
        place = line.box[2 - 2 * side]
        for across in range(round(place) - 1, round(place) + 2):
            for other in (each for up in (-1, 0, 1) for each in ends.get((side, across, row + up), ())):
                if abs(other.box[2 * side] - place) <= _TOUCHING and abs(other.height - line.height) < other.size:
                    return True
    return False


def _parted(piece: Piece, letters: PageLetters, struck: set[int]) -> Iterator[Piece]:
    """Yield a piece as those that are struck out and those that are not."""
    start = 0
    count = piece.end - piece.start
    for at in range(1, count + 1):
        if at == count or (at in struck) != (start in struck):
            part = letters.part_of(piece, start, at) if at - start < count else piece
            part.is_struck = start in struck
            yield part
            start = at
