"""PDF documents: a text each page."""

from __future__ import annotations

import io
from collections.abc import Iterable

from ...errors import LoadingError
from .parsed import Piece


def parse_pdf(data: bytes) -> Iterable[Piece]:
    """Yield the text of each page, with its number from 1."""
    from pypdf import PdfReader  # noqa: PLC0415 - keeps the package's import fast

    with PdfReader(io.BytesIO(data)) as reader:
        if reader.is_encrypted and not reader.decrypt(""):
            raise LoadingError("it is protected by a password")
        for number, page in enumerate(reader.pages, start=1):
            yield page.extract_text(), {"page": number}
