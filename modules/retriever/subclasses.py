"""Subclasses of ``Retriever``: what they may override, and what tells them apart."""

from __future__ import annotations

from pydantic import BaseModel

from ..parts import digest_of_fields, source_of

_THROUGH_SEARCH = frozenset(
    {"asearch", "get_similar_chunk_with_score", "_get_relevant_documents", "_aget_relevant_documents"}
)
"""Methods that call ``search``."""


def check_overrides(kind: type) -> None:
    """Refuse a class that overrides some of the searches, so that the others would be the base's.

    Raises:
        TypeError: It does; the message names the method to override.
    """
    if own := sorted(_THROUGH_SEARCH.intersection(vars(kind))):
        raise TypeError(
            f"{kind.__name__} overrides {', '.join(own)}. Override search(self, query, *, meter), which they all call."
        )


def subclass_fingerprint(value: BaseModel, *, base: type) -> dict[str, str]:
    """Return class, source and the digest of the own fields of an object whose class derives from ``base``.

    Empty for ``base`` itself. The source is that of all classes below ``base``.
    """
    kind = type(value)
    if kind is base:
        return {}
    below = [each for each in kind.__mro__ if issubclass(each, base) and each is not base]
    return {
        "class": f"{kind.__module__}.{kind.__qualname__}",
        "source": "-".join(map(source_of, below)),
        "fields": digest_of_fields(value, besides=base),
    }
