"""The cap on simultaneous model calls."""

from __future__ import annotations

import asyncio
import threading


class CallGate:
    """The cap on simultaneous model calls, shared by the models of an endpoint; of each event loop by itself.

    >>> gate = CallGate(8)  # give the same gate to every model of one endpoint
    """

    def __init__(self, max_concurrency: int) -> None:
        """Allow at most ``max_concurrency`` calls at once."""
        self.max_concurrency = max_concurrency
        self._slots: dict[asyncio.AbstractEventLoop, asyncio.Semaphore] = {}
        self._beginning = threading.Lock()

    async def acquire(self) -> None:
        """Wait for a slot."""
        loop = asyncio.get_running_loop()
        if loop not in self._slots:
            with self._beginning:  # another loop that begins meanwhile would replace the table without this one
                slots = {each: slots for each, slots in self._slots.items() if not each.is_closed()}
                self._slots = slots | {loop: asyncio.Semaphore(self.max_concurrency)}
        await self._slots[loop].acquire()

    def release(self) -> None:
        """Give a slot back, on the loop where it was acquired."""
        self._slots[asyncio.get_running_loop()].release()

    async def __aenter__(self) -> None:
        await self.acquire()

    async def __aexit__(self, *exc_info: object) -> None:
        self.release()
