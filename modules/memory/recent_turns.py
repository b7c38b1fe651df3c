"""A short-lived cache of the newest turns of conversations."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable
from copy import deepcopy
from dataclasses import dataclass

from .turns import PathSpans, QaPair

TTL_S = 300.0
"""Seconds for which an entry is valid."""

_Key = tuple[str, int, frozenset[tuple[str, int]]]
_Load = Callable[[], list[QaPair]]


@dataclass(frozen=True, kw_only=True)
class _Remembered:
    turns: list[QaPair]
    until: float


class RecentTurns:
    """A thread-safe cache of the newest turns by conversation, limit and path.

    Args:
        clock: Returns monotonic seconds.
        capacity: Most entries; the least recently used one is dropped first.
    """

    def __init__(self, clock: Callable[[], float], *, capacity: int = 1000) -> None:
        self._clock = clock
        self._capacity = capacity
        self._remembered: OrderedDict[_Key, _Remembered] = OrderedDict()
        self._loading: dict[_Key, object] = {}
        self._lock = threading.Lock()

    def __len__(self) -> int:
        return len(self._remembered)

    def get(self, conversation_id: str, limit: int, spans: PathSpans, load: _Load) -> list[QaPair]:
        """Return a copy of the cached turns, or load and cache them.

        Turns that were loaded while their conversation was dropped are not cached.
        """
        key = (conversation_id, limit, frozenset(spans.items()))
        ticket = object()
        with self._lock:
            known = self._remembered.get(key)
            if known is not None and self._clock() < known.until:
                self._remembered.move_to_end(key)
                return deepcopy(known.turns)
            self._loading[key] = ticket
        turns = None
        try:
            turns = load()
        finally:
            with self._lock:
                if self._loading.get(key) is ticket:
                    del self._loading[key]
                    self._keep(key, turns)
        return deepcopy(turns)

    def drop(self, conversation_id: str) -> None:
        """Forget the cached turns of a conversation."""
        with self._lock:
            for entries in (self._remembered, self._loading):
                for key in [key for key in entries if key[0] == conversation_id]:
                    del entries[key]

    def _keep(self, key: _Key, turns: list[QaPair] | None) -> None:
        self._remembered.pop(key, None)
        if turns is None:
            return
        self._remembered[key] = _Remembered(turns=turns, until=self._clock() + TTL_S)
        if len(self._remembered) > self._capacity:
            self._remembered.popitem(last=False)
