"""The words of a PDF page with their places, out of the characters that PDFium finds."""

from __future__ import annotations

import ctypes
import math
import unicodedata
from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from ..scripts import Script

if TYPE_CHECKING:
    from pypdfium2 import PdfPage

MAX_PLACED = 100_000
"""Most characters of a page that are placed; a page with more is taken in the order of its file."""
_LIGATURES = dict(zip(map(chr, range(0xFB00, 0xFB07)), ("ff", "fi", "fl", "ffi", "ffl", "st", "st"), strict=True))
_LINE_HYPHEN = 2
"""What PDFium gives for a hyphen at the end of a line."""
_BLANKS = frozenset({9, 10, 13, 32, 0xA0, *range(0x2000, 0x200B), 0x3000})
_BREAKS = frozenset({10, 13})
_TOUCHING = 0.1
"""Most distance of letters of a word between which PDFium sees the end of a line, in heights of the letters."""
_SPACE = 0.22
"""Least gap between words, in heights of their letters."""


@dataclass(slots=True, kw_only=True)
class Word:
    """Letters side by side. Places are in points, as if the text stood upright: x to the right, y up."""

    text: str
    turn: int
    """Degrees by which the text is turned clockwise on the page as displayed, in steps of five."""
    left: float
    right: float
    base: float
    """Height of the line on which the letters stand; for a script that of the word it belongs to."""
    size: float
    """Height of a line of its font; for a script that of the word it belongs to."""
    is_apart: bool = True
    """True if a space is before it."""
    script: Script = ""


@dataclass(kw_only=True)
class PageWords:
    """The words of a page in the order of the file."""

    words: list[Word] = field(default_factory=list)
    unreadable: int = 0
    """Number of characters whose letters the file does not tell."""
    in_stream_order: str = ""
    """The text of a page that cannot be placed; "" for all others."""


@dataclass(slots=True)
class _Letter:
    text: str
    turn: int
    left: float
    right: float
    base: float
    size: float
    is_apart: bool
    is_broken: bool
    """True if PDFium sees the end of a line before it, also between letters that are placed one by one."""


def words_of(page: PdfPage) -> PageWords:
    """Return the words that stand on a page, without those of annotations."""
    found = PageWords()
    textpage = page.get_textpage()
    try:
        if textpage.count_chars() > MAX_PLACED:
            return PageWords(in_stream_order=textpage.get_text_range())
        letters = list(_letters(page, textpage.raw, textpage.count_chars(), found))
        if _is_vertical(letters):
            return PageWords(in_stream_order=textpage.get_text_range())
    finally:
        textpage.close()
    _join(letters, found.words)
    return found


def _letters(page: PdfPage, raw: object, count: int, found: PageWords) -> Iterator[_Letter]:
    from pypdfium2 import raw as pdfium  # noqa: PLC0415 - keeps the package's import fast

    unicode_of, box_of, origin_of = (
        pdfium.FPDFText_GetUnicode,
        pdfium.FPDFText_GetLooseCharBox,
        pdfium.FPDFText_GetCharOrigin,
    )
    angle_of = pdfium.FPDFText_GetCharAngle
    box, x, y = pdfium.FS_RECTF(), ctypes.c_double(), ctypes.c_double()
    box_at, x_at, y_at = ctypes.byref(box), ctypes.byref(x), ctypes.byref(y)
    low_x, low_y, high_x, high_y = page.get_bbox()
    shown = page.get_rotation()
    is_apart, is_broken, own, turn, cos, sin = True, False, 0, shown, 1.0, 0.0
    for index in range(count):
        code = unicode_of(raw, index)
        if code in _BLANKS:
            is_apart, is_broken = is_apart or code not in _BREAKS, is_broken or code in _BREAKS
            continue
        if code in (0, 0xFFFE) or code > 0x10FFFF:
            found.unreadable += 1
            continue
        if not (box_of(raw, index, box_at) and origin_of(raw, index, x_at, y_at)):
            continue
        left, right, bottom, top = box.left, box.right, box.bottom, box.top
        if not (low_x <= (left + right) / 2 <= high_x and low_y <= (bottom + top) / 2 <= high_y):
            continue  # cut off by the edge of the page
        if is_apart or is_broken:
            own = 5 * round(math.degrees(angle_of(raw, index)) / 5) % 360
            turn = (own + shown) % 360
            cos, sin = math.cos(math.radians(own)), math.sin(math.radians(own))
        text = "-" if code == _LINE_HYPHEN else chr(code)
        text = _LIGATURES.get(text, text)
        if own == 0:
            yield _Letter(text, turn, left, right, y.value, top - bottom, is_apart, is_broken)
        else:
            # As the text stands after the page is turned back by the angle of the text.
            xs = [a * cos - b * sin for a in (left, right) for b in (bottom, top)]
            ys = [a * sin + b * cos for a in (left, right) for b in (bottom, top)]
            base = x.value * sin + y.value * cos
            yield _Letter(text, turn, min(xs), max(xs), base, max(ys) - min(ys), is_apart, is_broken)
        is_apart = is_broken = False


def _is_vertical(letters: list[_Letter]) -> bool:
    """Return whether most of the letters follow each other downwards, as in vertical Chinese and Japanese."""
    down = sum(
        abs(after.left - before.left) < 0.5 * after.size and 0.5 < (before.base - after.base) / (after.size or 1) < 2
        for before, after in pairwise(letters)
    )
    return 2 * down > len(letters) > 3


def _join(letters: list[_Letter], words: list[Word]) -> None:
    """Join letters to words; one that is raised or lowered beside a word becomes its script."""
    last = base_word = None
    for letter in letters:
        if last is not None and last.turn == letter.turn and not letter.is_apart and _continues(last, letter):
            word = words[-1]
            word.text += letter.text
            word.left, word.right = min(word.left, letter.left), max(word.right, letter.right)
            last = letter
            continue
        word = Word(
            text=letter.text,
            turn=letter.turn,
            left=letter.left,
            right=letter.right,
            base=letter.base,
            size=letter.size,
            is_apart=letter.is_apart or letter.is_broken or last is None or _is_far(last, letter),
        )
        if base_word is not None and (script := _script(base_word, words[-1], word)):
            word.script, word.base, word.size, word.is_apart = script, base_word.base, base_word.size, False
        else:
            base_word = word
        words.append(word)
        last = letter


def _continues(last: _Letter, letter: _Letter) -> bool:
    if abs(last.base - letter.base) > 0.1 * last.size or abs(last.size - letter.size) > 0.12 * last.size:
        return False
    if letter.is_broken and min(abs(letter.left - last.right), abs(last.left - letter.right)) > _TOUCHING * last.size:
        return False
    return not _is_far(last, letter)


def _is_far(last: _Letter, letter: _Letter) -> bool:
    if abs(last.base - letter.base) > max(last.size, letter.size):
        return True
    if unicodedata.bidirectional(letter.text[0]) in ("R", "AL"):
        return last.left - letter.right > _SPACE * letter.size
    gap = letter.left - last.right
    return gap > _SPACE * last.size or gap < -max(last.size, letter.size)


def _script(base: Word, before: Word, word: Word) -> Script:
    """Return whether a word is raised or lowered beside a base word, or beside another script of that."""
    if base.turn != word.turn or not -0.3 < (word.left - before.right) / base.size < 0.15:
        return ""
    raised, ratio = (word.base - base.base) / base.size, word.size / base.size
    if ratio > 1.02 or (ratio > 0.88 and not 0.2 < abs(raised) < 0.6):
        return ""
    return "^" if 0.12 < raised < 0.8 else "_" if -0.45 < raised < -0.06 else ""
