"""Waits of minutes, such as those for an endpoint's rate limit, which end at once where their process is to end."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from ..errors import SessionError

_Scope = tuple[asyncio.AbstractEventLoop, asyncio.Timeout]


class LongWaits:
    """The long waits of a process, on any of its event loops; ``end`` ends them, and all that would begin."""

    def __init__(self) -> None:
        self._have_ended = False
        self._scopes: set[_Scope] = set()

    @asynccontextmanager
    async def one(self) -> AsyncIterator[None]:
        """Wait inside.

        Raises:
            SessionError: The process is to end, or was meanwhile.
        """
        scope = asyncio.get_running_loop(), asyncio.timeout(None)
        self._scopes.add(scope)  # first, so that an end in another thread sees it, or is seen
        try:
            if self._have_ended:
                raise SessionError(_WHY)
            try:
                async with scope[1]:
                    yield
            except TimeoutError as ended:
                if scope[1].expired():
                    raise SessionError(_WHY) from ended
                raise
        finally:
            self._scopes.discard(scope)

    def end(self) -> None:
        """End the waits, and let none begin; a signal handler may call it."""
        self._have_ended = True
        for scope in list(self._scopes):
            with suppress(RuntimeError):  # its loop is closed
                scope[0].call_soon_threadsafe(self._end, scope)

    def _end(self, scope: _Scope) -> None:
        if scope in self._scopes:
            scope[1].reschedule(scope[0].time())


_WHY = (
    "The server is ending, and a model's endpoint asks to wait. What was done is kept: ask the same question again, of "
    "the server that follows."
)

LONG_WAITS = LongWaits()
"""Those of this process."""
