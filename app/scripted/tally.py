"""The scripted server's counters: requests by kind, their faults and their log."""

from __future__ import annotations

import hashlib
import threading
from collections import Counter, deque
from collections.abc import Callable
from dataclasses import dataclass

from .answers import RequestKind
from .behaviour import Fault
from .wire import JsonObject

_LOG_ENTRIES = 100_000


@dataclass(frozen=True, kw_only=True)
class LoggedRequest:
    """One answered model request."""

    number: int
    """Position among all model requests, from 1."""
    kind: RequestKind
    query: str
    attempt: int
    """Number of requests with this content so far, this one included."""
    fault: Fault | None
    status: int


class Tally:
    """Counter of requests by kind, with a log. Thread-safe."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._active = 0
        self._clear()

    def _clear(self) -> None:
        self._peak_active = self._active
        self._requests: Counter[RequestKind] = Counter()
        self._faults: Counter[Fault] = Counter()
        self._attempts: Counter[bytes] = Counter()
        self._log: deque[LoggedRequest] = deque(maxlen=_LOG_ENTRIES)

    def reset(self) -> None:
        """Clear everything but the number of active requests."""
        with self._changed:
            self._clear()

    def arrive(self) -> None:
        """Count a model request as active."""
        with self._changed:
            self._active += 1
            self._peak_active = max(self._peak_active, self._active)
            self._changed.notify_all()

    def leave(self) -> None:
        """Count a model request as answered or abandoned."""
        with self._changed:
            self._active -= 1
            self._changed.notify_all()

    def wait_until(self, reached: Callable[[int], bool], timeout_s: float) -> bool:
        """Block until ``reached`` holds for the number of active requests; False after ``timeout_s``."""
        with self._changed:
            return self._changed.wait_for(lambda: reached(self._active), timeout_s)

    def count(self, kind: RequestKind, content: bytes) -> tuple[int, int]:
        """Count a request; returns its number, and the number of requests with this content, both from 1."""
        key = hashlib.blake2b(content, digest_size=16, person=kind.encode()).digest()
        with self._changed:
            self._requests[kind] += 1
            self._attempts[key] += 1
            return self._requests.total(), self._attempts[key]

    def note(self, entry: LoggedRequest) -> None:
        """Add an entry to the log, which keeps the newest 100,000."""
        with self._changed:
            self._log.append(entry)
            if entry.fault:
                self._faults[entry.fault] += 1

    def requests(self) -> Counter[RequestKind]:
        """Return the number of requests by kind; 0 for kinds that never came."""
        with self._changed:
            return self._requests.copy()

    def log(self) -> tuple[LoggedRequest, ...]:
        """Return the answered requests, in the order in which their answers were computed."""
        with self._changed:
            return tuple(self._log)

    def peak_active(self) -> int:
        """Return the largest number of requests active at once."""
        with self._changed:
            return self._peak_active

    def stats(self) -> JsonObject:
        """Return all counters as JSON data."""
        with self._changed:
            return {
                "requests": dict(self._requests),
                "total": self._requests.total(),
                "faults": dict(self._faults),
                "active": self._active,
                "peak_active": self._peak_active,
            }
