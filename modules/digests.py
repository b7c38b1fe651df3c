"""Digests of texts and values, equal in all processes, whatever the order of sets and the addresses of objects.

Many are saved as ids and keys: a change here is a change of every format.
"""

from __future__ import annotations

import functools
import hashlib
import json
import re
from collections.abc import Callable, Mapping, Set

_DEEPEST = 8
"""Levels of nested values; deeper ones, as in objects that hold themselves, stand for their class."""
_ADDRESS = re.compile(r" at 0x[0-9a-fA-F]+")


def text_digest(*texts: str) -> bytes:
    """Return the SHA-256 of texts with NUL between them: 32 bytes. Halves of surrogate pairs count as UTF-8 has them.

    >>> text_digest("a", "b") == text_digest("a\\x00b") != text_digest("ab")
    True
    """
    return hashlib.sha256("\x00".join(texts).encode("utf-8", "surrogatepass")).digest()


def json_digest(value: object) -> bytes:
    """Return the SHA-256 of plain data as JSON with sorted keys: 32 bytes.

    >>> json_digest({"a": 1, "b": 2}) == json_digest({"b": 2, "a": 1})
    True
    """
    return text_digest(json.dumps(value, sort_keys=True))


def canonical_json(value: object) -> str:
    """Return a JSON text that changes with a value: plain data, sets, arrays, dataclasses, pydantic objects, paths.

    An object with a ``fingerprint`` stands for that, one that shows nothing of itself but its address for its class.

    >>> canonical_json({"stop": {2, 1}})
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
