"""Keys that are sent in the header of a request."""

from __future__ import annotations

import re

from ..errors import SettingsError

_NOT_SENDABLE = re.compile(r"[^\t\x20-\x7e]")


def sendable_key(key: str, name: str) -> str:
    """Return a key without the white space around it, which files and copied texts add; ``""`` for none.

    Args:
        key: The key.
        name: Variable or argument that holds it, for the message.

    Raises:
        SettingsError: No header can hold it. The message does not show it.

    >>> sendable_key("sk-secret\\n", "OPENAI_API_KEY")
    'sk-secret'
    """
    key = key.strip()
    if (found := _NOT_SENDABLE.search(key)) is None:
        return key
    raise SettingsError(
        f"{name} cannot be sent: its character {found.start() + 1} is U+{ord(found[0]):04X}, and a key has ASCII "
        "characters alone. Copy it again."
    )
