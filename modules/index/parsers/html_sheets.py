"""Style sheets inside of an HTML page: which classes and ids they hide, raise, lower or strike out."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

from .html_styles import HtmlStyle, declared_style

_BRACES = re.compile("[{}]")
_NAME = re.compile(r"[.#][\w-]+")
_NAME_OF_ELEMENT = re.compile(r"[\w-]*+[.#][\w-]++")
_DRAWN = ("vertical-align", "position", "baseline-shift", "line-through")
_COMMENT_ENDS = ("/*", "*/")


def hidden_names(sheets: Iterable[str]) -> frozenset[str]:
    """Return the classes and ids that the sheets of a page hide on every screen, as ``.class`` and ``#id``.

    Selectors of several parts, and rules for some media only, are not looked at.

    >>> sorted(hidden_names([".a, #b {display: none} .c p {display:none} @media print {.d {display:none}}"]))
    ['#b', '.a']
    """
    hidden: dict[str, bool] = {}
    for sheet in sheets:
        for selectors, rules in _rules(_without_comments(sheet)):
            compact = "".join(rules.lower().split())
            if "display:" not in compact and "visibility:" not in compact:
                continue
            is_hiding = "display:none" in compact or "visibility:hidden" in compact
            for selector in selectors.split(","):
                if _NAME.fullmatch(name := selector.strip()):
                    hidden[name] = is_hiding
    return frozenset(name for name, is_hiding in hidden.items() if is_hiding)


def drawn_names(sheet: str) -> dict[str, HtmlStyle]:
    """Return what a sheet of a page raises, lowers or strikes out on every screen.

    Keys are ``.class``, ``#id``, ``element.class`` and ``element#id``; what must stand around an element is not looked
    at. A name that is raised by one rule and not by another is raised.

    >>> [(name, style.script) for name, style in drawn_names(".c3, p b.up {vertical-align: super}").items()]
    [('.c3', '^'), ('b.up', '^')]
    """
    drawn: dict[str, HtmlStyle] = {}
    for selectors, rules in _rules(_without_comments(sheet)):
        if not any(word in rules.lower() for word in _DRAWN):
            continue
        style = declared_style(rules)
        if style.script or style.is_struck:
            for selector in selectors.split(","):
                last = selector.split()[-1:]
                if last and _NAME_OF_ELEMENT.fullmatch(name := last[0]):
                    before = drawn.get(name, HtmlStyle())
                    drawn[name] = HtmlStyle(
                        script=style.script or before.script, is_struck=style.is_struck or before.is_struck
                    )
    return drawn


def _rules(sheet: str) -> Iterator[tuple[str, str]]:
    """Yield the selectors and the rules of each block that stands in no other one."""
    depth = start = 0
    selectors = ""
    for brace in _BRACES.finditer(sheet):
        if brace[0] == "{":
            if depth == 0:
                selectors, start = sheet[start : brace.start()].strip(), brace.end()
            depth += 1
        elif depth:
            depth -= 1
            if depth == 0:
                if not selectors.startswith("@"):
                    yield selectors, sheet[start : brace.start()]
                start = brace.end()


def _without_comments(sheet: str) -> str:
    """Return a sheet without its comments, and without the marks that hid it from browsers without sheets."""
    begin, end = _COMMENT_ENDS
    kept, *commented = sheet.replace("<!--", "").replace("-->", "").split(begin)
    return kept + " ".join(each.partition(end)[2] for each in commented)
