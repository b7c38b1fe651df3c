"""Markdown documents: one text, their source with what a reader does not see taken out, titled by Markdown's grammar.

The source stays as it is otherwise, since formulas and code would lose characters if they were rendered.
"""

from __future__ import annotations

import html
import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from functools import cache
from typing import TYPE_CHECKING

from .front_matter import split_front_matter
from .parsed import LeftOut, Piece, read_lines, titled

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token

_FIRST_TRY, _LAST_TRY = 500, 1_048_576
"""Characters behind the first line that looks like a heading, in which a title is looked for."""
_MAY_BE_HEADING = re.compile(r"^(?: {0,3}(?:#|=+[ \t]*$|-+[ \t]*$)|.*<[hH][1-6])", re.MULTILINE)
_HTML_HEADING = re.compile(r"<h([1-6])\b[^>]{0,1000}>(.{0,2000}?)</h\1\s{0,9}>", re.DOTALL | re.IGNORECASE)
_TAG = re.compile(r"<[^<>]{0,1000}>")
_ENTITY = re.compile(r"&(?:#[0-9]{1,7}|#[xX][0-9a-fA-F]{1,6}|[A-Za-z][A-Za-z0-9]{1,31});")
_ESCAPE_IN_WORD = re.compile(r"\w\\[!-/:-@\[-`{-~]\w")
_COMMENT, _COMMENT_END = "<!--", "-->"
_MOST_MISSES = 20
_MOST_EDITED = 2_000_000
"""Characters of the largest source that is edited: a list of a million items would take a minute."""


def parse_markdown(data: bytes) -> Iterable[Piece]:
    """Yield the text of a Markdown document, and how many comments it lacks.

    Its title is that of the front matter, else the first heading outside of lists and quotations.
    """
    text = read_lines(data)
    front, title = split_front_matter(text)
    body = text[len(front) :]
    title = title or _first_heading(body)
    seen = _Seen(body)
    yield front + seen.text(), titled(title)
    if seen.comments:
        yield LeftOut(kind="comment", count=seen.comments)


@cache
def _grammar(*, inline: bool) -> MarkdownIt:
    from markdown_it import MarkdownIt  # noqa: PLC0415 - keeps the package's import fast

    grammar = MarkdownIt("commonmark").enable("table")
    # Characters that were written as "&amp;" or "\\_" stay tokens of their own.
    return grammar.disable("text_join") if inline else grammar.disable(["inline", "text_join"])


def _first_heading(text: str) -> str:
    found = _MAY_BE_HEADING.search(text)
    size = _FIRST_TRY
    while found is not None and found.start() < _LAST_TRY:
        part = text[: found.end() + size]
        is_whole = len(part) == len(text)
        part = part if is_whole else part[: part.rfind("\n") + 1]
        # The last block may go on behind the part.
        last_line = part.count("\n") + 1 if is_whole else part.count("\n") - 1
        heading = next((each for each in _headings(_grammar(inline=False).parse(part), last_line) if each), "")
        if heading or is_whole or size >= _LAST_TRY:
            return heading
        size *= 8
    return ""


def _headings(tokens: Sequence[Token], last_line: int) -> Iterator[str]:
    """Yield the texts of the outermost headings that end before a line."""
    for at, token in enumerate(tokens):
        if token.level or token.map is None or token.map[1] > last_line:
            continue
        if token.type == "heading_open":
            yield _plain(tokens[at + 1].content)
        elif token.type == "html_block" and (found := _HTML_HEADING.search(token.content)):
            yield " ".join(html.unescape(_TAG.sub("", found[2])).split())


def _plain(content: str) -> str:
    """Return the text of a line without its markup; alternative texts stand for pictures."""
    (line,) = _grammar(inline=True).parseInline(content)
    shown = ("text", "text_special", "code_inline", "image")
    parts = (
        each.content if each.type in shown else " " if each.type in ("softbreak", "hardbreak") else ""
        for each in line.children or []
    )
    return " ".join("".join(parts).split())


@dataclass
class _Seen:
    """The source of a document as its readers see it: without comments, with characters for references to them."""

    source: str
    comments: int = 0
    _edits: list[tuple[int, int, str]] = field(default_factory=list)
    """Beginning, end and replacement, in order."""

    def text(self) -> str:
        """Return the source with its edits."""
        if len(self.source) > _MOST_EDITED or not self._is_edited(self.source):
            return self.source
        starts = [0, *(found.end() for found in re.finditer("\n", self.source)), len(self.source)]
        lines, at, end = (0, 0), 0, 0
        for token in _grammar(inline=False).parse(self.source):
            if token.map is not None and (token.map[0], token.map[1]) != lines:
                lines = token.map[0], token.map[1]
                at, end = starts[lines[0]], starts[min(lines[1], len(starts) - 1)]
            if token.type == "html_block":
                self._edit_html(at, end)
            elif token.type == "inline" and self._is_edited(token.content):
                at = self._edit_line(token.content, at, end)
        return self._edited()

    def _is_edited(self, content: str) -> bool:
        return (
            _COMMENT in content
            or ("&" in content and _ENTITY.search(content) is not None)
            or ("\\" in content and _ESCAPE_IN_WORD.search(content) is not None)
        )

    def _edit_html(self, at: int, end: int) -> None:
        while at < end:
            comment = self.source.find(_COMMENT, at, end)
            closing = self.source.find(_COMMENT_END, comment + len(_COMMENT), end) if comment >= 0 else -1
            until = comment if closing >= 0 else end
            for found in _ENTITY.finditer(self.source, at, until):
                self._replace(found.start(), found.end(), html.unescape(found[0]))
            if closing < 0:
                return
            at = closing + len(_COMMENT_END)
            self._replace(comment, at, "")
            self.comments += 1

    def _edit_line(self, content: str, at: int, end: int) -> int:
        """Find the pieces of a line in the source, one behind the other; return the end of the last one."""
        (line,) = _grammar(inline=True).parseInline(content)
        misses = 0
        for piece in line.children or []:
            written = piece.markup if piece.type == "text_special" else piece.content
            begin, after = self._place(written, at, end)
            if begin < 0:
                misses += 1
                if misses > _MOST_MISSES:
                    return at
                continue
            at = after
            if piece.type == "html_inline" and written.startswith(_COMMENT):
                self._replace(begin, after, "")
                self.comments += 1
            elif piece.type == "text_special" and (piece.info == "entity" or self._is_in_word(begin, after)):
                self._replace(begin, after, piece.content)
        return at

    def _place(self, written: str, at: int, end: int) -> tuple[int, int]:
        """Return where a piece stands; between its lines there may be marks of a list or quotation."""
        if not written:
            return at, at
        lines = [each for each in written.split("\n") if each.strip()] or [written]
        begin = self.source.find(lines[0], at, end)
        if begin < 0 or len(lines) == 1:
            return begin, begin + len(lines[0])
        last = self.source.find(lines[-1], begin + len(lines[0]), end)
        return (begin, last + len(lines[-1])) if last >= 0 else (-1, -1)

    def _is_in_word(self, begin: int, end: int) -> bool:
        around = self.source[begin - 1 : begin] + self.source[end : end + 1]
        return len(around) == 2 and around.isalnum()

    def _replace(self, begin: int, end: int, text: str) -> None:
        self._edits.append((begin, end, text.replace("\u00ad", "")))

    def _edited(self) -> str:
        parts: list[str] = []
        at = 0
        for begin, end, text in self._edits:
            if begin >= at:
                parts += [self.source[at:begin], text]
                at = end
        return "".join([*parts, self.source[at:]])
