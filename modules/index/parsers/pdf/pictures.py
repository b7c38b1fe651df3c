"""What of a PDF page is drawn: scans, text as curves, and the rules of tables."""

from __future__ import annotations

import ctypes
import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pypdfium2 import PdfPage

_MAX_OBJECTS = 5_000
_MAX_FORMS = 3
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

Rule = tuple[float, float, float]
"""A line that lies flat or stands upright: its height or its place from the left, where it begins and where it ends."""
Box = tuple[float, float, float, float]
"""Left, bottom, right, top."""


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
    for _, kind, (left, bottom, right, top) in _drawn(page):
        if kind == pdfium.FPDF_PAGEOBJ_IMAGE and (right - left) * (top - bottom) >= _SCAN_SHARE * width * height:
            return "scanned page"
        paths += kind == pdfium.FPDF_PAGEOBJ_PATH
    return "drawn page" if paths >= _MANY_CURVES and not text.strip() else ""


def rules_of(page: PdfPage) -> Rules:
    """Return the lines of a page that stand upright or lie flat as displayed, the edges of boxes included."""
    from pypdfium2 import raw as pdfium  # noqa: PLC0415

    edges: list[Box] = []
    segments = 0
    for item, kind, box in _drawn(page, forms=0):
        if kind == pdfium.FPDF_PAGEOBJ_PATH and max(box[2] - box[0], box[3] - box[1]) > THIN:
            count = pdfium.FPDFPath_CountSegments(item)
            segments += count
            if segments > _MAX_SEGMENTS:
                return Rules()
            edges += _edges_of(item, count, box)
    turned = page.get_rotation()
    across, down = [], []
    for left, bottom, right, top in (_turned(edge, turned) for edge in edges) if turned else edges:
        if right - left > top - bottom:
            across.append(((bottom + top) / 2, left, right))
        else:
            down.append(((left + right) / 2, bottom, top))
    return Rules(across=_joined(across), down=_joined(down))


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


def _turned(box: Box, degrees: int) -> Box:
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


def _drawn(page: PdfPage, *, forms: int = _MAX_FORMS) -> Iterator[tuple[object, int, Box]]:
    """Yield the first objects of a page that are no text, those within its forms too, with their kinds and boxes."""
    from pypdfium2 import raw as pdfium  # noqa: PLC0415

    waiting: list[tuple[object, int]] = [
        (pdfium.FPDFPage_GetObject(page.raw, at), 0)
        for at in range(min(pdfium.FPDFPage_CountObjects(page.raw), _MAX_OBJECTS))
    ]
    sides = [ctypes.c_float() for _ in range(4)]
    places = [ctypes.byref(side) for side in sides]
    seen = 0
    while waiting and seen < _MAX_OBJECTS:
        item, depth = waiting.pop()
        seen += 1
        kind = pdfium.FPDFPageObj_GetType(item)
        if kind == pdfium.FPDF_PAGEOBJ_FORM and depth < forms:
            inner = min(pdfium.FPDFFormObj_CountObjects(item), _MAX_OBJECTS)
            waiting += [(pdfium.FPDFFormObj_GetObject(item, at), depth + 1) for at in range(inner)]
        if kind != pdfium.FPDF_PAGEOBJ_TEXT and pdfium.FPDFPageObj_GetBounds(item, *places):
            yield item, kind, (sides[0].value, sides[1].value, sides[2].value, sides[3].value)
