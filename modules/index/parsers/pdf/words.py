"""The words of a PDF page with their places, out of the letters that PDFium finds."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import TYPE_CHECKING

from ....reading.scripts import Script
from .letters import CELL, SPACE, PageLetters, Piece
from .objects import Box
from .strokes import PageStrokes
from .struck import struck_pieces

if TYPE_CHECKING:
    from pypdfium2 import PdfPage

MAX_PLACED = 100_000
"""Most characters of a page that are placed; a page with more is taken in the order of its file."""
_TOUCHING = CELL
"""Most distance of letters of a word between which PDFium sees the end of a line, in sizes of the letters."""
_BESIDE, _BLANK = 0.15, 0.7
"""Most distance of a script from its word, and of a raised number from its word over a blank, in sizes of that."""
_MOST_RAISED = 0.5
"""Most height of a raised number over a blank above its word, in sizes of that; numbers above a line stand higher."""
_LEAST_CAP = 1.9
"""Least size of a letter over several lines, in sizes of the text beside it."""
_TIGHT = 0.05
"""Most distance of a raised text from the word that it begins, as in ¹⁴C, in sizes of that."""


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
    """Size of its font; for a script that of the word it belongs to."""
    is_apart: bool = True
    """True if a space is before it."""
    script: Script = ""
    blanks: int = 0
    """Number of blanks before it in the file."""
    is_placed: bool = False
    """True if the file has no blank before it, though it has them between words: a text of its own may begin here."""
    is_struck: bool = False
    """True if it is struck out."""


@dataclass(kw_only=True)
class PageWords:
    """The words of a page in the order of the file."""

    words: list[Word] = field(default_factory=list)
    unreadable: int = 0
    """Number of characters whose letters the file does not tell."""
    strikes: Sequence[Box] = ()
    """Where the lines are that strike words out."""
    in_stream_order: str = ""
    """The text of a page that cannot be placed; "" for all others."""


def words_of(page: PdfPage) -> PageWords:
    """Return the words that stand on a page, without those of annotations."""
    textpage = page.get_textpage()
    try:
        if textpage.count_chars() > MAX_PLACED:
            return PageWords(in_stream_order=textpage.get_text_range())
        letters = PageLetters(page, textpage)
        pieces = list(letters.pieces())
        if _is_vertical(pieces):
            return PageWords(in_stream_order=textpage.get_text_range())
    finally:
        textpage.close()
    parted, strikes = struck_pieces(pieces, letters, PageStrokes(page))
    return PageWords(words=_joined(parted), strikes=strikes, unreadable=letters.unreadable)


def _is_vertical(pieces: Sequence[Piece]) -> bool:
    """Return whether most letters follow each other downwards, as in vertical Chinese and Japanese."""
    down = sum(
        len(after.text) == 1
        and abs(after.left - before.left) < 0.5 * after.size
        and 0.5 < (before.base - after.base) / (after.size or 1) < 2
        for before, after in pairwise(pieces)
    )
    return 2 * down > sum(len(piece.text) for piece in pieces) > 3


def _joined(pieces: Iterable[Piece]) -> list[Word]:
    """Return letters as words; one that is raised or lowered beside a word becomes its script."""
    words: list[Word] = []
    last: Piece | None = None
    base_word: Word | None = None
    for piece in pieces:
        if last is not None and not piece.is_apart and _continues(last, piece):
            word = words[-1]
            word.text += piece.text
            word.left, word.right = min(word.left, piece.left), max(word.right, piece.right)
            last = piece
            continue
        word = Word(
            text=piece.text,
            turn=piece.turn,
            left=piece.left,
            right=piece.right,
            base=piece.base,
            size=piece.size,
            is_apart=piece.is_apart or last is None or not _touches(last, piece) or _is_far(last, piece),
            blanks=piece.blanks,
            is_placed=piece.is_placed,
            is_struck=piece.is_struck,
        )
        if base_word is not None and base_word is words[-1] and _is_drop_cap(base_word, word):
            word.is_apart = word.left - base_word.right > SPACE * word.size
            base_word.base, base_word.size = word.base, word.size
            base_word = word
        elif base_word is not None and (script := _script(base_word, words[-1], word)):
            word.is_apart = word.left - words[-1].right >= _BESIDE * base_word.size
            word.script, word.base, word.size = script, base_word.base, base_word.size
        else:
            if base_word is not None and (script := _leading_script(words, word)):
                word.is_apart = word.left - base_word.right > _TIGHT * word.size
                base_word.script, base_word.base, base_word.size = script, word.base, word.size
            base_word = word
        words.append(word)
        last = piece
    return words


def _continues(last: Piece, piece: Piece) -> bool:
    if piece.is_alone or last.is_alone or last.turn != piece.turn or last.is_struck != piece.is_struck:
        return False
    if abs(last.base - piece.base) > 0.1 * last.size or abs(last.size - piece.size) > 0.12 * last.size:
        return False
    return _touches(last, piece) and not _is_far(last, piece)


def _touches(last: Piece, piece: Piece) -> bool:
    """Return whether an end of a line between two letters, if there is one, is none that a reader sees."""
    return not piece.is_broken or abs(piece.left - last.right) <= _TOUCHING * last.size


def _is_far(last: Piece, piece: Piece) -> bool:
    if abs(last.base - piece.base) > max(last.size, piece.size):
        return True
    gap = piece.left - last.right
    least = (CELL if piece.is_placed else SPACE) * min(last.size, piece.size)  # a blank may be that of the smaller text
    return gap > least or gap < -max(last.size, piece.size)


def _is_drop_cap(cap: Word, word: Word) -> bool:
    """Return whether a word continues a drop cap: a letter as high as several lines, on whose first line it stands."""
    return (
        len(cap.text) == 1
        and cap.text.isalpha()
        and cap.turn == word.turn
        and cap.size > _LEAST_CAP * word.size
        and 0.12 * cap.size < word.base - cap.base < cap.size
        and abs(word.left - cap.right) < _BLANK * word.size
    )


def _leading_script(words: Sequence[Word], base: Word) -> Script:
    """Return whether the last of some words is raised or lowered before a base word, and nothing else before that."""
    word, before = words[-1], words[-2] if len(words) > 1 else None
    if word.script or word.left > base.left:
        return ""
    is_line = before is not None and abs(before.base - word.base) < 0.1 * word.size and before.left < word.left
    return "" if is_line else _script(base, base, word)


def _script(base: Word, before: Word, word: Word) -> Script:
    """Return whether a word is raised or lowered beside a base word, or beside another script of that.

    A blank may part a raised number from its word, as in "10 ⁶" and in "² See the deed".
    """
    gaps = (word.left - before.right, before.left - word.right)  # the file may have it before what stands left of it
    raised, ratio = (word.base - base.base) / base.size, word.size / base.size
    is_beside = any(-0.3 < gap / base.size < _BESIDE for gap in gaps)
    is_number = ratio < 0.88 and 0 < raised < _MOST_RAISED and word.text[:1].isdecimal()
    is_near = is_number and abs(word.blanks - before.blanks) == 1 and 0 < max(gaps) / base.size < _BLANK
    if base.turn != word.turn or not (is_beside or is_near):
        return ""
    if ratio > 1.02 or (ratio > 0.88 and (word.is_placed or not 0.2 < abs(raised) < 0.6)):
        return ""
    return "^" if 0.12 < raised < 0.8 else "_" if -0.45 < raised < -0.06 else ""
