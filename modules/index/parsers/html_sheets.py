"""Style sheets inside of an HTML page: which classes and ids they hide."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator

_BRACES = re.compile("[{}]")
_NAME = re.compile(r"[.#][\w-]+")
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
    begin, end = _COMMENT_ENDS
    kept, *commented = sheet.split(begin)
    return kept + " ".join(each.partition(end)[2] for each in commented)
