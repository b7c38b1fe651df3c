"""Numbers of lists, as a reader sees them: "3.2", "(a)", "IV."."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from xml.etree.ElementTree import Element

from .package import W, is_on, number, value

_MOST_LEVELS = 9
_MAX_LABEL = 100
_PLACE = re.compile("%([1-9])")
_ROMAN_LARGE = ((1000, "m"), (900, "cm"), (500, "d"), (400, "cd"), (100, "c"), (90, "xc"), (50, "l"), (40, "xl"))
_ROMAN = (*_ROMAN_LARGE, (10, "x"), (9, "ix"), (5, "v"), (4, "iv"), (1, "i"))
_DIGITS = "〇一二三四五六七八九"
_CIRCLED = "①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳"


def _roman(count: int) -> str:
    if not 0 < count < 4000:
        return str(count)
    letters = ""
    for size, sign in _ROMAN:
        letters += sign * (count // size)
        count %= size
    return letters


def _letters(count: int) -> str:
    return chr(ord("a") + (count - 1) % 26) * ((count - 1) // 26 + 1) if 0 < count <= 780 else str(count)


def _chinese(count: int) -> str:
    if not 0 < count < 100:
        return "".join(_DIGITS[int(digit)] for digit in str(count)) if count >= 0 else str(count)
    tens, ones = divmod(count, 10)
    return (_DIGITS[tens] if tens > 1 else "") + ("十" if tens else "") + (_DIGITS[ones] if ones else "")


FORMATS: dict[str, Callable[[int], str]] = {
    "": str,
    "decimal": str,
    "decimalZero": lambda count: f"{count:02}",
    "lowerRoman": _roman,
    "upperRoman": lambda count: _roman(count).upper(),
    "lowerLetter": _letters,
    "upperLetter": lambda count: _letters(count).upper(),
    "ordinal": lambda count: f"{count}{_ordinal_ending(count)}",
    "numberInDash": lambda count: f"- {count} -",
    "decimalFullWidth": str,
    "decimalHalfWidth": str,
    "decimalEnclosedCircle": lambda count: _CIRCLED[count - 1] if 0 < count <= len(_CIRCLED) else str(count),
    "decimalEnclosedCircleChinese": lambda count: _CIRCLED[count - 1] if 0 < count <= len(_CIRCLED) else str(count),
    "chineseCounting": _chinese,
    "chineseCountingThousand": _chinese,
    "taiwaneseCounting": _chinese,
    "taiwaneseCountingThousand": _chinese,
    "japaneseCounting": _chinese,
    "ideographDigital": lambda count: "".join(_DIGITS[int(digit)] for digit in str(abs(count))),
    "none": lambda count: "",
}
"""Texts of a number by the name of its format."""


def _ordinal_ending(count: int) -> str:
    return "th" if count % 100 in (11, 12, 13) else {1: "st", 2: "nd", 3: "rd"}.get(count % 10, "th")


@dataclass(frozen=True, kw_only=True)
class _Level:
    text: str
    start: int
    style: str
    restarts_after: int
    """Number of the levels above it that make it begin anew; 0 for none."""
    only_decimal: bool

    @classmethod
    def of(cls, element: Element, at: int) -> _Level:
        restart = element.find(f"{W}lvlRestart")
        return cls(
            text=value(element.find(f"{W}lvlText"))[:_MAX_LABEL],
            start=number(value(element.find(f"{W}start"))),
            style=value(element.find(f"{W}numFmt")),
            restarts_after=at if restart is None else number(value(restart), at),
            only_decimal=is_on(element.find(f"{W}isLgl")),
        )


@dataclass(kw_only=True)
class _List:
    """Levels of a list and how far it has been counted."""

    counts: list[int | None]
    """Shared by all lists of one definition, which count on."""
    levels: dict[int, _Level]
    starts: dict[int, int] = field(default_factory=dict)
    """Levels that begin anew when this list first uses them."""


class Numbering:
    """The lists of a document, counted paragraph by paragraph."""

    def __init__(self, root: Element | None) -> None:
        self._lists: dict[str, _List] = {}
        if root is None:
            return
        definitions = {value(each, "abstractNumId"): each for each in root.findall(f"{W}abstractNum")}
        by_style = {value(each.find(f"{W}styleLink")): each for each in definitions.values()}
        by_style.pop("", None)
        counts: dict[str, list[int | None]] = {}
        levels: dict[str, dict[int, _Level]] = {}
        for each in root.findall(f"{W}num"):
            name = value(each.find(f"{W}abstractNumId"))
            definition = definitions.get(name)
            if definition is not None and (link := value(definition.find(f"{W}numStyleLink"))) in by_style:
                definition = by_style[link]
                name = value(definition, "abstractNumId")
            if name not in levels:
                levels[name] = {} if definition is None else _levels_in(definition)
            own = _List(counts=counts.setdefault(name, [None] * _MOST_LEVELS), levels=levels[name])
            _override(own, each)
            self._lists[value(each, "numId")] = own

    def label(self, list_id: str, level_name: str) -> str | None:
        """Return the number of the next paragraph of a list; "" for a bullet, None for a format that is unknown."""
        found = self._lists.get(list_id)
        at = min(max(number(level_name), 0), _MOST_LEVELS - 1)
        if found is None or (level := found.levels.get(at)) is None:
            return ""
        _count_on(found, at, level)
        if level.style == "bullet":
            return ""

        def shown(place: re.Match[str]) -> str:
            of = int(place[1]) - 1
            count = found.counts[of]
            style = "decimal" if level.only_decimal else found.levels[of].style if of in found.levels else ""
            return FORMATS[style](0 if count is None else count)

        try:
            return _PLACE.sub(shown, level.text).strip()
        except KeyError:
            return None


def _levels_in(parent: Element) -> dict[int, _Level]:
    found = ((number(value(each, "ilvl")), each) for each in parent.findall(f"{W}lvl"))
    return {at: _Level.of(each, at) for at, each in found}


def _override(own: _List, element: Element) -> None:
    for each in element.findall(f"{W}lvlOverride"):
        at = number(value(each, "ilvl"))
        if replaced := _levels_in(each):
            own.levels = {**own.levels, **replaced}
        start = each.find(f"{W}startOverride")
        if start is not None and 0 <= at < _MOST_LEVELS:
            own.starts[at] = number(value(start))


def _count_on(found: _List, at: int, level: _Level) -> None:
    counts = found.counts
    before = counts[at]
    if at in found.starts:
        counts[at] = found.starts.pop(at)
    else:
        counts[at] = level.start if before is None else before + 1
    for above in range(at):
        if counts[above] is None:
            counts[above] = found.levels[above].start if above in found.levels else 0
    for below in range(at + 1, _MOST_LEVELS):
        if below not in found.levels or found.levels[below].restarts_after > at:
            counts[below] = None
