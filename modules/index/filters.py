"""Milvus filter expressions out of values that nobody has checked."""

from __future__ import annotations

from collections.abc import Iterable

# Not json.dumps: its \u0001 for control characters is an unknown escape to Milvus Lite.
_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r", "\t": "\\t"})


def quoted(text: str) -> str:
    r"""A string literal that stands for exactly this text.

    >>> print(quoted('say "no"'))
    "say \"no\""
    """
    return f'"{text.translate(_ESCAPES)}"'


def text_in(field: str, values: Iterable[str]) -> str:
    """A filter that keeps rows whose field equals one of the values.

    >>> print(text_in("source", ["a.md", "b.md"]))
    source in ["a.md", "b.md"]
    """
    return f"{field} in [{', '.join(map(quoted, values))}]"
