"""Parallel branches of one step: a failing branch lets the others finish before it ends the question."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ...modules.errors import UserError

_TURNS = 20
"""Passes of the event loop within which LangGraph starts a branch, or takes in its result; it needs about five."""


class Branches:
    """Counter of the branches of a thread that ``Send`` has started.

    LangGraph cancels the siblings of a branch that raises, and their calls would be paid for and lost.
    """

    def __init__(self) -> None:
        self._running = 0
        self._idle = asyncio.Event()

    @asynccontextmanager
    async def entered(self) -> AsyncIterator[None]:
        """Run one branch inside; a ``UserError`` leaves only once no other branch is running."""
        self._running += 1
        self._idle.clear()
        try:
            try:
                yield
            finally:
                self._running -= 1
                if not self._running:
                    self._idle.set()
        except UserError:
            await self._others_done()
            raise

    async def _others_done(self) -> None:
        await _let_others_run()  # branches that have not started yet
        while self._running:
            await self._idle.wait()
            await _let_others_run()


async def _let_others_run() -> None:
    for _ in range(_TURNS):
        await asyncio.sleep(0)
