"""What a collection's search compares, of texts and of queries alike; every search and every new text comes here.

Analyzers cut words at ``^``, and some at ``_``: 10^6 would be the words 10 and 6, and H_2O the words H and 2O.
"""

from __future__ import annotations

import re
from typing import Literal

from .folding import folded
from .letters import CJK

SearchForm = Literal["written", "folded"]
"""How a collection holds what is searched: as its texts are written, or in the form of ``folded``, with powers as words
of their own. Older collections, and indexes that others have built, are of the first kind."""

_LETTER = rf"[^\W_{CJK}]"
_POWER = r"([+\-]?)(\d++|[^\W\d_" + CJK + "]++)"
_RAISED = re.compile(rf"(?<!{_LETTER})({_LETTER}++)\^(?:{_POWER}|\{{{_POWER}\}}|\({_POWER}\))(?=(\w)?)")
_BRACED = re.compile(r"_\{(\w++)\}")
_LOWERED = re.compile(rf"(?<!{_LETTER}|_){_LETTER}++(?:_{_LETTER}++)+(?!_)")
_LONGEST_INDEX = 3
"""Digits of an index; ``file_2024`` is a name."""
_WORD = re.compile(r"\w+")


def text_to_embed(text: str, form: SearchForm) -> str:
    """Return what an embedder is given of a text or a query."""
    return folded(text) if form == "folded" else text


def words_of_text(text: str) -> str:
    """Return what BM25 counts of a text.

    A power is its base and a word of its own, so that neither 106 nor 6 finds 10⁶, and 10⁶, 10^6 and 10^{6} are one. A
    word with lowered numbers stands besides without their mark, since most write CO2 for CO₂.

    >>> words_of_text("10⁶ mol of CO₂")
    '10 10xsup6 mol of CO_2 CO2'
    """
    text = folded(text)
    if "^" in text:
        text = _RAISED.sub(_raised, text)
    if "_" in text:
        text = _LOWERED.sub(_lowered, _BRACED.sub(r"_\1", text))
    return text


def words_of_query(query: str, form: SearchForm) -> str:
    """Return what BM25 looks for; where texts stand as they are written, further words that the folded query has."""
    words = words_of_text(query)
    if form == "folded" or words == query:
        return words
    known = set(_WORD.findall(query.lower()))
    return " ".join([query, *(word for word in _WORD.findall(words) if word.lower() not in known)])


def _raised(found: re.Match[str]) -> str:
    base, *parts, after = found.groups()
    sign, power = (part or "" for part in next(parts[at : at + 2] for at in (0, 2, 4) if parts[at + 1]))
    before = " " if found.string[: found.start()][-1:].isalnum() else ""
    return f"{before}{base} {base}xsup{'neg' if sign == '-' else ''}{power}{' ' if after else ''}"


def _lowered(found: re.Match[str]) -> str:
    base, *indices = found[0].split("_")
    digits = [len(index) - len(index.lstrip("0123456789")) for index in indices]
    if base[-1].isalpha() and all(0 < each <= _LONGEST_INDEX for each in digits):
        return f"{found[0]} {found[0].replace('_', '')}"
    return found[0]
