"""JSON of any depth, as the standard library writes and reads it, also where the nesting is too deep for that."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from typing import cast

from ..json_objects import BRACKET, DEPTH

_LEVELS = 100
"""Levels of a text that are parsed in one go."""


def dumps(document: object, *, indent: int | None = None, compact: bool = False, allow_nan: bool = True) -> str:
    """Return plain data as a text of JSON, as ``json.dumps(…, ensure_ascii=False)`` does.

    >>> dumps({"a": [1, None]}), dumps([1, 2], compact=True)
    ('{"a": [1, null]}', '[1,2]')

    Args:
        document: Dictionaries with text keys, lists, tuples and scalars.
        indent: Blanks of a level; None for one line.
        compact: Whether blanks behind "," and ":" are left out.
        allow_nan: Whether numbers that are not finite are written, which is no JSON.

    Raises:
        ValueError: A number is not finite.
    """

    def encode(value: object) -> str:
        separators = (",", ":") if compact else None
        return json.dumps(value, ensure_ascii=False, allow_nan=allow_nan, indent=indent, separators=separators)

    try:
        return encode(document)
    except RecursionError:
        return "".join(encoded(document, encode, indent=indent, compact=compact))


def encoded(document: object, encode: Callable[[object], str], *, indent: int | None, compact: bool) -> Iterator[str]:
    """Yield the parts of the text of ``dumps`` without recursion; ``encode`` writes scalars and empty containers."""
    comma, colon = "," if compact or indent is not None else ", ", ":" if compact else ": "
    open_: list[tuple[Iterator[object], str]] = []
    value, is_first = document, True

    def line() -> str:
        return "" if indent is None else "\n" + " " * indent * len(open_)

    while True:
        is_first = isinstance(value, Mapping | list | tuple) and bool(value)
        if not is_first:
            yield encode(value)
        elif isinstance(value, Mapping):
            yield "{"
            open_.append((iter(value.items()), "}"))
        else:
            yield "["
            open_.append((iter(value), "]"))  # type: ignore[call-overload]
        while open_:
            items, closing = open_[-1]
            item = next(items, _END)
            if item is not _END:
                break
            open_.pop()
            is_first = False
            yield f"{line()}{closing}"
        else:
            return
        yield f"{'' if is_first else comma}{line()}"
        value = item
        if closing == "}":
            key, value = cast("tuple[str, object]", item)
            yield f"{encode(key)}{colon}"


_END = object()


def loads(text: str) -> object:
    """Return what a text of JSON holds, as ``json.loads`` does.

    >>> loads("[" * 5000 + "]" * 5000)[0] != []
    True

    Raises:
        ValueError: It is not JSON.
    """
    try:
        value: object = json.loads(text)
    except RecursionError:
        return _loaded_in_parts(text)
    return value


def _loaded_in_parts(text: str) -> object:
    """Parse the innermost hundred levels first, and put each result where a stand-in holds its place."""
    mark = "part"
    while mark in text:
        mark += "_"
    parsed: list[object] = []

    def filled(found: dict[str, object]) -> object:
        return parsed[cast(int, found[mark])] if mark in found else found

    parts: list[list[str]] = [[]]
    depth = start = 0
    for bracket in BRACKET.finditer(text):
        step = DEPTH.get(bracket[0], 0)
        if step > 0 and depth and depth % _LEVELS == 0:
            parts[-1].append(text[start : bracket.start()])
            parts.append([])
            start = bracket.start()
        depth += step
        if step < 0 and depth % _LEVELS == 0 and len(parts) > 1:
            parsed.append(json.loads("".join([*parts.pop(), text[start : bracket.end()]]), object_hook=filled))
            parts[-1].append(f'{{"{mark}":{len(parsed) - 1}}}')
            start = bracket.end()
    return json.loads("".join([*parts[0], text[start:] if len(parts) == 1 else "["]), object_hook=filled)
