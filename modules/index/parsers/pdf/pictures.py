"""What of a PDF page is drawn: scans, text as curves, and the rules of tables."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
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
_THIN = 3.0

Rule = tuple[float, float, float]
"""A horizontal line: its height, where it begins and where it ends."""
Box = tuple[float, float, float, float]


def untold(page: PdfPage, text: str) -> str:
    """Return what a page with so little text shows besides, as a kind of ``LeftOut``; "" for pages of text."""
    from pypdfium2 import raw as pdfium  # noqa: PLC0415 - keeps the package's import fast

    if sum(map(str.isalnum, text)) > _FEW_LETTERS:
        return ""
    width, height = page.get_size()
    paths = 0
    for kind, (left, bottom, right, top) in _objects(page):
        if kind == pdfium.FPDF_PAGEOBJ_IMAGE and (right - left) * (top - bottom) >= _SCAN_SHARE * width * height:
            return "scanned page"
        paths += kind == pdfium.FPDF_PAGEOBJ_PATH
    return "drawn page" if paths >= _MANY_CURVES and not text.strip() else ""


def crossing_rules(page: PdfPage) -> list[Rule]:
    """Return the height, begin and end of the horizontal lines of an upright page, the edges of boxes included."""
    from pypdfium2 import raw as pdfium  # noqa: PLC0415

    if page.get_rotation():
        return []
    edges = []
    for kind, (left, bottom, right, top) in _objects(page, forms=0):
        if kind == pdfium.FPDF_PAGEOBJ_PATH and right - left > _THIN:
            edges += [(y, left, right) for y in ((top,) if top - bottom < _THIN else (top, bottom))]
    return _joined(edges)


def _joined(edges: list[Rule]) -> list[Rule]:
    """Return lines with those of one height that touch each other as one, such as the edges of neighbouring cells."""
    rules: list[Rule] = []
    for y, left, right in sorted((round(y), left, right) for y, left, right in edges):
        if rules and rules[-1][0] == y and left - rules[-1][2] < _THIN:
            rules[-1] = (y, rules[-1][1], max(right, rules[-1][2]))
        else:
            rules.append((y, left, right))
    return rules


def _objects(page: PdfPage, *, forms: int = _MAX_FORMS) -> Iterator[tuple[int, Box]]:
    """Yield the kinds and boxes of the first objects of a page, those within its forms too."""
    from pypdfium2 import raw as pdfium  # noqa: PLC0415

    waiting: list[tuple[object, int]] = [
        (pdfium.FPDFPage_GetObject(page.raw, at), 0)
        for at in range(min(pdfium.FPDFPage_CountObjects(page.raw), _MAX_OBJECTS))
    ]
    seen = 0
    while waiting and seen < _MAX_OBJECTS:
        item, depth = waiting.pop()
        seen += 1
        kind = pdfium.FPDFPageObj_GetType(item)
        if kind == pdfium.FPDF_PAGEOBJ_FORM and depth < forms:
            inner = min(pdfium.FPDFFormObj_CountObjects(item), _MAX_OBJECTS)
            waiting += [(pdfium.FPDFFormObj_GetObject(item, at), depth + 1) for at in range(inner)]
        box = [ctypes.c_float() for _ in range(4)]
        if kind != pdfium.FPDF_PAGEOBJ_TEXT and pdfium.FPDFPageObj_GetBounds(item, *map(ctypes.byref, box)):
            left, bottom, right, top = (side.value for side in box)
            yield kind, (left, bottom, right, top)
