"""Text without what XML and terminals cannot show."""

from __future__ import annotations

import re

# Control characters and lone surrogates, which XML forbids and which a terminal obeys, and the marks that turn the
# direction of everything after them.
_UNPRINTABLE = re.compile("[\x00-\x08\x0b\x0c\x0e-\x1f\x7f-\x9f\u202a-\u202e\u2066-\u2069\ud800-\udfff\ufffe\uffff]")
_REPLACEMENT = "\ufffd"


def printable(text: str) -> str:
    """``text`` with every character that XML or a terminal cannot show as such replaced by U+FFFD."""
    return _UNPRINTABLE.sub(_REPLACEMENT, text)
