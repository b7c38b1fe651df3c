"""HTML documents: one text, as a reader sees it."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable

from ...reading.text_encoding import UTF_8, decode
from .html_text import HtmlText, lines_of, tree_of
from .parsed import LeftOut, Piece, ReadAs, titled

_LATIN = frozenset({"ascii", "us-ascii", "iso-8859-1", "iso8859-1", "latin1", "latin-1"})
_SUPERSETS = {"gb2312": "gb18030", "gbk": "gb18030", "shift_jis": "cp932", "ks_c_5601-1987": "cp949", "euc-kr": "cp949"}
_MARKS = (b"\xef\xbb\xbf", b"\xff\xfe", b"\xfe\xff")


def parse_html(data: bytes) -> Iterable[Piece]:
    """Yield the text of a page, titled by its title or first heading, and what the text leaves out."""
    from bs4 import XMLParsedAsHTMLWarning  # noqa: PLC0415 - keeps the package's import fast

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", XMLParsedAsHTMLWarning)  # XHTML is parsed well enough
        encoding, guess = _encoding(data)
        page = tree_of(data, encoding)
    if guess not in ("", UTF_8):
        yield ReadAs(encoding=guess)
    title = (page.head and page.head.find("title")) or page.title or page.find(re.compile("^h[1-6]$"))
    heading = title.get_text(" ", strip=True) if title else ""
    found = HtmlText()
    text = "\n".join(lines_of(found.read(page))).strip("\n")
    if not text and page.find("script"):
        yield LeftOut(kind="script-only page")
    yield from (LeftOut(kind=kind, count=count) for kind, count in found.left_out.items())
    yield text, titled(heading)


def _encoding(data: bytes) -> tuple[str | None, str]:
    """Return the encoding as browsers choose it: by a mark or the declaration, else as text files have it.

    It is None for the mark's. The second value is what it is guessed to be; "" without a guess.
    """
    from bs4.dammit import EncodingDetector  # noqa: PLC0415 - keeps the package's import fast

    if data.startswith(_MARKS):
        return None, ""
    declared = EncodingDetector.find_declared_encoding(data, is_html=True)
    if declared:
        name = declared.lower()
        return "windows-1252" if name in _LATIN else _SUPERSETS.get(name, name), ""
    guess = decode(data).encoding
    return guess.partition(" ")[0], guess
