"""Uses of a resource that another thread may close: closing waits until they have ended."""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

PATIENCE_S = 20.0
"""A search takes less, unless an endpoint that embeds or reranks hangs."""


class OpenUses:
    """Counts the threads that are using a resource."""

    def __init__(self) -> None:
        self._count = 0
        self._changed = threading.Condition()

    @contextmanager
    def entered(self) -> Iterator[None]:
        """Count as a use until the block is left."""
        with self._changed:
            self._count += 1
        try:
            yield
        finally:
            with self._changed:
                self._count -= 1
                self._changed.notify_all()

    def wait_for_end(self, timeout_s: float = PATIENCE_S) -> bool:
        """Wait until no use is left; False if some are after ``timeout_s`` seconds."""
        with self._changed:
            return self._changed.wait_for(lambda: self._count == 0, timeout_s)
