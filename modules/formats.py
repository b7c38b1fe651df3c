"""What saved data says of itself: ``"format": "judgetree-<thing>/2"``. A reader refuses any other format by name.

The number rises when the shape of a thing changes. Nothing older is converted.
"""

from __future__ import annotations

from typing import Literal

from .errors import LoadingError, UserError

Thing = Literal[
    "call-journal",
    "collection",
    "conversation",
    "conversation-tree",
    "judge-thresholds",
    "memory",
    "model-cache",
    "rows",
    "run",
    "search-tree",
    "store",
    "vector-cache",
]
"""Kinds of saved data: a "conversation-tree" is an exported conversation, a "store" the id of a checkpoint store."""

VERSION = 2
FORMAT_KEY = "format"


def format_of(thing: Thing) -> str:
    """The format that this judgetree writes.

    >>> format_of("search-tree")
    'judgetree-search-tree/2'
    """
    return f"judgetree-{thing}/{VERSION}"


def refuse_other_format(
    found: object, thing: Thing, *, where: str, remedy: str = "", error: type[UserError] = LoadingError
) -> None:
    """Do nothing if saved data has the format that this judgetree reads.

    Args:
        found: What the data gives as its format; None where it gives none.
        thing: What it should be.
        where: Name of the data, as the subject of the message.
        remedy: What the user can do, as whole sentences.
        error: Class of the error that is raised.

    Raises:
        UserError: ``found`` is another format; the message names both, and the error is an ``error``.
    """
    if found == format_of(thing):
        return
    found_words = "no format" if found is None else f"the format {found!r:.80}"
    raise error(f"{where} has {found_words}; this judgetree reads {format_of(thing)!r} only. {remedy}".rstrip())
