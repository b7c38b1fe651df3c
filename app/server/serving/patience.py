"""Calls of a database that may hang, each within a limit of time; while one hangs, others fail at once."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import ParamSpec, TypeVar

from ....modules.errors import MilvusFailure

T = TypeVar("T")
P = ParamSpec("P")


class NoAnswerInTime(MilvusFailure):
    """Milvus did not answer within a door's limit."""


class Patience:
    """Makes blocking calls of Milvus in threads, and waits for each so long and no longer.

    A thread with a call that hangs cannot be ended. So none is started while one is overdue: a page that asks every
    second would else fill the process with them.
    """

    def __init__(self, limit_s: float) -> None:
        self._limit_s = limit_s
        self._running: dict[asyncio.Future[object], float] = {}

    async def call(self, work: Callable[P, T], /, *args: P.args, **kwargs: P.kwargs) -> T:
        """Return what the call returns.

        Raises:
            NoAnswerInTime: It takes longer than the limit, or an earlier call does.
        """
        now = asyncio.get_running_loop().time()
        if any(now - began > self._limit_s for began in self._running.values()):
            raise self._failure()
        calling = asyncio.ensure_future(asyncio.to_thread(work, *args, **kwargs))
        self._running[calling] = now
        calling.add_done_callback(self._forget)
        await asyncio.wait([calling], timeout=self._limit_s)
        if not calling.done():
            raise self._failure()
        return calling.result()

    def _failure(self) -> NoAnswerInTime:
        return NoAnswerInTime(
            f"Milvus has not answered for {self._limit_s:g} s. Check that the server runs and can be reached, then try "
            "again."
        )

    def _forget(self, calling: asyncio.Future[object]) -> None:
        del self._running[calling]
        if not calling.cancelled():
            calling.exception()  # retrieved, so that asyncio does not log what came too late
