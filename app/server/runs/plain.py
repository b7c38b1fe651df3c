"""Data of reports as JSON that every reader takes."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping

from pydantic import JsonValue

from ....modules.storage.texts import printable


def plain(value: object) -> JsonValue:
    """Return data as JSON: None for what is no finite number, and U+FFFD for characters that no text may have.

    >>> plain({"low": float("nan"), "names": ("a", 1)})
    {'low': None, 'names': ['a', 1]}
    """
    match value:
        case None | bool() | int():
            return value
        case float():
            return value if math.isfinite(value) else None
        case Mapping():
            return {printable(str(name)): plain(inner) for name, inner in value.items()}
        case str():
            return printable(value)
        case Iterable():
            return [plain(inner) for inner in value]
        case _:
            return printable(str(value))
