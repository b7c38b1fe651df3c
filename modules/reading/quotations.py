"""Quotations in a text that a model may still be writing: code spans, fenced code and quotation marks."""

from __future__ import annotations

import re

_MARK = re.compile('\n|`+|["“”„«»「」『』]')
_CLOSERS = {'"': '"', "“": "”", "„": "“”", "«": "»", "「": "」", "『": "』"}
"""The marks that end a quotation, by the one that begins it."""
_BESIDE = {**_CLOSERS, "`": "`"}
_APOSTROPHES = {"'": "'", "‘": "’"}
"""Such marks stand in words too, so they count beside a tag alone."""
_FENCE = re.compile(r"[ \t>]{0,12}(`{3,}|~{3,})([^`]*)\Z")
_BEFORE_CLOSING = frozenset(".,;:!?)]}")
_BEFORE_OPENING = frozenset("([{=")
_LONGEST_RUN = 3
"""Backticks at most around a code span."""
_LONGEST_LINE = 100
"""Characters of a line that are looked at for a fence."""
LONGEST_QUOTATION = 200
"""Characters after a tag within which its quotation ends, on its line."""
LONGEST_FENCE = 20_000
"""Characters after a tag within which its fenced code ends."""


class Quotations:
    """The quotation that is open at the end of a text, which is fed in pieces that may be cut anywhere.

    A code span and a quotation in marks end on their line; fenced code ends at a fence of its kind.

    >>> quotations = Quotations()
    >>> quotations.feed("The tag `")
    >>> quotations.end_after("</think>` ends", 0, 8, is_whole=True)
    9
    """

    def __init__(self) -> None:
        self._line = ""  # the beginning of the present line
        self._last = "\n"  # the last character
        self._before_last = "\n"
        self._run = ""  # backticks at the end, of which more may come
        self._open = ""  # the mark or backticks of the quotation that is open on the line
        self._fence = ""
        self._searched = 0  # characters from the tag on that hold no end of the fence

    @property
    def is_fenced(self) -> bool:
        """Whether the text ends inside fenced code."""
        return bool(self._fence)

    @property
    def is_at_line_start(self) -> bool:
        """Whether nothing but white space stands on the last line."""
        return not (self._line + self._run).strip()

    def feed(self, text: str) -> None:
        """Take the next piece."""
        if not text:
            return
        before = self._last
        self._before_last, self._last = (text[-2] if len(text) > 1 else self._last), text[-1]
        text, at = self._run + text, 0
        rest = len(text.rstrip("`"))
        self._run = text[rest:][: _LONGEST_LINE + 1]
        for mark in _MARK.finditer(text, 0, rest):
            if mark[0] == "\n":
                self._add(text[at : mark.start()])
                self._end_line()
                at = mark.end()
            else:
                self._pass(mark[0], before=text[mark.start() - 1] if mark.start() else before)
        self._add(text[at:rest])

    def end_after(self, text: str, start: int, at: int, *, is_whole: bool) -> int | None:
        """Return where the open quotation ends behind a tag; 0 if none is open, None where more must come.

        A quotation whose end is not found was none, and counts no more.

        Args:
            text: What follows; a further call about the same tag has more at its end.
            start: The beginning of the tag, up to which all was fed.
            at: The end of the tag.
            is_whole: Whether nothing more comes.
        """
        if self._run:
            self._add(self._run)
            self._pass(self._run, before="")
            self._run = ""
        if self._fence:
            return self._fence_end(text, start, at, is_whole=is_whole)
        limit = at + LONGEST_QUOTATION
        line_end = text.find("\n", at, limit)
        is_decided = is_whole or line_end >= 0 or len(text) > limit
        end = line_end if line_end >= 0 else min(limit, len(text))
        if found := self._beside(text, at, end) or _closing(self._open, text, at, end, is_whole=is_whole):
            return found
        may_begin = self._last in _BESIDE and at == len(text)
        if not is_decided and (self._open or self._apostrophe or may_begin):
            return None
        self._open = ""
        return 0

    @property
    def _apostrophe(self) -> str:
        return _APOSTROPHES.get(self._last, "") if _may_open(self._before_last) else ""

    def _beside(self, text: str, at: int, end: int) -> int:
        """Return the end of a quotation that begins right before the tag; 0 without one."""
        if closers := self._apostrophe:
            return _end_at(closers, text, at, end)
        if at < end and text[at] in _BESIDE.get(self._last, "") and _may_open(self._before_last):
            return at + 1
        return 0

    def _fence_end(self, text: str, start: int, at: int, *, is_whole: bool) -> int | None:
        mark, size = self._fence[0], len(self._fence)
        limit = at + LONGEST_FENCE
        last = r"(?=\n)|\Z" if is_whole and len(text) <= limit else r"(?=\n)"
        closing = re.compile(rf"\n[ \t>]{{0,12}}{mark}{{{size},}}[ \t\r]*(?:{last})")
        if found := closing.search(text, max(at, start + self._searched), min(limit, len(text))):
            self._searched = 0
            return found.end()
        if not is_whole and len(text) <= limit:
            self._searched = max(text.rfind("\n") - start, 0)
            return None
        self._fence, self._searched = "", 0
        return 0

    def _add(self, text: str) -> None:
        if len(self._line) <= _LONGEST_LINE:
            self._line += text[: _LONGEST_LINE + 1]

    def _pass(self, mark: str, *, before: str) -> None:
        if self._fence:
            return
        if self._open:
            if mark == self._open or (mark[0] != "`" and mark in _CLOSERS.get(self._open, "")):
                self._open = ""
        elif mark[0] == "`" or (mark in _CLOSERS and _may_open(before)):
            self._open = mark

    def _end_line(self) -> None:
        line, self._line, self._open = self._line, "", ""
        found = _FENCE.match(line) if len(line) <= _LONGEST_LINE else None
        if found is None:
            return
        if not self._fence:
            self._fence = found[1]
        elif found[1].startswith(self._fence) and not found[2].strip():
            self._fence = ""


def _may_open(before: str) -> bool:
    """Return whether a mark behind this character may begin a quotation, as no inch and no closing mark does."""
    return not before.isascii() or not (before.isalnum() or before in _BEFORE_CLOSING)


def _closing(opened: str, text: str, at: int, end: int, *, is_whole: bool) -> int:
    """Return the end of a quotation in marks or backticks; 0 without one."""
    if not opened.startswith("`"):
        found = _end_at(_CLOSERS[opened], text, at, end) if opened else 0
        return found if found and (opened != '"' or _may_close(text[found - 2])) else 0
    if len(opened) > _LONGEST_RUN:
        return 0
    after = "(?!`)" if is_whole else "(?=[^`])"  # of a run at the end more may come
    run = re.compile(f"(?<!`){opened}{after}").search(text, at, end + 1)
    if run is None or run.end() > end or (len(opened) == 1 and not _may_close(text[run.start() - 1])):
        return 0
    return run.end()


def _may_close(before: str) -> bool:
    """Return whether a mark behind this character may end a quotation rather than begin another."""
    return not before.isspace() and before not in _BEFORE_OPENING


def _end_at(closers: str, text: str, at: int, end: int) -> int:
    return min((found + 1 for mark in closers if (found := text.find(mark, at, end)) >= 0), default=0)
