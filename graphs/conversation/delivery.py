"""Whether the answer of a turn has arrived at the one who asked."""

from __future__ import annotations

import asyncio
from concurrent.futures import Future, InvalidStateError
from contextlib import suppress

_LONGEST_WAIT_S = 10.0


class Delivery:
    """Confirms that an answer has arrived; until then the same question gets the same turn, also after a crash."""

    def __init__(self, wait_s: float = _LONGEST_WAIT_S) -> None:
        """Wait up to ``wait_s`` seconds after the answer, in which the conversation answers no other question."""
        self._wait_s = wait_s
        self._has_arrived: Future[bool] = Future()

    def confirm(self) -> None:
        """Say that the answer has arrived; may be called on any thread."""
        self._settle(has_arrived=True)

    def give_up(self) -> None:
        """Say that the answer, unless it has arrived already, never will."""
        self._settle(has_arrived=False)

    async def wait(self) -> bool:
        """Return whether the answer has arrived, once that is known or the time is over."""
        await asyncio.wait([asyncio.wrap_future(self._has_arrived)], timeout=self._wait_s)
        return self._has_arrived.done() and self._has_arrived.result()

    def _settle(self, *, has_arrived: bool) -> None:
        with suppress(InvalidStateError):  # the other call came first
            self._has_arrived.set_result(has_arrived)
