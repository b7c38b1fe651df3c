"""Text layout for pictures and terminals: printable text, widths, line breaks."""

from __future__ import annotations

import unicodedata
from collections.abc import Callable, Iterator

from ...modules.storage.texts import printable


def one_line(text: str) -> str:
    """Make a text printable, on one line, with single blanks."""
    return " ".join(printable(text).split())


def char_columns(char: str) -> int:
    """Return the terminal columns of a character: 2 for wide ones such as Chinese, 0 for combining marks."""
    if char.isascii():
        return 1
    if unicodedata.category(char) in {"Mn", "Me", "Cf"}:
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def glyph_ems(char: str) -> float:
    """Estimate the width of a character in a sans-serif face, in ems (the font size).

    It is rather too wide, so that boxes hold their text in any face: DejaVu Sans is the widest common one.
    """
    if not char.isascii():
        return (0.0, 0.68, 1.0)[char_columns(char)]
    if char in "iljIft.,:;|!'` ()[]/\\-r":
        return 0.38
    if char in "mwMW@%":
        return 0.98
    return 0.75 if char.isupper() else 0.61


def columns(text: str) -> int:
    """Count the terminal columns of a line."""
    return sum(map(char_columns, text))


def shorten(text: str, width: int) -> str:
    """Cut a text to one line of ``width`` columns; the last is "…" if something was cut."""
    lines = wrap(text, width, max_lines=1)
    return lines[0] if lines else ""


def wrap(text: str, width: float, *, max_lines: int, measure: Callable[[str], float] = char_columns) -> list[str]:
    """Wrap a text into lines of ``width``, 2 or more; the last ends in "…" if ``max_lines`` cut the text.

    ``measure`` gives the width of a character, in the unit of ``width``. Lines break at blanks, between any Chinese
    characters, and within a word only if it is longer than a line. An empty text has no lines.
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
    """Yield unbreakable pieces with their widths: a word and the blank before it, or one wide character."""
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
