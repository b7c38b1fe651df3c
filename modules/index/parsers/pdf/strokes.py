"""Thin lines on a page that may strike words out: what is drawn as one, and annotations that strike out."""

from __future__ import annotations

import ctypes
import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from .objects import Box, Matrix, bounds_of, box_of, matrix_of, moved, painted, product
from .pictures import turned_box

if TYPE_CHECKING:
    from pypdfium2 import PdfPage

_MAX_OBJECTS = 20_000
_MAX_SEGMENTS = 20_000
"""Most segments of the paths of a page with several lines each that are read."""
_MAX_ANNOTATIONS = 10_000
_MAX_QUADS = 1_000
_HIDDEN, _NO_VIEW = 2, 32
_RECTANGLE = 5
"""Segments of a path that PDFium makes of a rectangle."""
_THICKEST = 40.0
"""Most thickness of a line, in points; letters with a thicker one are a picture."""
_LEVEL = 0.2
"""Most difference of the heights of pieces of one line, in points."""
_DOT = 4.0
"""Most length of a dot or a dash of a line, in thicknesses of it."""
_BETWEEN_DOTS = 3.0
"""Most space between dots or dashes, in thicknesses of their line."""
_TOUCHING = 0.3
"""Most space between pieces of one line that touch, in points."""
_BAND = 20.0
"""Height of the bands of a page by which grounds are found, in points."""
_MOST_BANDS, _MOST_GROUNDS = 100, 100
_FAINT = 25
"""Least difference of a line from its ground that a reader sees, in steps of 255 of red, green or blue."""
_PATTERN = 191, 191, 191
"""The colour that PDFium tells for all patterns: gradients, and the waves of browsers."""

Colour = tuple[int, int, int, int]
"""Red, green, blue and opacity, to 255."""
_WHITE = 255, 255, 255, 255


@dataclass(frozen=True, slots=True, kw_only=True)
class Stroke:
    """A thin line on a page."""

    box: Box
    """Where it is on the page, its thickness included."""
    number: int = 0
    """Its place in the order of drawing."""
    colour: Colour = (0, 0, 0, 255)
    is_quad: bool = False
    """True for the place of words that an annotation strikes out."""
    is_wavy: bool = False
    """True if it may be a wavy line: of many pieces, or filled with a pattern, as browsers draw them."""


@dataclass(frozen=True, slots=True)
class _Ground:
    """What is filled with one colour, or a picture."""

    box: Box
    number: int
    colour: Colour | None
    """None if it has several."""


class PageStrokes:
    """The thin lines of a page."""

    def __init__(self, page: PdfPage) -> None:
        """Read the lines."""
        self.shown = page.get_rotation()
        """Degrees by which the page is displayed turned clockwise."""
        self._segments = 0
        self._strokes: list[Stroke] = []
        self._grounds: list[_Ground] = []
        for number, (item, kind, matrix) in enumerate(painted(page, most=_MAX_OBJECTS)):
            self._read(item, kind, matrix, number)
        self._strokes += _annotated(page)

    def __bool__(self) -> bool:
        """Return whether there is one."""
        return bool(self._strokes)

    def turned(self, own: int) -> list[tuple[Stroke, Box]]:
        """Return the lines along letters that are turned by an angle, from below.

        Each has its place after the page is turned back by that angle; pieces of a line are one.
        """
        if own % 90:
            return []
        placed = [(each, turned_box(each.box, -own) if own else each.box) for each in self._strokes]
        flat = [(each, box) for each, box in placed if 5 * (box[2] - box[0]) >= 4 * (box[3] - box[1])]
        joined = _joined([(each, box) for each, box in flat if not each.is_quad])
        return sorted([*joined, *((each, box) for each, box in flat if each.is_quad)], key=lambda two: _middle(two[1]))

    def visible(self, strokes: Iterable[Stroke]) -> Iterator[bool]:
        """Yield for each of some lines whether it has another colour than what it is drawn on."""
        bands: defaultdict[int, list[_Ground]] = defaultdict(list)
        for ground in self._grounds:
            first, last = int(ground.box[1] // _BAND), int(ground.box[3] // _BAND)
            for band in range(max(first, -1), min(last, _MOST_BANDS) + 1):
                bands[band].append(ground)
        for stroke in strokes:
            yield stroke.is_quad or _differs(stroke, bands[min(int(_middle(stroke.box) // _BAND), _MOST_BANDS)])

    def _read(self, item: object, kind: int, matrix: Matrix, number: int) -> None:
        from pypdfium2 import raw as pdfium  # noqa: PLC0415 - keeps the package's import fast

        box = bounds_of(item, matrix)
        if box is None:
            return
        sides = sorted((box[2] - box[0], box[3] - box[1]))
        if kind != pdfium.FPDF_PAGEOBJ_PATH:
            self._grounds.append(_Ground(box, number, None))
            return
        filled, is_stroked = ctypes.c_int(), ctypes.c_int()
        pdfium.FPDFPath_GetDrawMode(item, ctypes.byref(filled), ctypes.byref(is_stroked))
        if not (filled.value or is_stroked.value):
            return
        colour = _colour(item, is_filled=bool(filled.value))
        if filled.value and sides[0] > 1:
            self._grounds.append(_Ground(box, number, None if colour[:3] == _PATTERN else colour))
        count = pdfium.FPDFPath_CountSegments(item)
        if count == _RECTANGLE and not is_stroked.value:
            boxes: Iterable[tuple[Box, int]] = [(box, count)]
        else:
            self._segments += count
            boxes = _subpaths(item, count, matrix, is_stroked=bool(is_stroked.value))
            if self._segments > _MAX_SEGMENTS:
                return
        for each, points in boxes:
            if min(each[2] - each[0], each[3] - each[1]) <= _THICKEST:
                is_wavy = colour[:3] == _PATTERN or (points > _RECTANGLE and not filled.value)
                self._strokes.append(Stroke(box=each, number=number, colour=colour, is_wavy=is_wavy))


def _annotated(page: PdfPage) -> Iterator[Stroke]:
    """Yield the places of words that annotations strike out."""
    from pypdfium2 import raw as pdfium  # noqa: PLC0415

    quad = pdfium.FS_QUADPOINTSF()
    for index in range(min(pdfium.FPDFPage_GetAnnotCount(page.raw), _MAX_ANNOTATIONS)):
        annotation = pdfium.FPDFPage_GetAnnot(page.raw, index)
        if not annotation:
            continue
        try:
            is_seen = not pdfium.FPDFAnnot_GetFlags(annotation) & (_HIDDEN | _NO_VIEW)
            if not is_seen or pdfium.FPDFAnnot_GetSubtype(annotation) != pdfium.FPDF_ANNOT_STRIKEOUT:
                continue
            for at in range(min(pdfium.FPDFAnnot_CountAttachmentPoints(annotation), _MAX_QUADS)):
                if pdfium.FPDFAnnot_GetAttachmentPoints(annotation, at, ctypes.byref(quad)):
                    xs, ys = (quad.x1, quad.x2, quad.x3, quad.x4), (quad.y1, quad.y2, quad.y3, quad.y4)
                    yield Stroke(box=(min(xs), min(ys), max(xs), max(ys)), is_quad=True)
        finally:
            pdfium.FPDFPage_CloseAnnot(annotation)


def _joined(placed: Sequence[tuple[Stroke, Box]]) -> Iterator[tuple[Stroke, Box]]:
    """Yield lines that lie flat, with pieces of one colour and height that touch each other, and dots, as one."""
    groups: list[list[tuple[Stroke, Box]]] = []
    for each in sorted(placed, key=lambda two: _middle(two[1])):
        if groups and _middle(each[1]) - _middle(groups[-1][0][1]) <= _LEVEL:
            groups[-1].append(each)
        else:
            groups.append([each])
    for group in groups:
        open_lines: dict[Colour, tuple[Stroke, Box, Box]] = {}
        for stroke, box in sorted(group, key=lambda two: two[1][0]):
            line = open_lines.get(stroke.colour)
            if line is not None and _goes_on(line[1], line[2], box):
                whole, places = (_around(one, other) for one, other in ((line[0].box, stroke.box), (line[1], box)))
                open_lines[stroke.colour] = (replace(line[0], box=whole), places, box)
                continue
            if line is not None:
                yield line[:2]
            open_lines[stroke.colour] = (stroke, box, box)
        yield from (line[:2] for line in open_lines.values())


def _goes_on(line: Box, last: Box, box: Box) -> bool:
    """Return whether a line has another piece: one that touches it, or a dot or dash behind its last one."""
    gap, thickness = box[0] - line[2], line[3] - line[1]
    if gap <= _TOUCHING:
        return True
    are_dots = max(last[2] - last[0], box[2] - box[0]) <= _DOT * thickness
    return are_dots and gap <= _BETWEEN_DOTS * thickness


def _around(one: Box, other: Box) -> Box:
    return min(one[0], other[0]), min(one[1], other[1]), max(one[2], other[2]), max(one[3], other[3])


def _middle(box: Box) -> float:
    return (box[1] + box[3]) / 2


def _differs(stroke: Stroke, grounds: Sequence[_Ground]) -> bool:
    """Return whether a line has another colour than the last of some grounds that was drawn below it, else white."""
    x, y = (stroke.box[0] + stroke.box[2]) / 2, _middle(stroke.box)
    ground: Colour | None = _WHITE
    before = [each for each in grounds[-_MOST_GROUNDS:] if each.number < stroke.number]
    for each in reversed(before):
        if each.box[0] <= x <= each.box[2] and each.box[1] <= y <= each.box[3]:
            ground = each.colour
            break
    if ground is None or stroke.colour[:3] == _PATTERN:
        return True
    share = ground[3] / 255
    behind = [share * part + (1 - share) * white for part, white in zip(ground, _WHITE, strict=True)]
    most = max(abs(own - other) for own, other in zip(stroke.colour[:3], behind, strict=False))
    return most * stroke.colour[3] / 255 >= _FAINT


def _subpaths(item: object, count: int, matrix: Matrix, *, is_stroked: bool) -> Iterator[tuple[Box, int]]:
    """Yield the boxes of the parts of a path that hang together, the pen's thickness included, and their points."""
    from pypdfium2 import raw as pdfium  # noqa: PLC0415

    whole = product(matrix_of(item), matrix)
    pen, x, y = ctypes.c_float(), ctypes.c_float(), ctypes.c_float()
    if is_stroked:
        pdfium.FPDFPageObj_GetStrokeWidth(item, ctypes.byref(pen))
    half = pen.value * math.sqrt(abs(whole[0] * whole[3] - whole[1] * whole[2])) / 2
    points: list[tuple[float, float]] = []
    for at in range(count + 1):
        segment = pdfium.FPDFPath_GetPathSegment(item, at) if at < count else None
        if points and (segment is None or pdfium.FPDFPathSegment_GetType(segment) == pdfium.FPDF_SEGMENT_MOVETO):
            yield _with_pen(box_of(points), half), len(points)
            points = []
        if segment is not None:
            pdfium.FPDFPathSegment_GetPoint(segment, ctypes.byref(x), ctypes.byref(y))
            points.append(moved(whole, x.value, y.value))


def _with_pen(box: Box, half: float) -> Box:
    """Return the box of a line with its thickness, but no longer than the line."""
    left, bottom, right, top = box
    if right - left >= top - bottom:
        return left, bottom - half, right, top + half
    return left - half, bottom, right + half, top


def _colour(item: object, *, is_filled: bool) -> Colour:
    from pypdfium2 import raw as pdfium  # noqa: PLC0415

    parts = [ctypes.c_uint() for _ in range(4)]
    colour_of = pdfium.FPDFPageObj_GetFillColor if is_filled else pdfium.FPDFPageObj_GetStrokeColor
    if not colour_of(item, *map(ctypes.byref, parts)):
        return 0, 0, 0, 255
    return parts[0].value, parts[1].value, parts[2].value, parts[3].value
