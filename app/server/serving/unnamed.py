"""Names of conversations that a request names none for, as most programs do: one for each question."""

from __future__ import annotations

import json
import re
import uuid

_NAMESPACE = uuid.UUID("6a756467-6574-7265-6500-636861747300")
_NAME = re.compile(r"chat-[0-9a-f]{32}")


def new_name(request_id: str = "", model: str = "") -> str:
    """Name a conversation of one question; a request to a model that is sent again finds it by its id."""
    made = uuid.uuid5(_NAMESPACE, json.dumps([model, request_id])) if request_id else uuid.uuid4()
    return f"chat-{made.hex}"


def is_unnamed(name: str) -> bool:
    """Return whether a conversation has a name of ``new_name``.

    >>> is_unnamed(new_name()), is_unnamed("chat-one")
    (True, False)
    """
    return _NAME.fullmatch(name) is not None
