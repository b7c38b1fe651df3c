"""Raised and lowered text as plain text, alike in all formats: 10^6, H_2O, and footnote marks apart from numbers."""

from __future__ import annotations

import re

_ORDINALS = frozenset(["st", "nd", "rd", "th", "er", "re", "ère", "ème", "ᵉ"])
_PLAIN = re.compile(r"[+\-−–±]?(?:\w+|[*†‡§¶])[+\-−]?")


def raised(text: str, *, after: str = "") -> str:
    """Return a superscript as it stands in plain text behind ``after``, the text before it on its line.

    >>> raised("6", after="10"), raised("2-", after="SO_4"), raised("n + 1", after="x")
    ('^6', '^2-', '^(n + 1)')
    >>> raised("th", after="the 5"), raised("1", after="")
    ('th', '1 ')
    """
    text = text.strip()
    before = after[-1:]
    if before.isdigit() and text in _ORDINALS:
        return text
    if not before.strip():
        return f"{text} " if text else ""
    return _marked("^", text)


def lowered(text: str) -> str:
    """Return a subscript as it stands in plain text.

    >>> lowered("2"), lowered("i + 1")
    ('_2', '_(i + 1)')
    """
    return _marked("_", text.strip())


def note_mark(text: str) -> str:
    """Return the mark of a footnote, apart from the word or number before it.

    >>> note_mark("2"), note_mark(" [2] ")
    (' [2]', ' [2]')
    """
    text = text.strip().strip("[]()").strip()
    return f" [{text}]" if text else ""


def _marked(mark: str, text: str) -> str:
    if not text:
        return ""
    return mark + (text if _PLAIN.fullmatch(text) else f"({text})")
