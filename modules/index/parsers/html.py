"""HTML documents: one text, as a reader sees it."""

from __future__ import annotations

import re
import warnings
from collections.abc import Iterable, Iterator
from typing import TYPE_CHECKING

from .parsed import Piece, titled

if TYPE_CHECKING:
    from bs4.element import PageElement, Tag

HTML_BLOCKS = (
    "address article aside blockquote br dd div dl dt h1 h2 h3 h4 h5 h6 hr li main ol p pre section table tr ul"
)
HTML_HIDDEN = frozenset({"script", "style", "noscript", "template", "title"})


def parse_html(data: bytes) -> Iterable[Piece]:
    """Yield the text of a page, titled by its title or first heading."""
    from bs4 import BeautifulSoup, XMLParsedAsHTMLWarning  # noqa: PLC0415 - keeps the package's import fast

    with warnings.catch_warnings():
        warnings.simplefilter("ignore", XMLParsedAsHTMLWarning)  # XHTML is parsed well enough
        page = BeautifulSoup(data, "html.parser")
    title = page.title or page.find(re.compile("^h[1-6]$"))
    heading = title.get_text(" ", strip=True) if title else ""
    lines = (re.sub(r"\s+", " ", line).strip() for line in "".join(_html_texts(page)).split("\n"))
    yield re.sub(r"\n{3,}", "\n\n", "\n".join(lines)).strip(), titled(heading)


def _html_texts(page: Tag) -> Iterator[str]:
    """Yield the texts of a page in order, with line breaks around blocks but not around inline tags.

    The page is not changed, since each insertion descends to the deepest tag.
    """
    from bs4.element import CData, NavigableString, Tag  # noqa: PLC0415 - keeps the package's import fast

    blocks = frozenset(HTML_BLOCKS.split())
    waiting: list[PageElement | str] = [page]
    while waiting:
        node = waiting.pop()
        if isinstance(node, Tag):
            if node.name in HTML_HIDDEN:
                continue
            around = "\n" if node.name in blocks else ""
            waiting += [around, " " if node.name in ("td", "th") else "", *reversed(node.contents), around]
        elif type(node) in (str, NavigableString, CData):  # comments and doctypes are other kinds of string
            yield str(node)
