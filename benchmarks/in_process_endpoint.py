"""A model's endpoint inside the process: judgetree's whole client, whose connections end in memory instead of a socket.

The bytes of each request are parsed, and answered after ``LATENCY_S`` with the bytes of a scripted reply. Only the
system's sockets are left out.
"""

from __future__ import annotations

import asyncio
import os
import pickle
import re
from collections.abc import Sequence
from pathlib import Path

import aiohttp
from aiohttp.client_proto import ResponseHandler
from openai._vendor.httpx_aiohttp import AiohttpTransport

from judgetree.app.scripted.endpoints import Endpoints, Outgoing
from judgetree.modules.background_loop import background_loop
from judgetree.modules.calls.completion import Completion
from judgetree.modules.calls.growing_text import Listeners
from judgetree.modules.calls.messages import CallOptions, Message
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.llm.call_gate import CallGate
from judgetree.modules.llm.endpoint import EndpointLLM
from judgetree.modules.llm.factory import create_llm
from judgetree.modules.llm.openai_client import http_client_on
from judgetree.modules.settings import Settings

from .eval_runs import Workspace

LATENCY_S = 0.2
_QUESTIONS = "JUDGETREE_BENCH_FAKE_QUESTIONS"
"""Variable that names the questions' file to all processes."""
_LENGTH = re.compile(rb"content-length: *(\d+)", re.IGNORECASE)
_END = b"\r\n\r\n"
_MORE_THAN_ASKED = 10_000


def give_questions(workspace: Workspace) -> None:
    """Let the endpoints of this process and of those that it starts know the questions."""
    file = workspace.folder / "questions.pickle"
    file.write_bytes(pickle.dumps(workspace.questions))
    os.environ[_QUESTIONS] = str(file)


class ModelInProcess:
    """The model of an OpenAI-compatible endpoint in this process; for specs ``module:ModelInProcess``."""

    model = "in-process"

    def __init__(self, settings: Settings) -> None:
        endpoints = Endpoints(pickle.loads(Path(os.environ[_QUESTIONS]).read_bytes()))
        transport = http_client_on(background_loop())._transport
        assert isinstance(transport, AiohttpTransport)
        transport.client = lambda: aiohttp.ClientSession(connector=_InMemory(endpoints))
        llm = create_llm("http://in.process/v1#scripted", settings, CallGate(_MORE_THAN_ASKED))
        assert isinstance(llm, EndpointLLM)
        self._llm = llm

    async def complete(
        self, messages: Sequence[Message], *, meter: CallMeter, options: CallOptions, **listeners: object
    ) -> Completion:
        """Ask the endpoint. The call has its slot and its place in the journal already."""
        return await self._llm._call(messages, meter, options, Listeners())


class _InMemory(aiohttp.BaseConnector):
    """Makes connections that end in ``_Line``."""

    def __init__(self, endpoints: Endpoints) -> None:
        super().__init__(limit=0)
        self._endpoints = endpoints

    async def _create_connection(self, *_: object) -> ResponseHandler:
        handler: ResponseHandler = self._factory()
        handler.connection_made(_Line(handler, self._endpoints))
        return handler


class _Line(asyncio.Transport):
    """A connection whose other end is an endpoint in this process."""

    def __init__(self, handler: ResponseHandler, endpoints: Endpoints) -> None:
        super().__init__()
        self._handler = handler
        self._endpoints = endpoints
        self._received = b""
        self._is_closed = False

    def write(self, data: bytes | bytearray | memoryview[int]) -> None:
        self._received += data
        head, end, body = self._received.partition(_END)
        length = _LENGTH.search(head)
        if end and length is not None and len(body) >= int(length[1]):
            self._received = b""
            method, path, _ = head.split(b" ", 2)
            outgoing = self._endpoints.handle(method.decode(), path.decode(), body)
            asyncio.get_running_loop().call_later(LATENCY_S, self._answer, _http_bytes(outgoing))

    def _answer(self, reply: bytes) -> None:
        if not self._is_closed:
            self._handler.data_received(reply)

    def is_closing(self) -> bool:
        return self._is_closed

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            asyncio.get_running_loop().call_soon(self._handler.connection_lost, None)

    abort = close

    def pause_reading(self) -> None:
        """Do nothing: a reply comes whole."""

    def resume_reading(self) -> None:
        """Do nothing."""

    def set_write_buffer_limits(self, high: int | None = None, low: int | None = None) -> None:
        """Do nothing: what is written is read at once."""


def _http_bytes(outgoing: Outgoing) -> bytes:
    body = b"".join(outgoing.events) or outgoing.body
    kind = "text/event-stream" if outgoing.events else "application/json"
    head = f"HTTP/1.1 {outgoing.status} Scripted\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}"
    return head.encode() + _END + body
