"""Texts that stores accept and terminals can show, and the format of saved data: ``"format": "judgetree-<thing>/3"``.

The number rises when the shape of the data changes; older data is not converted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Literal

from .errors import LoadingError, SettingsError, UserError

MAX_ID_BYTES = 1_024
"""Most bytes of an id or a name, as UTF-8."""
_SHOWN = 40
# Control characters and lone surrogates, which XML forbids and terminals interpret, and marks that change the direction
# of the text after them.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


def printable(text: str) -> str:
    """Replace every character that XML forbids or a terminal interprets by U+FFFD."""
    return _UNPRINTABLE.sub("\ufffd", text)


def storable(text: str) -> str:
    """Return the text as checkpoint stores accept it: without NUL, and with lone surrogates replaced by ``?``."""
    return text.replace("\x00", "").encode("utf-8", "replace").decode()


def is_storable(text: str, *, max_bytes: int | None = None) -> bool:
    """Return whether every store accepts a text of at most ``max_bytes`` bytes (None: of any length).

    >>> is_storable("汉字"), is_storable("a\\x00"), is_storable("\\ud800"), is_storable("汉字", max_bytes=5)
    (True, False, False, False)
    """
    try:
        size = len(text.encode())
    except UnicodeEncodeError:
        return False
    return "\x00" not in text and (max_bytes is None or size <= max_bytes)


def check_text(what: str, text: object, *, max_bytes: int | None = None) -> None:
    """Check that every store accepts a text from a caller.

    Raises:
        SettingsError: The text cannot be stored, or is not a ``str``; the message names ``what`` and the place.
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
    """Check an id or a name, of at most ``MAX_ID_BYTES`` bytes, with ``check_text``.

    Raises:
        SettingsError: The text cannot be stored, is too long, or is not a ``str``.
    """
    check_text(what, text, max_bytes=MAX_ID_BYTES)


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
    "rows",
    "run",
    "search-tree",
    "store",
    "sweep",
    "transcripts",
    "triples",
    "vector-cache",
]
"""Kinds of saved data: a "conversation-tree" is an exported conversation, "prompts" are a user's own, a "store" is the
id of a checkpoint store."""

VERSION = 3
_VERSIONS: Mapping[Thing, int] = {
    "file-digests": 2,
    "judge-fits": 1,
    "labels": 1,
    "passage-graph": 1,
    "prompts": 1,
    "recording": 5,
    "rows": 6,
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


def refuse_other_format(
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
