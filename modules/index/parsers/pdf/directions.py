"""The order of reading in lines with words that are written from right to left, out of the places of the words.

This is the algorithm of Unicode Standard Annex 9, backwards. Two texts may look alike in a line: a number to the right
of a Latin word is read after a name (ISO 9001), and before a unit (16 bar).
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache

from ....reading.scripts import Script
from .letters import RIGHT_TO_LEFT, SPACE
from .struck import with_strikes
from .words import Word

_APART = 0.13
"""Least gap between words that have a blank between them in the file, in sizes of their letters."""
_LONGEST_UNIT = 3
_MOST_MARKS = 100
"""Most characters of a letter with its marks, since putting marks in order takes the square of their number."""
_WITHIN_NUMBERS = frozenset(".,:/\u066b\u066c")
_ARABIC = re.compile("[\u0600-\u07bf\u0860-\u08ff]")
_FORMS = re.compile("[\ufb1d-\ufdff\ufe70-\ufefc]+")
_CLOSING = {"(": ")", "[": "]", "{": "}", "«": "»", "‹": "›"}
_OPENING = {closing: opening for opening, closing in _CLOSING.items()}


@dataclass(slots=True)
class _Unit:
    """Letters that are read together."""

    text: str
    script: Script
    kind: str
    """R: read from right to left, L: Latin and such, N: a number, A: a number in Arabic text, "": has no direction."""
    is_apart: bool
    """True if a space is to the left of it."""
    is_struck: bool
    """True if it is struck out."""


_Read = tuple[_Unit, bool]
"""A unit, and whether a space is before it in the order of reading."""


def has_right_to_left(words: Sequence[Word]) -> bool:
    """Return whether a word is written from right to left."""
    return RIGHT_TO_LEFT.search(" ".join([word.text for word in words])) is not None


def is_backwards(words: Sequence[Word], *, among: bool = False) -> bool:
    """Return whether a line is read from right to left, as it is if most of its letters are.

    Args:
        words: The words of the line, from left to right.
        among: True if most letters of the page are read so; a line that is so at one of its ends is then, too.
    """
    strong = [kind == "R" for word in words for kind in map(_kind, word.text) if kind in ("R", "L")]
    return 2 * sum(strong) > len(strong) or (among and any(strong) and (strong[0] or strong[-1]))


def in_order(words: Sequence[Word], *, backwards: bool) -> list[tuple[str, Script]]:
    """Return the texts of a line in the order of reading, a space before those that are apart, and their scripts.

    Those that are struck out have marks around them.

    Args:
        words: The words, from left to right.
        backwards: True if the line is read from right to left.
    """
    units = _units(words)
    order = list(_from_right(units) if backwards else _from_left(units))
    _turn_brackets(order)
    return list(
        with_strikes(
            ((" " if is_apart and at else "") + unit.text, unit.script, unit.is_struck)
            for at, (unit, is_apart) in enumerate(order)
        )
    )


@lru_cache(maxsize=10_000)
def _kind(text: str) -> str:
    """Return the kind of a text by its first letter that has a direction, or by its digits."""
    kinds = [unicodedata.bidirectional(char) for char in text]
    if strong := next((kind for kind in kinds if kind in ("L", "R", "AL")), None):
        return "L" if strong == "L" else "R"
    return "A" if "AN" in kinds else "N" if "EN" in kinds else ""


def _units(words: Sequence[Word]) -> list[_Unit]:
    """Return words as units, from left to right, marks with the letters on which they stand."""
    units: list[_Unit] = []
    before: Word | None = None
    for word, text in _with_marks(sorted(words, key=lambda word: word.left + word.right)):
        gap = word.left - before.right if before else 0.0
        least = SPACE if before and before.blanks == word.blanks else _APART
        is_apart = gap > least * word.size
        units.append(_Unit(text, word.script, _kind(text), is_apart=is_apart, is_struck=word.is_struck))
        before = word
    if not _ARABIC.search("".join([unit.text for unit in units])):
        _add_signs(units)
    return units


def _add_signs(units: Sequence[_Unit]) -> None:
    """Join signs to the number that they touch, such as $ and %, and a - between two numbers."""
    for at, sign in enumerate(units):
        if sign.kind:
            continue
        is_after = at > 0 and units[at - 1].kind == "N" and not sign.is_apart
        is_before = at + 1 < len(units) and units[at + 1].kind == "N" and not units[at + 1].is_apart
        bidi = unicodedata.bidirectional(sign.text[0])
        if (bidi == "ET" and (is_after or is_before)) or (bidi == "ES" and is_after and is_before):
            sign.kind = "N"


def _without_forms(found: re.Match[str]) -> str:
    """Return letters for those whose form tells where they stand in a word."""
    return unicodedata.normalize("NFKC", found[0])


def _with_marks(words: Sequence[Word]) -> Iterator[tuple[Word, str]]:
    """Yield words with their texts, those of the marks that stand above or below them included."""
    texts = [word.text for word in words]
    letters = [at for at, text in enumerate(texts) if not _is_mark(text[0])]
    if 0 < len(letters) < len(words):
        _put_marks(words, letters, texts)
    for word, text in zip(words, texts, strict=True):
        if text:
            yield word, text if text.isascii() else unicodedata.normalize("NFC", _FORMS.sub(_without_forms, text))


def _put_marks(words: Sequence[Word], letters: Sequence[int], texts: list[str]) -> None:
    """Move the texts of marks behind those of the letters on which they stand; ``letters`` are places of ``words``."""
    middles = [words[at].left + words[at].right for at in letters]
    for mark in sorted(set(range(len(words))).difference(letters)):
        middle = words[mark].left + words[mark].right
        at = bisect_left(middles, middle)
        near = [each for each in letters[max(0, at - 1) : at + 1] if _is_over(words[each], middle)]
        if near and len(texts[near[0]]) < _MOST_MARKS:
            texts[near[0]] += texts[mark]
            texts[mark] = ""


def _is_over(letter: Word, middle: float) -> bool:
    """Return whether a place, given as the sum of two sides, is between the sides of a letter."""
    return 2 * letter.left <= middle <= 2 * letter.right


@lru_cache(maxsize=10_000)
def _is_mark(char: str) -> bool:
    return unicodedata.category(char) == "Mn"


def _from_right(units: Sequence[_Unit]) -> Iterator[_Read]:
    """Yield units from right to left, with the runs among them that are read from left to right as they stand."""
    is_apart = False
    for start, end in reversed(_runs(units)):
        for at in range(start, end):
            yield units[at], is_apart if at == start else units[at].is_apart
        is_apart = units[start].is_apart


def _runs(units: Sequence[_Unit]) -> list[tuple[int, int]]:
    """Return the places of what is read from left to right, unit by unit and run by run, in a line that is not."""
    runs: list[tuple[int, int]] = []
    open_run: int | None = None
    for at, unit in enumerate(units):
        if unit.kind == "R":
            open_run = None
        elif unit.kind:
            if open_run is not None and _is_read_on(units, runs[open_run], at):
                start = runs[open_run][0]
                del runs[open_run:]
                runs.append((start, at + 1))
                continue
            open_run = len(runs)
        runs.append((at, at + 1))
    return runs


def _is_read_on(units: Sequence[_Unit], run: tuple[int, int], at: int) -> bool:
    """Return whether a run that is read from left to right includes the next unit that has a direction."""
    start, end = run
    before, unit, between = units[end - 1], units[at], units[end:at]
    is_spaced = any(each.is_apart for each in units[end : at + 1])
    if before.kind != "L" and unit.kind != "L":
        is_one = not between or (len(between) == 1 and between[0].text in _WITHIN_NUMBERS)
        return units[start].kind == "L" or (is_one and not is_spaced)
    if "A" in (before.kind, unit.kind):
        return not between and not is_spaced
    is_unit = end - start == 1 and len(before.text) <= _LONGEST_UNIT and not before.text.isupper()
    return unit.kind == "L" or not (is_unit and is_spaced and not between)


def _from_left(units: Sequence[_Unit]) -> Iterator[_Read]:
    """Yield units from left to right, with the runs among them that are read from right to left."""
    done = 0
    for start, end in _runs_from_right(units):
        yield from ((unit, unit.is_apart) for unit in units[done:start])
        for number, (unit, is_apart) in enumerate(_from_right(units[start:end])):
            yield unit, is_apart if number else units[start].is_apart
        done = end
    yield from ((unit, unit.is_apart) for unit in units[done:])


def _runs_from_right(units: Sequence[_Unit]) -> list[tuple[int, int]]:
    """Return the places of what is read from right to left in a line that is not; a number may be at its end."""
    runs: list[tuple[int, int]] = []
    is_open = False
    for at, unit in enumerate(units):
        if unit.kind == "R":
            start = runs.pop()[0] if is_open else at - _length_of_number(units, at)
            runs.append((start, at + 1))
        is_open = unit.kind == "R" or (is_open and unit.kind != "L")
    return runs


def _length_of_number(units: Sequence[_Unit], end: int) -> int:
    """Return the number of units before a place that are a number, 0 if it is one of Latin words before it."""
    start = end
    while start and (units[start - 1].kind in ("N", "A") or units[start - 1].text in _WITHIN_NUMBERS):
        start -= 1
    while start < end and not units[start].kind:
        start += 1
    return 0 if start and units[start - 1].kind == "L" else end - start


def _turn_brackets(order: list[_Read]) -> None:
    """Make brackets open and close as they stand; PDFium turns some of those in words from right to left."""
    waiting: Counter[str] = Counter()
    for at, (unit, is_apart) in enumerate(order):
        opening = _OPENING.get(unit.text, unit.text)
        if opening not in _CLOSING:
            continue
        behind = order[at + 1] if at + 1 < len(order) else None
        is_first = is_apart or not at or order[at - 1][0].text in _CLOSING
        is_last = behind is None or behind[1] or (not behind[0].kind and behind[0].text not in _CLOSING)
        closes = is_last if is_first != is_last else waiting[opening] > 0
        waiting[opening] += -1 if closes else 1
        unit.text = _CLOSING[opening] if closes else opening
