"""One run of a thread at a time in a process: who asks for it meanwhile waits, and gets what came of that run."""

from __future__ import annotations

import asyncio
import functools
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from contextvars import ContextVar

from ...modules.background_loop import BackgroundLoop, background_loop
from ...modules.errors import ModelCallError

ThreadKey = tuple[str, str]
"""The store, and the thread in it."""

_HELD: ContextVar[frozenset[ThreadKey]] = ContextVar("_HELD", default=frozenset())


class _Entry:
    def __init__(self) -> None:
        self.lock = asyncio.Lock()
        self.users = 0
        self.failures = 0
        self.failure: ModelCallError | None = None


class Turn:
    """The right to run a thread."""

    def __init__(self, entry: _Entry, failures_seen: int) -> None:
        self._entry = entry
        self._failures_seen = failures_seen

    def check(self) -> None:
        """Raise what ended the run that was waited for.

        Raises:
            ModelCallError: That run failed, so that the same would fail again.
        """
        if self._entry.failure is not None and self._entry.failures > self._failures_seen:
            raise self._entry.failure

    def fail(self, failure: ModelCallError) -> None:
        """Tell those who wait that the run has failed."""
        self._entry.failures += 1
        self._entry.failure = failure


class ThreadRuns:
    """The threads that are being run on one event loop."""

    def __init__(self) -> None:
        self._entries: dict[ThreadKey, _Entry] = {}

    @asynccontextmanager
    async def turn(self, key: ThreadKey) -> AsyncIterator[Turn]:
        """Wait until no one else runs the thread, then hold it; at once where the caller ``holds`` it already."""
        if key in _HELD.get():
            yield Turn(_Entry(), 0)
            return
        entry = self._entries.setdefault(key, _Entry())
        entry.users += 1
        failures_seen = entry.failures
        try:
            async with entry.lock:
                yield Turn(entry, failures_seen)
        finally:
            entry.users -= 1
            if not entry.users:
                self._entries.pop(key, None)

    @asynccontextmanager
    async def held(self, key: ThreadKey) -> AsyncIterator[Turn]:
        """``turn`` for a coroutine that calls others which take turns at the same thread. Not for generators."""
        async with self.turn(key) as turn:
            token = _HELD.set(_HELD.get() | {key})
            try:
                yield turn
            finally:
                _HELD.reset(token)


def thread_runs() -> ThreadRuns:
    """Those of this process."""
    return _on(background_loop())


@functools.cache
def _on(loop: BackgroundLoop) -> ThreadRuns:
    return ThreadRuns()
