"""Calls of a store that may hang, each within a limit of time; while one hangs, others fail at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from ...modules.errors import JudgetreeError

T = TypeVar("T")
P = ParamSpec("P")


class Patience:
    """Makes blocking calls of one store in threads, and waits for each so long and no longer.

    A thread with a call that hangs cannot be ended. So none is started while one is overdue: a page that asks every
    second would else fill the process with them.
    """

    def __init__(self, limit_s: float, failure: Callable[[float], JudgetreeError]) -> None:
        """``failure`` makes the error of a call that takes longer than ``limit_s``."""
        self._limit_s = limit_s
        self._failure = failure
        self._running: dict[asyncio.Future[object], float] = {}

    async def call(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what the call returns.

        Raises:
            JudgetreeError: It takes longer than the limit, or an earlier call does.
        """
        loop = asyncio.get_running_loop()
        if any(loop.time() - began > self._limit_s for began in self._running.values()):
            raise self._failure(self._limit_s)
        calling: asyncio.Future[T] = asyncio.ensure_future(asyncio.to_thread(work, *args, **kwargs))
        self._running[calling] = loop.time()  # type: ignore[index]
        calling.add_done_callback(self._forget)
        await asyncio.wait([calling], timeout=self._limit_s)
        if not calling.done():
            raise self._failure(self._limit_s)
        return calling.result()

    def _forget(self, calling: asyncio.Future[T]) -> None:
        del self._running[calling]  # type: ignore[arg-type]
        if not calling.cancelled():
            calling.exception()  # retrieved, so that asyncio does not log what came too late
