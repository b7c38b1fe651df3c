"""Texts that every store accepts and every terminal can show: ids, names, and what is saved for a user.

PostgreSQL refuses NUL, and UTF-8 has no half of a surrogate pair.
"""

from __future__ import annotations

import html
import re

from ..errors import SettingsError

MAX_ID_BYTES = 1_024
"""Most bytes of an id or a name, as UTF-8."""
_SHOWN = 40
# Control characters and lone surrogates, which XML forbids and terminals interpret, and marks that change the direction
# of the text after them.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")


def printable(text: str) -> str:
    """Replace every character that XML forbids or a terminal interprets by U+FFFD."""
    return _UNPRINTABLE.sub("\ufffd", text)


def html_text(value: object) -> str:
    """Escape a value for HTML, with what XML forbids replaced by U+FFFD.

    >>> html_text("a < b")
    'a &lt; b'
    """
    return html.escape(printable(str(value)))


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
