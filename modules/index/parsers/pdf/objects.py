"""The objects of a PDF page that are no text, in the order of drawing, and where they are."""

from __future__ import annotations

import ctypes
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pypdfium2 import PdfPage

_MAX_FORMS = 3

Box = tuple[float, float, float, float]
"""Left, bottom, right, top."""
Matrix = tuple[float, float, float, float, float, float]
_SAME: Matrix = (1, 0, 0, 1, 0, 0)


def painted(page: PdfPage, *, most: int, forms: int = _MAX_FORMS) -> Iterator[tuple[object, int, Matrix]]:
    """Yield the paths and pictures of a page in the order of drawing.

    Args:
        page: The page.
        most: Most objects that are looked at.
        forms: Depth to which those within forms are yielded too.

    Yields:
        Each with its kind, and the matrix of the form that it is in.
    """
    from pypdfium2 import raw as pdfium  # noqa: PLC0415 - keeps the package's import fast

    count = min(pdfium.FPDFPage_CountObjects(page.raw), most)
    waiting = [(pdfium.FPDFPage_GetObject(page.raw, at), _SAME, 0) for at in reversed(range(count))]
    seen = 0
    while waiting and seen < most:
        item, matrix, depth = waiting.pop()
        seen += 1
        kind = pdfium.FPDFPageObj_GetType(item)
        if kind == pdfium.FPDF_PAGEOBJ_FORM and depth < forms:
            inner = min(pdfium.FPDFFormObj_CountObjects(item), most - seen)
            own = product(matrix_of(item), matrix)
            waiting += [(pdfium.FPDFFormObj_GetObject(item, at), own, depth + 1) for at in reversed(range(inner))]
        elif kind in (pdfium.FPDF_PAGEOBJ_PATH, pdfium.FPDF_PAGEOBJ_IMAGE, pdfium.FPDF_PAGEOBJ_SHADING):
            yield item, kind, matrix


def bounds_of(item: object, matrix: Matrix) -> Box | None:
    """Return where an object is on its page, given the matrix of its form; None if that is unknown."""
    from pypdfium2 import raw as pdfium  # noqa: PLC0415

    sides = [ctypes.c_float() for _ in range(4)]
    if not pdfium.FPDFPageObj_GetBounds(item, *map(ctypes.byref, sides)):
        return None
    left, bottom, right, top = (side.value for side in sides)
    if matrix == _SAME:
        return left, bottom, right, top
    return box_of([moved(matrix, x, y) for x in (left, right) for y in (bottom, top)])


def box_of(points: Sequence[tuple[float, float]]) -> Box:
    """Return the least box around some points."""
    xs, ys = zip(*points, strict=True)
    return min(xs), min(ys), max(xs), max(ys)


def matrix_of(item: object) -> Matrix:
    """Return the matrix by which an object is placed."""
    from pypdfium2 import raw as pdfium  # noqa: PLC0415

    matrix = pdfium.FS_MATRIX()
    pdfium.FPDFPageObj_GetMatrix(item, ctypes.byref(matrix))
    return matrix.a, matrix.b, matrix.c, matrix.d, matrix.e, matrix.f


def moved(matrix: Matrix, x: float, y: float) -> tuple[float, float]:
    """Return where a matrix places a point."""
    a, b, c, d, e, f = matrix
    return a * x + c * y + e, b * x + d * y + f


def product(first: Matrix, then: Matrix) -> Matrix:
    """Return what two matrices do one after the other."""
    a, b, c, d, _, _ = first
    e, f = moved(then, first[4], first[5])
    return (
        a * then[0] + b * then[2],
        a * then[1] + b * then[3],
        c * then[0] + d * then[2],
        c * then[1] + d * then[3],
        e,
        f,
    )
