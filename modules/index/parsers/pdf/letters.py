"""The characters that PDFium finds on a page, with their places: letters side by side as one piece."""

from __future__ import annotations

import ctypes
import math
import re
from array import array
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import cache
from itertools import islice, repeat
from operator import sub
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from pypdfium2 import PdfPage, PdfTextPage

RIGHT_TO_LEFT = re.compile("[\u0590-\u08ff\ufb1d-\ufdff\ufe70-\ufefc\U00010800-\U00010fff\U0001e800-\U0001efff]")
"""Letters, digits and marks of scripts that are written from right to left, such as Arabic and Hebrew."""
SPACE = 0.22
"""Least gap between words, in sizes of their letters."""
_SHOWN = str.maketrans(
    dict(zip(map(chr, range(0xFB00, 0xFB07)), ("ff", "fi", "fl", "ffi", "ffl", "st", "st"), strict=True))
)
CELL = 0.1
"""Least gap between texts that are placed apart, in sizes of their letters; letters of a word are closer."""
_NARROW = 0.5
"""Most gap between words of a sentence, in heights of their letters."""
_WIDE_BLANK = 0.32
"""Most width of a blank, in heights of letters."""
_MOST_GAPS = 80
_SURE_BLANKS = 3
"""Least number of blanks that show that a file writes them, where every gap without one parts texts."""
_MOST_LETTERS = 50
_MOST_SAMPLED = 40
_WITHOUT_BLANKS = re.compile("[\u2e80-\u9fff\uac00-\ud7af\uf900-\ufaff\uff00-\uffef]")
"""Letters between whose words are no blanks."""
_LINE_HYPHEN = "\x02"
"""What PDFium gives for a hyphen at the end of a line."""
_LAST_CODE = 0x10FFFF
_UNREADABLE = "\0\ufffe\U0010ffff"
_BREAKS = frozenset("\r\n" + _UNREADABLE)
_BETWEEN = r"\t\n\r \xa0\u2000-\u200a\u3000\x00\ufffe\U0010ffff"
_WORD = re.compile(f"[^{_BETWEEN}]+")
_PART = re.compile(rf"(?:(?!{RIGHT_TO_LEFT.pattern})[^\W_])+|[^{_BETWEEN}]")
"""Letters of one direction or a single other one, on pages with words that are written from right to left."""
_SAME = 0.1
"""Most difference of the edges of letters in one font on one line, in sizes of the font."""
_NO_SIZE = 0.01
"""Size of letters that a file draws without any height, in points."""
_LEAST_HEIGHT, _MOST_HEIGHT = 0.1, 0.8
"""Heights of letters in sizes of their font; a font with others has measures of its own."""


@dataclass(slots=True)
class Piece:
    """Letters side by side on one line, in one font. Places are in points, as if the text stood upright."""

    text: str
    turn: int
    """Degrees by which the text is turned clockwise on the page as displayed, in steps of five."""
    left: float
    right: float
    base: float
    size: float
    """Size of the font as displayed."""
    is_apart: bool = False
    """True if a blank is before it."""
    is_broken: bool = False
    """True if PDFium sees the end of a line before it, also between letters that are placed one by one."""
    blanks: int = 0
    """Number of blanks before it in the file; two in a row and the end of a line count as one."""
    is_alone: bool = False
    """True if its place says what stands beside it, not the order of the file."""
    is_placed: bool = False
    """True if the file has no blank before it, though it has them between words: a text of its own may begin here."""
    start: int = 0
    """Where its letters begin among those of the page."""
    end: int = 1
    is_struck: bool = False
    """True if it is struck out."""


class PageLetters:
    """The characters of a page."""

    def __init__(self, page: PdfPage, textpage: PdfTextPage) -> None:
        """Read the characters; the text page stays open while their pieces are asked for."""
        self._edges, self._shown = page.get_bbox(), page.get_rotation()
        self._of = _functions()
        self._page = ctypes.cast(textpage.raw, ctypes.c_void_p).value
        count = textpage.count_chars()
        codes = list(map(self._of["FPDFText_GetUnicode"], repeat(self._page), range(count)))
        places = array("f", bytes(16 * count))
        start = places.buffer_info()[0]
        box_of = self._of["FPDFText_GetLooseCharBox"]
        has_box = bytes(map(box_of, repeat(self._page), range(count), range(start, start + 16 * count, 16)))
        text = "".join(
            map(chr, (min(code, _LAST_CODE) for code in codes) if codes and max(codes) > _LAST_CODE else codes)
        )
        self.unreadable = sum(map(text.count, _UNREADABLE))
        """Number of characters whose letters the file does not tell."""
        if 0 in has_box:
            text = "".join(char if has else "\0" for char, has in zip(text, has_box, strict=True))
        self._text = text.replace(_LINE_HYPHEN, "-")
        sides = places.tolist()
        self._lefts, self._tops, self._rights, self._bottoms = (sides[side::4] for side in range(4))
        self._gaps = list(map(sub, self._lefts[1:], self._rights))
        self._fonts: dict[tuple[float, float], tuple[float, float]] = {}
        self._are_alone = False
        """True if the letters of sentences are placed one by one, without blanks; other texts may have theirs."""
        self._were_together = False
        """True if the last letters that were looked at stand in one text."""
        self._has_blanks = self._are_blanks_written()

    def _are_blanks_written(self) -> bool:
        """Return whether the file has blanks between the words of a sentence, so that a gap without one parts texts.

        PDFium gives a blank for a gap, too, which is no part of the file and has no width.
        """
        gaps = [found.span() for found in islice(re.finditer(r"\s+", self._text), _MOST_GAPS)]
        seen = [(start, end) for start, end in gaps if self._is_gap(start)]
        if 2 * len(seen) <= len(gaps):
            return bool(gaps)
        whole = [(start - 1, end) for start, end in seen if start > 0 and end < len(self._text)]
        sampled = whole[:: 1 + len(whole) // _MOST_SAMPLED]
        if any(self._is_one_text(before, after) for before, after in sampled):
            return False
        ends = [at for at, _ in sampled if at > 0 and not self._text[at - 1].isspace()]  # of words of several letters
        alone = sum(not _WITHOUT_BLANKS.match(self._text[at]) and not self._is_one_text(at - 1, at) for at in ends)
        self._are_alone = 2 * alone > len(ends)
        if self._are_alone:
            return False
        if len(gaps) - len(seen) >= _SURE_BLANKS:
            return True
        narrow = sum(self._gap(*two) < _NARROW * (self._tops[two[0]] - self._bottoms[two[0]]) for two in sampled)
        return 5 * narrow <= 4 * len(sampled)

    def _is_one_text(self, one: int, other: int) -> bool:
        """Return whether two letters are shown by one operator of the file."""
        text_of = self._of["FPDFText_GetTextObject"]
        return bool(text_of(self._page, one) == text_of(self._page, other))

    def _gap(self, one: int, other: int) -> float:
        """Return the distance of two letters, which may be turned."""
        return max(
            self._lefts[other] - self._rights[one],
            self._lefts[one] - self._rights[other],
            self._bottoms[other] - self._tops[one],
            self._bottoms[one] - self._tops[other],
        )

    def pieces(self) -> Iterator[Piece]:
        """Yield the letters within the edges of the page, in the order of the file."""
        has_both = RIGHT_TO_LEFT.search(self._text) is not None
        has_blanks, lefts, rights = self._has_blanks or self._are_alone, self._lefts, self._rights
        behind, blanks, own, is_apart, is_broken, is_placed = 0, 0, 0, True, False, False
        for found in (_PART if has_both else _WORD).finditer(self._text):
            start, end = found.span()
            between = self._text[behind:start]
            if between == " ":
                is_apart = True
                blanks += 1
                is_placed = has_blanks and rights[behind] <= lefts[behind]
            elif between := between.strip(_UNREADABLE):
                blanks += 1
                is_apart = is_apart or not _BREAKS.issuperset(between)
                is_broken = is_broken or not _BREAKS.isdisjoint(between)
                is_placed = has_blanks
            if is_apart or is_broken:
                own = 5 * round(math.degrees(self._of["FPDFText_GetCharAngle"](self._page, start)) / 5) % 360
                if own and between == " " and self._is_gap(start - 1):  # also between turned letters that touch
                    is_apart, is_broken = False, True
            if is_placed:
                is_placed = self._begins_text(behind, start, end)
            behind = end
            piece = None if own else self._whole(start, end)
            for each in [piece] if piece else self._one_by_one(start, end, own):
                each.is_apart, each.is_broken, each.blanks = is_apart, is_broken, blanks
                if is_placed:
                    each.is_placed, is_placed = True, False
                each.is_alone = has_both and not (each.text[0].isalnum() and not RIGHT_TO_LEFT.match(each.text))
                is_apart = is_broken = False
                yield each

    def places_of(self, piece: Piece) -> Sequence[tuple[float, float]]:
        """Return where each letter of a piece begins and ends."""
        if piece.end - piece.start == 1:
            return [(piece.left, piece.right)]
        return list(zip(self._lefts[piece.start : piece.end], self._rights[piece.start : piece.end], strict=True))

    def part_of(self, piece: Piece, first: int, last: int) -> Piece:
        """Return a part of a piece of several letters, from one of them to the one before another."""
        start, end = piece.start + first, piece.start + last
        lefts, rights = self._lefts[start:end], self._rights[start:end]
        part = replace(
            piece, text=self._shown_text(start, end), left=min(lefts), right=max(rights), start=start, end=end
        )
        return replace(part, is_apart=False, is_broken=False, is_placed=False) if first else part

    def _is_gap(self, at: int) -> bool:
        """Return whether a blank is none of the file, but what PDFium gives for a gap."""
        return self._rights[at] <= self._lefts[at]

    def _begins_text(self, behind: int, start: int, end: int) -> bool:
        """Return whether no blank is between letters and the word before, and its letters are not placed one by one.

        Files have no blanks between the words of texts whose letters are.
        """
        if any(not self._is_gap(at) and self._text[at] not in _BREAKS for at in range(behind, start)):
            return False
        if not self._are_alone and (
            not behind
            or self._gap(behind - 1, start) >= _WIDE_BLANK * (self._tops[start] - self._bottoms[start])
            or _WITHOUT_BLANKS.match(self._text[behind - 1])
            or _WITHOUT_BLANKS.match(self._text[start])
        ):
            return True
        least = max(0, behind - _MOST_LETTERS)
        first = max(least, *(self._text.rfind(blank, least, behind) + 1 for blank in " \n"))
        return self._are_together([*range(first, behind - 1), *range(start, end - 1)])

    def _are_together(self, pairs: Sequence[int]) -> bool:
        """Return whether most of some letters are in one text with the letter behind each, or those before if none."""
        if pairs or not self._are_alone:
            self._were_together = 2 * sum(not self._is_one_text(at, at + 1) for at in pairs) <= len(pairs)
        return self._were_together

    def _whole(self, start: int, end: int) -> Piece | None:
        """Return upright letters of one font without gaps between them, None if they are no such letters."""
        left, right, bottom, top = self._lefts[start], self._rights[end - 1], self._bottoms[start], self._tops[start]
        low_x, low_y, high_x, high_y = self._edges
        if left < low_x or right > high_x or bottom < low_y or top > high_y:
            return None
        font = self._fonts.get((bottom, top))
        if font is None:  # asked for once for all letters of a line with these edges, which takes long
            _, base, size = self._font_at(start, top - bottom)
            self._fonts[bottom, top] = base, size
        else:
            base, size = font
        if end - start > 1:
            bottoms, tops, gaps = self._bottoms[start:end], self._tops[start:end], self._gaps[start : end - 1]
            most = _SAME * size
            if (
                max(bottoms) - min(bottoms) > most
                or max(tops) - min(tops) > most
                or max(gaps) > (CELL if self._has_blanks or self._are_alone else SPACE) * size
                or min(gaps) < -0.5 * size
            ):
                return None
        return Piece(self._shown_text(start, end), self._shown, left, right, base, size, start=start, end=end)

    def _one_by_one(self, start: int, end: int, own: int) -> Iterator[Piece]:
        """Yield letters turned by an angle as they stand after the page is turned back by it."""
        low_x, low_y, high_x, high_y = self._edges
        cos, sin = math.cos(math.radians(own)), math.sin(math.radians(own))
        placed = self._placed(start, end, own) if self._has_blanks or self._are_alone else ()
        for at in range(start, end):
            left, right, bottom, top = self._lefts[at], self._rights[at], self._bottoms[at], self._tops[at]
            if not (low_x <= (left + right) / 2 <= high_x and low_y <= (bottom + top) / 2 <= high_y):
                continue  # cut off by the edge of the page
            xs = [a * cos - b * sin for a in (left, right) for b in (bottom, top)]
            ys = [a * sin + b * cos for a in (left, right) for b in (bottom, top)]
            x, y, size = self._font_at(at, max(ys) - min(ys))
            base = x * sin + y * cos
            yield Piece(
                self._shown_text(at, at + 1),
                (own + self._shown) % 360,
                min(xs),
                max(xs),
                base,
                size,
                is_placed=at in placed,
                start=at,
                end=at + 1,
            )

    def _placed(self, start: int, end: int, own: int) -> Sequence[int]:
        """Return where other texts begin within letters, a little apart; nowhere in letters that are spaced."""
        low, high = (self._lefts, self._rights) if own % 180 == 90 else (self._bottoms, self._tops)
        found = [at for at in range(start + 1, end) if self._gap(at - 1, at) > CELL * (high[at] - low[at])]
        if any(self._is_one_text(at - 1, at) for at in found):
            return []
        within = sorted({*range(start, end - 1)}.difference(at - 1 for at in found))
        return found if not self._are_alone or self._are_together(within) else []

    def _font_at(self, at: int, height: float) -> tuple[float, float, float]:
        """Return where the base line of a letter begins, and the size of its font as displayed."""
        x, y, matrix = ctypes.c_double(), ctypes.c_double(), (ctypes.c_float * 6)()
        self._of["FPDFText_GetCharOrigin"](self._page, at, ctypes.addressof(x), ctypes.addressof(y))
        self._of["FPDFText_GetMatrix"](self._page, at, ctypes.addressof(matrix))
        size = self._of["FPDFText_GetFontSize"](self._page, at) * math.hypot(matrix[2], matrix[3])
        displayed = size if _LEAST_HEIGHT * size <= height <= _MOST_HEIGHT * size else height
        return x.value, y.value, displayed or _NO_SIZE

    def _shown_text(self, start: int, end: int) -> str:
        text = self._text[start:end]
        return text if text.isascii() else text.translate(_SHOWN)


@cache
def _functions() -> dict[str, Callable[..., Any]]:
    """Return functions of PDFium by name that take addresses as numbers, since objects for them take longest."""
    from pypdfium2 import raw  # noqa: PLC0415 - keeps the package's import fast

    number, place, real, double = ctypes.c_int, ctypes.c_void_p, ctypes.c_float, ctypes.c_double
    kinds: dict[str, tuple[Any, ...]] = {
        "FPDFText_GetUnicode": (ctypes.c_uint, place, number),
        "FPDFText_GetLooseCharBox": (number, place, number, place),
        "FPDFText_GetCharOrigin": (number, place, number, place, place),
        "FPDFText_GetCharAngle": (real, place, number),
        "FPDFText_GetMatrix": (number, place, number, place),
        "FPDFText_GetFontSize": (double, place, number),
        "FPDFText_GetTextObject": (place, place, number),
    }
    return {
        name: ctypes.PYFUNCTYPE(*kind)(ctypes.cast(getattr(raw, name), place).value or 0)
        for name, kind in kinds.items()
    }
