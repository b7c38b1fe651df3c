"""The turns that this process is answering, so that another call can stop one."""

from __future__ import annotations

import functools
from collections.abc import Iterator
from contextlib import contextmanager

from ...modules.background_loop import BackgroundLoop, background_loop
from ...modules.calls.budget import StopSignal
from ..rag.thread_runs import ThreadKey


class RunningTurns:
    """The turns that run on one event loop, at most one for each conversation."""

    def __init__(self) -> None:
        self._halts: dict[ThreadKey, StopSignal] = {}

    @contextmanager
    def entered(self, key: ThreadKey) -> Iterator[StopSignal]:
        """Register a conversation's turn while it runs inside; yields what stops its search."""
        halt = self._halts[key] = StopSignal()
        try:
            yield halt
        finally:
            del self._halts[key]

    def stop(self, key: ThreadKey) -> bool:
        """Stop the search of a conversation's turn; False if none runs."""
        halt = self._halts.get(key)
        if halt is not None:
            halt.set()
        return halt is not None


def running_turns() -> RunningTurns:
    """Return the running turns of this process."""
    return _on(background_loop())


@functools.cache
def _on(loop: BackgroundLoop) -> RunningTurns:
    return RunningTurns()
