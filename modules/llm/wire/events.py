"""Server-sent events of a model's stream, read in time linear in its bytes."""

from __future__ import annotations

import json
from collections.abc import AsyncGenerator, AsyncIterator
from dataclasses import dataclass
from typing import Any

from ...background.closing import closing
from ...calls.completion import BYTES_A_BYTE_WHOLE, ReplyTooLong
from .error_words import error_in_text

_FIELD_ENDS = (b"\n", b"\r")
_FIRST = (b"data", b"event", b"id", b"retry", b"error:", b":")
_AFTER_OTHER_LINES = (b"data:", b"event:")
"""Beginnings of lines that no JSON has; some gateways write an object of their own before the events."""


@dataclass(frozen=True, slots=True)
class Event:
    """One event, as the standard for server-sent events has it; its id and its waiting time mean nothing here."""

    name: str
    """Its type; ``""`` where the endpoint names none."""
    data: str
    """Its lines of data; ``""`` where it has none, as that which keeps a connection open."""
    is_ended: bool = True
    """Whether its end came: the blank line, or the bracket of an object that is no event."""

    @property
    def is_last(self) -> bool:
        """Whether it says that the stream is done, as some endpoints do in place of a finish reason."""
        return self.data.startswith("[DONE]")


async def events_in(pieces: AsyncIterator[bytes], *, max_bytes: int) -> AsyncGenerator[Event]:
    """Yield the events in a text of UTF-8 that comes in pieces, cut anywhere.

    The SDK's own reader copies an event once for each of its lines, and the text once for each piece.

    Raises:
        ReplyTooLong: An event is longer than a whole reply of ``max_bytes`` may be.
    """
    growing = _GrowingEvent()
    begun, size = list[bytes](), 0  # of the line that has not ended, and of its event
    ends_in_return = False
    async with closing(pieces):
        async for piece in pieces:
            fields = (piece[1:] if ends_in_return and piece.startswith(b"\n") else piece).splitlines(keepends=True)
            ends_in_return = piece.endswith(b"\r") if piece else ends_in_return
            for field in fields:
                begun.append(field)
                size += len(field)
                if size > max_bytes * BYTES_A_BYTE_WHOLE:
                    raise ReplyTooLong(max_bytes)
                if not field.endswith(_FIELD_ENDS):
                    continue
                line, begun = b"".join(begun).rstrip(b"\r\n"), []
                if growing.is_object and line.startswith(_AFTER_OTHER_LINES):
                    growing = _GrowingEvent()
                if line or growing.is_object:
                    growing.add(line)
                    continue
                if (event := growing.end()) is not None:
                    yield event
                size = 0
    if begun:
        growing.add(b"".join(begun))
    if (event := growing.end(is_whole=False)) is not None:
        yield event


class _GrowingEvent:
    """The event whose lines are being read. A text that begins as a JSON object is one event to its end."""

    def __init__(self) -> None:
        self.is_object = False
        self._has_begun = False
        self._name = ""
        self._data: list[bytes] = []

    def add(self, line: bytes) -> None:
        """Take its next line; ``error: …`` and an error's object alone are errors, as llama.cpp and proxies write."""
        begins_object = line.lstrip().startswith(b"{")
        is_error = begins_object and bool(error_in_text(line))
        self.is_object = self.is_object or (not self._has_begun and not is_error and begins_object)
        self._has_begun = True
        field, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if self.is_object:
            self._data.append(line)
        elif field == b"data":
            self._data.append(value)
        elif field == b"event":
            self._name = value.decode("utf-8", "replace")
        elif field == b"error" or is_error:
            self._name, self._data = "error", [line if is_error else value]

    def end(self, *, is_whole: bool = True) -> Event | None:
        """Return the event, if it has a name or data, and begin the next one; an object is whole with its bracket."""
        name, data = self._name, b"\n".join(self._data).decode("utf-8", "replace")
        has_any, is_closed = bool(name or self._data), data.rstrip().endswith("}")
        self._name, self._data = "", []
        is_ended = is_whole or (is_closed and (self.is_object or name == "error"))
        return Event(name, data, is_ended=is_ended) if has_any else None


def said_by(event: Event) -> Any:
    """Return what an event with data says, as JSON.

    One whose type is ``error`` reports one: what it says stands under ``error``, as it does where an endpoint has its
    errors in common events.

    Raises:
        ValueError: It is no JSON, and no error.
    """
    if event.name != "error":
        return json.loads(event.data)
    try:
        said = json.loads(event.data)
    except (ValueError, RecursionError):
        said = event.data
    return said if isinstance(said, dict) and said.get("error") else {"error": said or "an error without words"}


def has_events(body: bytes) -> bool:
    """Return whether the body of a reply is events rather than JSON or a page."""
    return body.lstrip().startswith(_FIRST) or any(b"\n" + begin in body for begin in _AFTER_OTHER_LINES)
