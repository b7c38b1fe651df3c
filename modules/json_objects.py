"""Where JSON objects stand in a text that a model wrote."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

BRACKET = re.compile(r'"(?:[^"\\]|\\.)*+"?|[][{}]', re.DOTALL)
"""A bracket, or a string with all brackets in it; an open string runs to the end, so that no search starts over."""
DEPTH = {"{": 1, "[": 1, "}": -1, "]": -1}


class ObjectSpan(NamedTuple):
    """A part of a text, from an opening brace to the closing one, or to the end of the text."""

    start: int
    end: int
    depth: int
    """Deepest nesting, from 1."""
    is_closed: bool


def object_at(text: str, start: int) -> ObjectSpan:
    """Return the span of the object whose brace opens at ``start``, in linear time; brackets in strings do not count.

    >>> object_at('{"a": "}"} b', 0)
    ObjectSpan(start=0, end=10, depth=1, is_closed=True)
    """
    depth = deepest = 0
    for token in BRACKET.finditer(text, start):
        depth += DEPTH.get(token[0], 0)
        deepest = max(deepest, depth)
        if not depth:
            return ObjectSpan(start, token.end(), deepest, is_closed=True)
    return ObjectSpan(start, len(text), deepest, is_closed=False)


def object_spans(text: str) -> Iterator[ObjectSpan]:
    """Yield the objects that are inside no other one, in the order of the text; linear. The last may be open."""
    start = text.find("{")
    while start >= 0:
        span = object_at(text, start)
        yield span
        start = text.find("{", span.end)
