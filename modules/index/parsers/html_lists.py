"""The numbers before the items of HTML lists."""

from __future__ import annotations

from typing import TYPE_CHECKING

from .html_hidden import attribute

if TYPE_CHECKING:
    from bs4.element import Tag

    from .html_styles import ListKind

_MAX_NESTED = 20
"""Deepest list whose items have numbers."""
_LISTS = ["ol", "ul", "menu", "dir"]
_MAX_NUMBER = 10**9
_ROMAN = ((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"))
_ROMAN_ENDS = ((10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))


class ListMarks:
    """The lists around the place that is read, and the number of the next item of each."""

    def __init__(self) -> None:
        self._lists: list[_Numbers | None] = []

    def begin(self, node: Tag, kind: ListKind) -> None:
        """Enter a list, whose style says this of its numbers."""
        is_numbered = node.name == "ol" and len(self._lists) < _MAX_NESTED and kind != "none"
        self._lists.append(_Numbers(node, kind) if is_numbered else None)

    def end(self) -> None:
        """Leave a list."""
        if self._lists:
            self._lists.pop()

    def mark(self, item: Tag) -> str:
        """Return the number of an item, such as "3. ", and pass on to the next one; "" without numbers."""
        numbers = self._lists[-1] if self._lists else None
        return numbers.mark(item) if numbers else ""


class _Numbers:
    def __init__(self, node: Tag, kind: ListKind) -> None:
        self._kind = kind or attribute(node, "type")
        self._step = -1 if node.has_attr("reversed") else 1
        items = sum(item.find_parent(_LISTS) is node for item in node.find_all("li")) if self._step < 0 else 1
        self._next = _number(attribute(node, "start"), items)

    def mark(self, item: Tag) -> str:
        number = _number(attribute(item, "value"), self._next)
        self._next = number + self._step
        return f"{_shown(number, self._kind)}. "


def _number(text: str, default: int) -> int:
    try:
        number = int(text[:12])
    except ValueError:
        return default
    return number if abs(number) < _MAX_NUMBER else default


def _shown(number: int, kind: str) -> str:
    """Return a number as a list of this type shows it.

    >>> _shown(4, "i"), _shown(28, "A"), _shown(0, "a"), _shown(7, "")
    ('iv', 'AB', '0', '7')
    """
    if kind in ("a", "A") and number > 0:
        letters = ""
        while number:
            number, letter = divmod(number - 1, 26)
            letters = chr(ord(kind) + letter) + letters
        return letters
    if kind in ("i", "I") and 0 < number < 4000:
        roman = ""
        for value, letters in (*_ROMAN, *_ROMAN_ENDS):
            count, number = divmod(number, value)
            roman += letters * count
        return roman if kind == "i" else roman.upper()
    return str(number)
