"""Minimal HTTP for the scripted server and well-behaved clients.

One asyncio loop, keep-alive, bodies with a Content-Length, no pipelining. It takes a quarter of the processor time of
``http.server``, and parallel requests need no threads.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from concurrent.futures import ThreadPoolExecutor
from http.client import responses

from ...modules.errors import SettingsError
from .endpoints import Endpoints, Outgoing, json_answer
from .wire import error

_log = logging.getLogger(__name__)

HOST = "127.0.0.1"
_HOOK_THREADS = 512


class _ClientGone(Exception):
    """The client closed the connection, or sent bytes before its answer."""


class Listener:
    """Transport between sockets and endpoints, on the running event loop."""

    def __init__(self, endpoints: Endpoints) -> None:
        self._endpoints = endpoints
        self._connections: set[asyncio.Task[None]] = set()
        # One thread for each running hook: a hook may wait for other requests to arrive.
        self._hook_threads = ThreadPoolExecutor(_HOOK_THREADS, thread_name_prefix="scripted-hook")

    async def listen(self, port: int) -> asyncio.Server:
        """Accept connections; port 0 takes any free port.

        Raises:
            SettingsError: The port is taken or not allowed.
        """
        try:
            return await asyncio.start_server(self._converse, HOST, port, backlog=512)
        except (OSError, OverflowError) as problem:
            raise SettingsError(
                f"Cannot listen on port {port}: {problem}. Give a free port, or 0 for any."
            ) from problem

    async def close(self, server: asyncio.Server) -> None:
        """Stop listening, abandon active requests and close every connection."""
        server.close()
        for task in self._connections:
            task.cancel()
        await asyncio.gather(*self._connections, return_exceptions=True)
        self._hook_threads.shutdown(wait=False, cancel_futures=True)

    async def _converse(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        if task := asyncio.current_task():
            self._connections.add(task)
            task.add_done_callback(self._connections.discard)
        try:
            while await self._exchange(reader, writer):
                pass
        except (_ClientGone, ConnectionError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            _log.debug("A client left, or does not speak HTTP.")
        except asyncio.CancelledError:
            # Only ``close`` cancels; asyncio would log a cancelled connection as an error.
            writer.transport.abort()
        finally:
            writer.close()
            with contextlib.suppress(ConnectionError, asyncio.CancelledError):
                await writer.wait_closed()

    async def _exchange(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> bool:
        """Answer one request; returns whether the connection stays open."""
        method, path, headers = _parse_head(await reader.readuntil(b"\r\n\r\n"))
        length = headers.get("content-length", "0")
        if "transfer-encoding" in headers or not length.isdecimal():
            await _send(writer, json_answer(error(411, "Send the body with a Content-Length."), 411))
            return False
        body = await reader.readexactly(int(length))
        counted = self._endpoints.is_model_request(method, path)
        if counted:
            self._endpoints.tally.arrive()
        try:
            outgoing = await self._handle(method, path, body)
            if outgoing.delay_s:
                await _wait_while_connected(reader, outgoing.delay_s)
            await _send(writer, outgoing)
        finally:
            if counted:
                self._endpoints.tally.leave()
        return not outgoing.drop and headers.get("connection", "").lower() != "close"

    async def _handle(self, method: str, path: str, body: bytes) -> Outgoing:
        if self._endpoints.responses is None:
            return self._endpoints.handle(method, path, body)
        loop = asyncio.get_running_loop()
        try:
            return await loop.run_in_executor(self._hook_threads, self._endpoints.handle, method, path, body)
        except Exception as problem:  # noqa: BLE001 - a hook may raise anything, which its client should see
            _log.exception("The responses hook failed.")
            return json_answer(error(500, f"The responses hook failed: {problem!r}"), 500)


def _parse_head(head: bytes) -> tuple[str, str, dict[str, str]]:
    """Return method, path without query string, and headers by lower-case name."""
    request_line, *lines = head.decode("latin-1").split("\r\n")
    method, _, rest = request_line.partition(" ")
    path = rest.partition(" ")[0].partition("?")[0]
    named = (line.partition(":") for line in lines if line)
    return method, path, {name.strip().lower(): value.strip() for name, _, value in named}


async def _wait_while_connected(reader: asyncio.StreamReader, delay_s: float) -> None:
    """Wait, unless the client disconnects: its request must not stay active.

    Raises:
        _ClientGone: The client disconnected, or sent bytes before its answer.
    """
    with contextlib.suppress(TimeoutError):
        await asyncio.wait_for(reader.read(1), delay_s)
        raise _ClientGone


async def _send(writer: asyncio.StreamWriter, outgoing: Outgoing) -> None:
    head = f"HTTP/1.1 {outgoing.status} {responses.get(outgoing.status, 'Scripted')}\r\n"
    if outgoing.retry_after_s is not None:
        head += f"Retry-After: {outgoing.retry_after_s:g}\r\n"
    if outgoing.events:
        head += "Content-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
        pieces = [b"%x\r\n%b\r\n" % (len(event), event) for event in outgoing.events] + [b"0\r\n\r\n"]
    else:
        head += f"Content-Type: application/json\r\nContent-Length: {len(outgoing.body)}\r\n\r\n"
        half = len(outgoing.body) // 2
        pieces = [outgoing.body[:half], outgoing.body[half:]] if outgoing.drop else [outgoing.body]
    if outgoing.drop:
        pieces = pieces[: len(pieces) // 2]
    # One write for head and first piece: two small writes meet delayed acknowledgement, 40 ms per request.
    writer.write(head.encode() + pieces[0])
    for piece in pieces[1:]:
        await writer.drain()
        writer.write(piece)
    await writer.drain()
