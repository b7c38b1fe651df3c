"""Answers that run for as long as their client listens."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable
from typing import Any, Protocol, TypeVar, runtime_checkable

from fastapi import Request
from sse_starlette import EventSourceResponse, ServerSentEvent
from starlette.types import Receive, Scope, Send

from .options import ServerOptions

T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)

EVENTS = "text/event-stream"
_LINE_ENDS = "\x85\u2028\u2029"
_HEADERS = {"Cache-Control": "no-store", "X-Accel-Buffering": "no"}


def described_events(*names: str, data: str = "") -> dict[str, object]:
    """Return the content of a streamed answer for the API's description, whose schema is that of each event.

    ``names`` are those of the field ``event``, none for a stream without it; ``data`` is a pattern.
    """
    properties: dict[str, object] = {"data": {"type": "string", "pattern": data} if data else {"type": "string"}}
    if names:
        properties["event"] = {"type": "string", "enum": [*names]}
    return {EVENTS: {"schema": {"type": "object", "properties": properties, "required": ["data"]}}}


@runtime_checkable
class ClosableIterator(Protocol[T_co]):
    """An iterator such as an asynchronous generator."""

    def __aiter__(self) -> AsyncIterator[T_co]: ...

    def __anext__(self) -> Awaitable[T_co]: ...

    async def aclose(self) -> None:
        """End the iteration."""


class EventStream(EventSourceResponse):
    """A stream of server-sent events."""

    def __init__(
        self,
        events: AsyncIterator[ServerSentEvent],
        source: ClosableIterator[Any] | None,
        ping: float,
        grace_s: float = 0,
    ) -> None:
        """Send the events, then close their ``source``; a server that ends waits ``grace_s`` seconds for it."""
        super().__init__(
            events,
            headers=_HEADERS,
            sep="\n",
            ping=ping,
            ping_message_factory=_heartbeat,
            shutdown_grace_period=grace_s,
        )
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


def question_stream(
    events: AsyncIterator[ServerSentEvent], source: ClosableIterator[Any], options: ServerOptions
) -> EventStream:
    """Return the stream of a question, which a server that ends lets go on for ``max_shutdown_seconds``."""
    return EventStream(events, source, options.heartbeat_s, options.max_shutdown_seconds)


def json_event(data: str, *, kind: str | None = None, mark: str | None = None) -> ServerSentEvent:
    """Return an event with JSON as its data: one line also where a client takes other characters for ends of lines.

    Python's ``splitlines``, and so ``httpx``, does that with three characters that JSON leaves as they are.
    """
    for letter in _LINE_ENDS:
        data = data.replace(letter, f"\\u{ord(letter):04x}")
    return ServerSentEvent(event=kind, data=data, id=mark, sep="\n")


def _heartbeat() -> ServerSentEvent:
    return ServerSentEvent(comment="heartbeat", sep="\n")


async def while_connected(request: Request, work: Awaitable[T]) -> T:
    """Await work, and cancel it once the client has left.

    Raises:
        CancelledError: The client has left.
    """
    task, leaving = asyncio.ensure_future(work), asyncio.ensure_future(_left(request))
    try:
        await asyncio.wait([task, leaving], return_when=asyncio.FIRST_COMPLETED)
        if task.done():
            return task.result()
        leaving.result()  # raises why the rest of the body is not read
        raise asyncio.CancelledError
    finally:
        task.cancel()
        leaving.cancel()
        await asyncio.gather(task, leaving, return_exceptions=True)


async def _left(request: Request) -> None:
    while (await request.receive())["type"] != "http.disconnect":
        pass  # of a body that no door reads
