"""The format that saved data declares, as ``"format": "judgetree-<thing>/3"``.

The number rises when the shape of the data changes. Data of another format is refused, not converted.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from ..errors import LoadingError, UserError

Thing = Literal[
    "call-journal",
    "collection",
    "conversation",
    "conversation-tree",
    "file-digests",
    "judge-fits",
    "judge-thresholds",
    "keys",
    "labels",
    "memory",
    "model-cache",
    "passage-graph",
    "prompts",
    "recording",
    "redis",
    "rows",
    "run",
    "search-tree",
    "store",
    "sweep",
    "transcripts",
    "triples",
    "vector-cache",
]
"""Kinds of saved data: a "conversation-tree" is an exported conversation, "prompts" are a user's own, "redis" are all
keys in a Redis, a "store" is the id of a checkpoint store."""

VERSION = 3
_VERSIONS: Mapping[Thing, int] = {
    "call-journal": 4,
    "file-digests": 2,
    "judge-fits": 1,
    "labels": 1,
    "passage-graph": 1,
    "prompts": 1,
    "recording": 5,
    "redis": 1,
    "rows": 7,
    "search-tree": 7,
    "triples": 1,
}
"""Numbers of things that do not rise with the others: files that users write, and what has changed since."""
FORMAT_KEY = "format"


def format_of(thing: Thing) -> str:
    """Return the format that this version writes.

    >>> format_of("search-tree")
    'judgetree-search-tree/7'
    """
    return f"judgetree-{thing}/{_VERSIONS.get(thing, VERSION)}"


def check_format(
    found: object, thing: Thing, *, where: str, remedy: str = "", error: type[UserError] = LoadingError
) -> None:
    """Check that saved data has the format that this version reads.

    Args:
        found: The format that the data declares; None without one.
        thing: The expected kind of data.
        where: Name of the data, as the subject of the message.
        remedy: Advice to the user, in whole sentences.
        error: Class of the error.

    Raises:
        UserError: ``found`` is another format; the message names both, and the class is ``error``.
    """
    if found == format_of(thing):
        return
    found_words = "no format" if found is None else f"the format {found!r:.80}"
    raise error(f"{where} has {found_words}; this judgetree reads {format_of(thing)!r} only. {remedy}".rstrip())
