"""Answers that run for as long as their client listens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import TypeVar

from fastapi import Request
from sse_starlette import EventSourceResponse, ServerSentEvent

T = TypeVar("T")

_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_POLL_S = 0.2


def event_stream(events: AsyncIterator[ServerSentEvent], *, heartbeat_s: float) -> EventSourceResponse:
    """Return a stream of server-sent events, with a comment after each ``heartbeat_s`` seconds.

    Newlines in data become lines of the same event. If the client leaves, the iterator is cancelled.
    """

    def heartbeat() -> ServerSentEvent:
        return ServerSentEvent(comment="heartbeat", sep="\n")

    return EventSourceResponse(events, headers=_HEADERS, sep="\n", ping=heartbeat_s, ping_message_factory=heartbeat)


async def while_connected(request: Request, work: Awaitable[T]) -> T:
    """Await work, and cancel it within a second once the client has left.

    Raises:
        CancelledError: The client has left.
    """
    task = asyncio.ensure_future(work)
    try:
        while True:
            done, _ = await asyncio.wait([task], timeout=_POLL_S)
            if done:
                return task.result()
            if await request.is_disconnected():
                raise asyncio.CancelledError
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
