"""What of a PDF page is drawn: scans, text as curves, and the rules of tables."""

from __future__ import annotations

import ctypes
import math
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from .objects import Box, bounds_of, painted

if TYPE_CHECKING:
    from pypdfium2 import PdfPage

_MAX_OBJECTS = 5_000
_FEW_LETTERS = 60
"""Most letters of a page that is a scan all the same, such as a stamped number."""
_SCAN_SHARE = 0.4
"""Least share of a scan's picture of its page."""
_MANY_CURVES = 30
THIN = 3.0
"""Most thickness of a line, and most distance of lines that touch, in points."""
_RECTANGLE = 5
"""Segments of a path that PDFium makes of a rectangle."""
_MAX_SEGMENTS = 20_000
"""Most segments of the paths of a page whose tables are told by lines; one with more is a drawing."""
_NEAR = 0.3
"""Most that an edge is outside of the line that it is one of, in points."""
_THICKEST = 20.0
"""Most thickness of a line that strikes words out, in points."""
_MOST_STRIKES = 100
"""Most lines that strike words out at the height of an edge; a page with more there is a drawing."""

Rule = tuple[float, float, float]
"""A line that lies flat or stands upright: its height or its place from the left, where it begins and where it ends."""


@dataclass(frozen=True, kw_only=True)
class Rules:
    """The ruling lines of a page, by which its tables are found."""

    across: Sequence[Rule] = ()
    """Those that lie flat, from below."""
    down: Sequence[Rule] = ()
    """Those that stand upright, from the left."""


def untold(page: PdfPage, text: str) -> str:
    """Return what a page with so little text shows besides, as a kind of ``LeftOut``; "" for pages of text."""
    from pypdfium2 import raw as pdfium  # noqa: PLC0415 - keeps the package's import fast

    if sum(map(str.isalnum, text)) > _FEW_LETTERS:
        return ""
    width, height = page.get_size()
    paths = 0
    for item, kind, matrix in painted(page, most=_MAX_OBJECTS):
        if kind == pdfium.FPDF_PAGEOBJ_IMAGE and (box := bounds_of(item, matrix)) is not None:
            left, bottom, right, top = box
            if (right - left) * (top - bottom) >= _SCAN_SHARE * width * height:
                return "scanned page"
        paths += kind == pdfium.FPDF_PAGEOBJ_PATH
    return "drawn page" if paths >= _MANY_CURVES and not text.strip() else ""


def rules_of(page: PdfPage, strikes: Sequence[Box] = ()) -> Rules:
    """Return the lines of a page that stand upright or lie flat as displayed, the edges of boxes included.

    Args:
        page: The page.
        strikes: Where lines strike words out, which are none of a table.
    """
    from pypdfium2 import raw as pdfium  # noqa: PLC0415

    edges: list[Box] = []
    segments = 0
    for item, kind, matrix in painted(page, most=_MAX_OBJECTS, forms=0):
        box = bounds_of(item, matrix) if kind == pdfium.FPDF_PAGEOBJ_PATH else None
        if box is not None and max(box[2] - box[0], box[3] - box[1]) > THIN:
            count = pdfium.FPDFPath_CountSegments(item)
            segments += count
            if segments > _MAX_SEGMENTS:
                return Rules()
            edges += _edges_of(item, count, box)
    turned = page.get_rotation()
    others = _others(edges, strikes)
    across, down = [], []
    for left, bottom, right, top in (turned_box(edge, turned) for edge in others) if turned else others:
        if right - left > top - bottom:
            across.append(((bottom + top) / 2, left, right))
        else:
            down.append(((left + right) / 2, bottom, top))
    return Rules(across=_joined(across), down=_joined(down))


def _others(edges: Sequence[Box], strikes: Sequence[Box]) -> Sequence[Box]:
    """Return the edges that are none of lines that strike words out."""
    for side in (1, 0):  # lines that lie flat, by their height; lines that stand upright, by their place from the left
        along = sorted((box for box in strikes if _lies_along(box) == side), key=lambda box: box[side])
        if along:
            edges = [edge for edge in edges if not _is_within(edge, along, side)]
    return edges


def _lies_along(box: Box) -> bool:
    return box[2] - box[0] > box[3] - box[1]


def _is_within(edge: Box, boxes: Sequence[Box], side: int) -> bool:
    """Return whether an edge is within one of some boxes, which are sorted by one of their sides."""
    first = bisect_left(boxes, edge[side] - _THICKEST, key=lambda box: box[side])
    last = bisect_right(boxes, edge[side] + _NEAR, key=lambda box: box[side])
    return any(
        box[0] - _NEAR <= edge[0]
        and box[1] - _NEAR <= edge[1]
        and edge[2] <= box[2] + _NEAR
        and edge[3] <= box[3] + _NEAR
        for box in boxes[max(first, last - _MOST_STRIKES) : last]
    )


def _edges_of(item: object, count: int, box: Box) -> Iterator[Box]:
    """Yield the edges of a path that stand upright or lie flat, each as a box without width or height."""
    left, bottom, right, top = box
    if right - left < THIN or top - bottom < THIN:
        yield box
    elif count == _RECTANGLE:
        yield from ((left, y, right, y) for y in (bottom, top))
        yield from ((x, bottom, x, top) for x in (left, right))
    else:
        yield from (edge for edge in _segments(item, count) if min(edge[2] - edge[0], edge[3] - edge[1]) < 1)


def _segments(item: object, count: int) -> Iterator[Box]:
    """Yield the boxes of the straight segments of a path that are longer than a rule is thick."""
    from pypdfium2 import raw as pdfium  # noqa: PLC0415

    matrix, x, y = pdfium.FS_MATRIX(), ctypes.c_float(), ctypes.c_float()
    pdfium.FPDFPageObj_GetMatrix(item, ctypes.byref(matrix))
    start = last = (0.0, 0.0)
    for at in range(count):
        segment = pdfium.FPDFPath_GetPathSegment(item, at)
        pdfium.FPDFPathSegment_GetPoint(segment, ctypes.byref(x), ctypes.byref(y))
        point = (
            matrix.a * x.value + matrix.c * y.value + matrix.e,
            matrix.b * x.value + matrix.d * y.value + matrix.f,
        )
        kind = pdfium.FPDFPathSegment_GetType(segment)
        if kind == pdfium.FPDF_SEGMENT_MOVETO:
            start = point
        ends = [(last, point)] if kind == pdfium.FPDF_SEGMENT_LINETO else []
        if pdfium.FPDFPathSegment_GetClose(segment):
            ends.append((point, start))
        for one, other in ends:
            (left, right), (bottom, top) = sorted((one[0], other[0])), sorted((one[1], other[1]))
            if max(right - left, top - bottom) > THIN:
                yield left, bottom, right, top
        last = point


def turned_box(box: Box, degrees: int) -> Box:
    """Return a box on a page that is displayed turned clockwise, where the words of that page have their places."""
    cos, sin = round(math.cos(math.radians(-degrees))), round(math.sin(math.radians(-degrees)))
    (left, right), (bottom, top) = (
        sorted(places)
        for places in (
            (box[0] * cos - box[1] * sin, box[2] * cos - box[3] * sin),
            (box[0] * sin + box[1] * cos, box[2] * sin + box[3] * cos),
        )
    )
    return left, bottom, right, top


def _joined(edges: Sequence[Rule]) -> list[Rule]:
    """Return lines with those at one place that touch each other as one, such as the edges of neighbouring cells."""
    groups: list[list[Rule]] = []
    for edge in sorted(edges):
        if groups and edge[0] - groups[-1][0][0] < THIN:
            groups[-1].append(edge)
        else:
            groups.append([edge])
    rules: list[Rule] = []
    for group in groups:
        place = group[len(group) // 2][0]
        ends = sorted(group, key=lambda edge: edge[1])
        rules.append((place, ends[0][1], ends[0][2]))
        for _, begin, end in ends[1:]:
            if begin - rules[-1][2] < THIN:
                rules[-1] = (place, rules[-1][1], max(end, rules[-1][2]))
            else:
                rules.append((place, begin, end))
    return rules
