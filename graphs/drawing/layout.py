"""Text made fit for a picture or a terminal: what may be printed, how wide it is, where it breaks."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator

from ...modules.formats import printable


def one_line(text: str) -> str:
    """Printable text without line breaks, runs of white space made one blank."""
    return " ".join(printable(text).split())


def char_columns(char: str) -> int:
    """Columns of one character in a terminal: 2 for Chinese and other wide ones, 0 for marks that combine."""
    if char.isascii():
        return 1
    if unicodedata.category(char) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def glyph_ems(char: str) -> float:
    """Width of one character in a sans-serif face, in ems (the font size); rather too wide than too narrow.

    An estimate for boxes that must hold the text whatever face a viewer has: DejaVu Sans is the widest common one.
    """
    if not char.isascii():
        return (0.0, 0.68, 1.0)[char_columns(char)]
    if char in "iljIft.,:;|!'` ()[]/\\-r":
        return 0.38
    if char in "mwMW@%":
        return 0.98
    return 0.75 if char.isupper() else 0.61


def columns(text: str) -> int:
    """Columns of a line of text."""
    return sum(map(char_columns, text))


def shorten(text: str, width: int) -> str:
    """At most ``width`` columns of the text on one line, the last one "…" where something was cut off."""
    lines = wrap(text, width, max_lines=1)
    return lines[0] if lines else ""


def wrap(text: str, width: float, *, max_lines: int, measure: Callable[[str], float] = char_columns) -> list[str]:
    """Lines at most ``width`` wide (2 or more); the last ends in "…" when ``max_lines`` cut the text short.

    ``measure`` gives the width of one character; ``width`` is in its unit. Lines break at blanks, between Chinese
    characters anywhere, and within a word only when it is longer than a line. An empty text has no lines.
    """
    lines: list[str] = []
    for line in _break_lines(one_line(text), width, measure):
        if len(lines) == max_lines:
            lines[-1] = _cut(lines[-1], width - measure("…"), measure) + "…"
            break
        lines.append(line)
    return lines


def _break_lines(text: str, width: float, measure: Callable[[str], float]) -> Iterator[str]:
    line, used = "", 0.0
    for piece, piece_width in _pieces(text, width, measure):
        if line and used + piece_width > width:
            yield line.rstrip()
            line, used = piece.lstrip(), piece_width
        else:
            line += piece
            used += piece_width
    if line.strip():
        yield line.rstrip()


def _pieces(text: str, width: float, measure: Callable[[str], float]) -> Iterator[tuple[str, float]]:
    """What a line must not be broken within, with its width: a word and the blank before it, or one wide character."""
    piece, used = "", 0.0
    for char in text:
        needed = measure(char)
        if piece and (char == " " or _is_wide(char) or _is_wide(piece[-1]) or used + needed > width):
            yield piece, used
            piece, used = "", 0.0
        piece += char
        used += needed
    if piece:
        yield piece, used


def _is_wide(char: str) -> bool:
    return char_columns(char) == 2


def _cut(text: str, width: float, measure: Callable[[str], float]) -> str:
    kept, used = "", 0.0
    for char in text:
        used += measure(char)
        if used > width:
            break
        kept += char
    return kept.rstrip()
