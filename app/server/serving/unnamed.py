"""Names of conversations that a request names none for, as most programs do: one for each question."""

from __future__ import annotations

import re
import uuid

_NAMESPACE = uuid.UUID("6a756467-6574-7265-6500-636861747300")
_NAME = re.compile(r"chat-[0-9a-f]{32}")


def new_name(request_id: str = "") -> str:
    """Name a conversation of one question; a request that is sent again finds it by its id."""
    return f"chat-{uuid.uuid5(_NAMESPACE, request_id).hex if request_id else uuid.uuid4().hex}"


def is_unnamed(name: str) -> bool:
    """Return whether a conversation has a name of ``new_name``.

    >>> is_unnamed(new_name()), is_unnamed("chat-one")
    (True, False)
    """
    return _NAME.fullmatch(name) is not None
