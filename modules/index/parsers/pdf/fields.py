"""What annotations show on a PDF page: values of form fields and text boxes, and what of them is no text."""

from __future__ import annotations

import ctypes
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from .words import Word

if TYPE_CHECKING:
    from pypdfium2 import PdfPage

_MAX_ANNOTATIONS = 10_000
_MAX_BYTES = 1_000_000
"""Most bytes of one value."""
_HIDDEN, _NO_VIEW = 2, 32
_SIZE = 12.0


@dataclass(kw_only=True)
class PageFields:
    """What annotations add to a page."""

    words: list[Word] = field(default_factory=list)
    """Lines of their texts, each as a word."""
    left_out: Counter[str] = field(default_factory=Counter)
    """Numbers of those whose text is not taken, by kind."""


def fields_of(page: PdfPage) -> PageFields:
    """Return the texts of the annotations that a page shows."""
    from pypdfium2 import raw as pdfium  # noqa: PLC0415 - keeps the package's import fast

    found = PageFields()
    count = pdfium.FPDFPage_GetAnnotCount(page.raw)
    if count > _MAX_ANNOTATIONS:
        found.left_out["annotation"] += count - _MAX_ANNOTATIONS
    for index in range(min(count, _MAX_ANNOTATIONS)):
        annotation = pdfium.FPDFPage_GetAnnot(page.raw, index)
        if not annotation:
            continue
        try:
            _read(page, annotation, found)
        finally:
            pdfium.FPDFPage_CloseAnnot(annotation)
    return found


def _read(page: PdfPage, annotation: object, found: PageFields) -> None:
    from pypdfium2 import raw as pdfium  # noqa: PLC0415

    if pdfium.FPDFAnnot_GetFlags(annotation) & (_HIDDEN | _NO_VIEW):
        return
    kind = pdfium.FPDFAnnot_GetSubtype(annotation)
    if kind == pdfium.FPDF_ANNOT_WIDGET:
        _place(page, annotation, _value(page, annotation), found)
        return
    contents = _text(lambda buffer, size: pdfium.FPDFAnnot_GetStringValue(annotation, b"Contents", buffer, size))
    if kind == pdfium.FPDF_ANNOT_FREETEXT:
        _place(page, annotation, contents, found)
    elif contents and kind not in (pdfium.FPDF_ANNOT_LINK, pdfium.FPDF_ANNOT_POPUP):
        found.left_out["comment"] += 1


def _value(page: PdfPage, annotation: object) -> str:
    """Return what a form field shows: its value, the label of what is chosen, the value of a box that is checked."""
    from pypdfium2 import raw as pdfium  # noqa: PLC0415

    form = page.formenv.raw if page.formenv else None
    if form is None:
        return _text(lambda buffer, size: pdfium.FPDFAnnot_GetStringValue(annotation, b"V", buffer, size))
    kind = pdfium.FPDFAnnot_GetFormFieldType(form, annotation)
    if kind in (pdfium.FPDF_FORMFIELD_CHECKBOX, pdfium.FPDF_FORMFIELD_RADIOBUTTON):
        return "☒" if pdfium.FPDFAnnot_IsChecked(form, annotation) else ""
    if kind in (pdfium.FPDF_FORMFIELD_COMBOBOX, pdfium.FPDF_FORMFIELD_LISTBOX):
        count = min(pdfium.FPDFAnnot_GetOptionCount(form, annotation), _MAX_ANNOTATIONS)
        labels = [
            _text(lambda buffer, size, at=at: pdfium.FPDFAnnot_GetOptionLabel(form, annotation, at, buffer, size))  # type: ignore[misc]
            for at in range(count)
            if pdfium.FPDFAnnot_IsOptionSelected(form, annotation, at)
        ]
        if labels:
            return "\n".join(labels)
    if kind in (pdfium.FPDF_FORMFIELD_PUSHBUTTON, pdfium.FPDF_FORMFIELD_SIGNATURE):
        return ""
    if pdfium.FPDFAnnot_GetFormFieldFlags(form, annotation) & 1 << 13:  # a password
        return ""
    return _text(lambda buffer, size: pdfium.FPDFAnnot_GetFormFieldValue(form, annotation, buffer, size))


def _place(page: PdfPage, annotation: object, text: str, found: PageFields) -> None:
    """Add the lines of a text where the annotation stands, each as a word."""
    from pypdfium2 import raw as pdfium  # noqa: PLC0415

    box = pdfium.FS_RECTF()
    if not text.strip() or not pdfium.FPDFAnnot_GetRect(annotation, ctypes.byref(box)):
        return
    left, right, bottom, top = box.left, box.right, box.bottom, box.top
    shown = page.get_rotation()
    if shown == 90:
        left, right, bottom, top = bottom, top, -right, -left
    elif shown == 180:
        left, right, bottom, top = -right, -left, -top, -bottom
    elif shown == 270:
        left, right, bottom, top = -top, -bottom, left, right
    lines = [line for line in text.replace("\r", "\n").split("\n") if line.strip()]
    step = (top - bottom) / (len(lines) + 1) if len(lines) > 1 else (top - bottom) / 2
    size = max(1.0, min(_SIZE, (top - bottom) or _SIZE))
    for number, line in enumerate(lines, start=1):
        base = top - number * step - 0.3 * size
        found.words.append(Word(text=line.strip(), turn=0, left=left, right=right, base=base, size=size))


def _text(get: Callable[[object, int], int]) -> str:
    """Return a text of PDFium's, which first tells its size in bytes of UTF-16."""
    from pypdfium2 import raw as pdfium  # noqa: PLC0415

    size = min(get(None, 0), _MAX_BYTES)
    if size <= 2:
        return ""
    buffer = ctypes.create_string_buffer(size)
    get(ctypes.cast(buffer, ctypes.POINTER(pdfium.FPDF_WCHAR)), size)
    return buffer.raw[: size - 2].decode("utf-16-le", "replace").rstrip("\x00")
