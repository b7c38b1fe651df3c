"""Fewer searches for garbage while many questions are asked at once."""

from __future__ import annotations

import gc
import threading
from collections.abc import Iterator
from contextlib import contextmanager

_NEW_OBJECTS = 5_000
"""Containers that are made before Python looks for cycles among them; its own default is 700."""


class _Uses:
    """The number of uses of ``rare_collections`` at the moment, and the settings that the last one restores."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._count = 0
        self._thresholds = gc.get_threshold()
        self._has_frozen = False
        self._are_others_frozen = False
        """Whether the process has frozen objects itself; once it has, it is not asked again, which takes 25 ms."""

    def enter(self) -> None:
        with self._lock:
            self._count += 1
            if self._count == 1:
                self._thresholds = gc.get_threshold()
                gc.set_threshold(max(_NEW_OBJECTS, self._thresholds[0]), *self._thresholds[1:])
                self._are_others_frozen = self._are_others_frozen or gc.get_freeze_count() > 0
                self._has_frozen = not self._are_others_frozen
                if self._has_frozen:
                    gc.freeze()

    def leave(self) -> None:
        with self._lock:
            self._count -= 1
            if not self._count:
                gc.set_threshold(*self._thresholds)
                if self._has_frozen:
                    gc.unfreeze()


_uses = _Uses()


@contextmanager
def rare_collections() -> Iterator[None]:
    """Search the process for garbage less often inside, and only among objects that are made inside.

    Otherwise the search takes a quarter of the CPU time of questions that are asked at once, since it goes through all
    that was imported again and again. Those who enter at the same time count as one; the last one restores what was.
    A collector that is switched off (``gc.disable``) stays so, and objects that the process has frozen stay frozen.
    """
    _uses.enter()
    try:
        yield
    finally:
        _uses.leave()
