"""Answers that run for as long as their client listens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import Any, Protocol, TypeVar, runtime_checkable

from fastapi import Request
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.types import Receive, Scope, Send

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}
_POLL_S = 0.2


@runtime_checkable
class ClosableIterator(Protocol[T_co]):
    """An iterator such as an asynchronous generator."""

    def __aiter__(self) -> AsyncIterator[T_co]: ...

    def __anext__(self) -> Awaitable[T_co]: ...

    async def aclose(self) -> None:
        """End the iteration."""


class EventStream(EventSourceResponse):
    """A stream of server-sent events."""

    def __init__(self, events: AsyncIterator[ServerSentEvent], source: ClosableIterator[Any] | None, ping: float):
        """Send the events, then close their ``source``."""
        super().__init__(events, headers=_HEADERS, sep="\n", ping=ping, ping_message_factory=_heartbeat)
        self._source = source

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send the events; the source is closed even if its client left before the first of them was asked for."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            if self._source is not None:
                await self._source.aclose()


def event_stream(
    events: AsyncIterator[ServerSentEvent], *, heartbeat_s: float, source: ClosableIterator[Any] | None = None
) -> EventStream:
    """Return a stream of server-sent events, with a comment after each ``heartbeat_s`` seconds.

    Newlines in data become lines of the same event. If the client leaves, the iterator is cancelled; ``source``, what
    the events are made of, is closed at the end.
    """
    return EventStream(events, source, heartbeat_s)


def _heartbeat() -> ServerSentEvent:
    return ServerSentEvent(comment="heartbeat", sep="\n")


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
