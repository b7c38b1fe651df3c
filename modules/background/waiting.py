"""Waits that signals end, also those that come in the moment in which a wait begins."""

from __future__ import annotations

import contextlib
import queue
import threading
from typing import TypeVar

T = TypeVar("T")

NOTICED_S = 1.0
"""Most seconds until a waiting thread notices a signal.

One that arrives in the moment in which the wait begins, or that the system delivers to another thread, does not wake
it: Python runs handlers on the main thread, and only once that runs again.
"""


def next_item(items: queue.SimpleQueue[T]) -> T:
    """Wait for the next item of a queue and return it; signals end the wait as their handlers say."""
    while True:
        with contextlib.suppress(queue.Empty):
            return items.get(timeout=NOTICED_S)


def wait_for_signal() -> None:
    """Wait until the handler of a signal raises, as that of Ctrl-C does."""
    never = threading.Event()
    while not never.wait(NOTICED_S):
        pass
