"""HTTP/1.1 on one connection, with the limits that uvicorn lacks: of time for heads and readers, and of numbers."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

from ..serving.options import ServerOptions
from .connections import Connections, health_only


class Connection(H11Protocol):
    """A connection that is closed if a head takes too long, or its client reads nothing of an answer."""

    options: ServerOptions
    limits: Connections
    _head_due: asyncio.TimerHandle | None = None
    _reading_due: asyncio.TimerHandle | None = None

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        """Count the connection, and wait for its first head."""
        super().connection_made(transport)
        refusal = self.limits.opened(self, self.client[0] if self.client else "")
        if refusal is not None:
            self.app = health_only(self.app, refusal)
        self._await_head()

    def data_received(self, data: bytes) -> None:
        """Read heads and bodies; the time of a head runs until it is whole."""
        super().data_received(data)
        if self._is_answering:
            self.limits.began_request(self)
            self._stop_awaiting_head()
            if not self.flow.write_paused:
                self._stop_awaiting_reader()
        elif self._head_due is None:
            self._await_head()

    def on_response_complete(self) -> None:
        """Note that the connection is idle, unless the next request was sent already."""
        super().on_response_complete()  # begins the next request that was sent already
        if not self._is_answering:
            self.limits.ended_request(self)
            self._await_reader()

    def connection_lost(self, exc: Exception | None) -> None:
        """Forget the connection."""
        self._stop_awaiting_head()
        self._stop_awaiting_reader()
        self.limits.closed(self)
        super().connection_lost(exc)

    def pause_writing(self) -> None:
        """Wait for a client that reads more slowly than it is written to."""
        super().pause_writing()
        self._await_reader()

    def resume_writing(self) -> None:
        """Write on: the client has read."""
        super().resume_writing()
        self._stop_awaiting_reader()
        if not self._is_answering:
            self._await_reader()

    def close_idle(self) -> bool:
        """Close it while no request is in progress; False if its client has yet to read the end of an answer."""
        if self.transport.get_write_buffer_size():
            return False
        self.transport.close()
        return True

    @property
    def _is_answering(self) -> bool:
        return self.cycle is not None and not self.cycle.response_complete

    def _await_head(self) -> None:
        self._head_due = self.loop.call_later(self.options.max_header_seconds, self._give_up)

    def _stop_awaiting_head(self) -> None:
        if self._head_due is not None:
            self._head_due.cancel()
            self._head_due = None

    def _give_up(self) -> None:
        self._head_due = None
        if not self._is_answering and not self.transport.is_closing():
            self.transport.close()

    def _await_reader(self) -> None:
        """End the connection if what is written is not read in time; nothing to read is soon found to be read."""
        if self._reading_due is None and self.transport.get_write_buffer_size():
            self._reading_due = self.loop.call_later(self.options.max_stall_seconds, self._give_reader_up)

    def _stop_awaiting_reader(self) -> None:
        if self._reading_due is not None:
            self._reading_due.cancel()
            self._reading_due = None

    def _give_reader_up(self) -> None:
        self._reading_due = None
        if self.transport.get_write_buffer_size():
            self.transport.abort()


def protocol_of(options: ServerOptions, limits: Connections) -> Callable[..., Any]:
    """Return the class of a server's connections, as uvicorn wants it."""
    return type("Connection", (Connection,), {"options": options, "limits": limits})
