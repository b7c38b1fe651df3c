"""PDF documents: a text each page, in the order in which it is read."""

from __future__ import annotations

import threading
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from ....errors import LoadingError
from ..parsed import LeftOut, Piece
from .columns import in_reading_order
from .fields import fields_of
from .pictures import rules_of, untold
from .words import words_of

if TYPE_CHECKING:
    from pypdfium2 import PdfDocument, PdfPage

_ONE_AT_A_TIME = threading.Lock()  # PDFium is not safe for threads
_PASSWORD_ERROR = 4


def parse_pdf(data: bytes) -> Iterable[Piece]:
    """Yield the text of each page, with its number from 1, and what of the pages is no text."""
    import pypdfium2  # noqa: PLC0415 - keeps the package's import fast

    with _ONE_AT_A_TIME:
        try:
            document = pypdfium2.PdfDocument(data)
        except pypdfium2.PdfiumError as error:
            if getattr(error, "err_code", None) == _PASSWORD_ERROR:
                raise LoadingError("it is protected by a password") from error
            raise
        with document:
            yield from _whole(document)
            for number in range(len(document)):
                yield from _page(document, number)


def _whole(document: PdfDocument) -> Iterator[LeftOut]:
    from pypdfium2 import raw  # noqa: PLC0415

    if document.get_formtype() == raw.FORMTYPE_XFA_FULL:
        yield LeftOut(kind="XFA form")
    else:
        document.init_forms()
    if attached := document.count_attachments():
        yield LeftOut(kind="attached file", count=attached)


def _page(document: PdfDocument, number: int) -> Iterator[Piece]:
    from pypdfium2 import PdfiumError  # noqa: PLC0415

    try:
        page = document[number]
    except PdfiumError:
        yield LeftOut(kind="broken page")
        return
    try:
        yield from _pieces(page, number + 1)
    finally:
        page.close()


def _pieces(page: PdfPage, number: int) -> Iterator[Piece]:
    found = words_of(page)
    fields = fields_of(page)
    words = [*found.words, *fields.words]
    text = found.in_stream_order or in_reading_order(words, rules_of(page, found.strikes))
    if found.unreadable:
        yield LeftOut(kind="unreadable character", count=found.unreadable)
    yield from (LeftOut(kind=kind, count=count) for kind, count in fields.left_out.items())
    if kind := untold(page, text):
        yield LeftOut(kind=kind)
    yield text, {"page": number}
