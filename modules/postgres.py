"""Connections to PostgreSQL that the server may have closed while nobody used them."""

from __future__ import annotations

import selectors
from typing import Protocol


class _Connection(Protocol):
    def fileno(self) -> int: ...


def may_be_closed(connection: _Connection) -> bool:
    """Return whether an idle connection has something to read, such as its end; costs microseconds, no round trip."""
    with selectors.DefaultSelector() as selector:
        selector.register(connection.fileno(), selectors.EVENT_READ)
        return bool(selector.select(0))
