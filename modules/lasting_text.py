"""Texts of values that are equal in all processes, whatever the order of sets and the addresses of objects."""

from __future__ import annotations

import functools
import json
import re
from collections.abc import Callable, Mapping, Set

_DEEPEST = 8
"""Levels of nested values; deeper ones, as in objects that hold themselves, stand for their class."""
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def lasting_text(value: object) -> str:
    """Return a JSON text that changes with a value: plain data, sets, arrays, dataclasses, pydantic objects, paths.

    An object with a ``fingerprint`` stands for that, one that shows nothing of itself but its address for its class.

    >>> lasting_text({"stop": {2, 1}})
    '{"stop": {"set": ["1", "2"]}}'
    """
    return json.dumps(_plain(value, 0), sort_keys=True)


def _plain(value: object, depth: int) -> object:
    if value is None or isinstance(value, str | int | float):
        return value
    kind = value if isinstance(value, type) else type(value)
    if depth > _DEEPEST or kind is value:
        return kind.__qualname__
    inner = functools.partial(_plain, depth=depth + 1)
    if isinstance(value, list | tuple):
        return [inner(each) for each in value]
    if isinstance(value, Mapping):
        return {str(key): inner(each) for key, each in value.items()}
    if isinstance(value, Set):
        return {"set": sorted(json.dumps(inner(each), sort_keys=True) for each in value)}
    return {kind.__qualname__: _shown(value, inner)}


def _shown(value: object, inner: Callable[[object], object]) -> object:
    """Return what an object shows of itself; asked of its class, since some objects answer to every name."""
    kind = type(value)
    if isinstance(value, functools.partial):
        return [inner(each) for each in (value.func, value.args, value.keywords)]
    if hasattr(kind, "fingerprint"):
        return inner(value.fingerprint())  # type: ignore[attr-defined]
    if fields := getattr(kind, "__dataclass_fields__", None) or getattr(kind, "model_fields", None):
        return {field: inner(getattr(value, field, None)) for field in fields}
    if hasattr(kind, "tolist"):  # arrays, whose own text leaves out the middle
        return inner(value.tolist())  # type: ignore[attr-defined]
    text = repr(value)
    return getattr(value, "__qualname__", "") if _ADDRESS.search(text) else text
