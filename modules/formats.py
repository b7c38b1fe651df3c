"""What text can be saved and shown, and what saved data says of itself: ``"format": "judgetree-<thing>/3"``.

The number rises when the shape of a thing changes. Nothing older is converted.
"""

from __future__ import annotations

import re
from typing import Literal

from .errors import LoadingError, SettingsError, UserError

MAX_ID_BYTES = 1_024
"""Most bytes of an id or a name, as UTF-8."""
_SHOWN = 40
# Control characters and lone surrogates, which XML forbids and which a terminal obeys, and the marks that turn the
# direction of everything after them.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


def printable(text: str) -> str:
    """``text`` with every character that XML or a terminal cannot show as such replaced by U+FFFD."""
    return _UNPRINTABLE.sub("\ufffd", text)


def storable(text: str) -> str:
    """The text without what checkpoint stores refuse: NUL characters, and halves of surrogate pairs, as ``?``."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode()


def is_storable(text: str, *, max_bytes: int | None = None) -> bool:
    """Return whether every store can keep a text of at most ``max_bytes`` bytes (None: of any length).

    >>> is_storable("汉字"), is_storable("a\\x00"), is_storable("\\ud800"), is_storable("汉字", max_bytes=5)
    (True, False, False, False)
    """
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        return False
    return "\x00" not in text and (max_bytes is None or size <= max_bytes)


def check_text(what: str, text: object, *, max_bytes: int | None = None) -> None:
    """Do nothing if every store can keep a text that a caller has given.

    Raises:
        SettingsError: It cannot be kept, or is no text; the message names ``what`` and where the fault is.
    """
    if not isinstance(text, str):
        raise SettingsError(f"{what} is {text!r:.{_SHOWN}}. Allowed: text.")
    if not is_storable(text):
        place = next(at for at, letter in enumerate(text) if letter == "\x00" or "\ud800" <= letter <= "\udfff")
        raise SettingsError(
            f"{what} cannot be stored: character {place + 1} of {text[:_SHOWN]!r} is {text[place]!r}. Allowed: Unicode "
            "text without NUL and without halves of surrogate pairs. Take that character out."
        )
    if not is_storable(text, max_bytes=max_bytes):
        raise SettingsError(
            f"{what} {text[:_SHOWN]!r}… is too long: {len(text.encode())} bytes as UTF-8, allowed are {max_bytes}."
        )


def check_id(what: str, text: object) -> None:
    """``check_text`` for an id or a name, of at most ``MAX_ID_BYTES`` bytes.

    Raises:
        SettingsError: See ``check_text``.
    """
    check_text(what, text, max_bytes=MAX_ID_BYTES)


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

VERSION = 3
FORMAT_KEY = "format"


def format_of(thing: Thing) -> str:
    """Return the format that this judgetree writes.

    >>> format_of("search-tree")
    'judgetree-search-tree/3'
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
