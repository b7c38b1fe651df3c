"""Model endpoints on loopback: the scripted server with a hook, and one that sends any bytes it is given."""

from __future__ import annotations

import asyncio
import contextlib
import itertools
import json
import ssl
import subprocess
import threading
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from langchain_core.callbacks import AsyncCallbackManager, BaseCallbackHandler
from langchain_core.runnables.config import var_child_runnable_config

from judgetree.app.scripted.answers import ChatReply
from judgetree.app.scripted.behaviour import Behaviour
from judgetree.app.scripted.server import ScriptedServer
from judgetree.app.scripted.wire import ReceivedRequest
from judgetree.modules.background_loop import background_loop
from judgetree.modules.calls.completion import Completion
from judgetree.modules.calls.growing_text import Delta, TextListener
from judgetree.modules.calls.messages import CallOptions
from judgetree.modules.calls.usage import CallMeter
from judgetree.modules.llm.call_gate import CallGate
from judgetree.modules.llm.contract import ChatLLM
from judgetree.modules.llm.endpoint import EndpointLLM
from judgetree.modules.llm.openai_client import open_chat

QUESTION = [("user", "What is six by nine?")]
PATIENCE_S = 30.0
"""How long a call may take before its test fails."""
KEY = "sk-0123456789abcdef"


@dataclass
class Clock:
    """Sleeps that are written down instead of slept."""

    slept_s: list[float] = field(default_factory=list)

    async def sleep(self, seconds: float) -> None:
        self.slept_s.append(seconds)


class Snapshots(list[str]):
    """What a listener has heard so far, after each piece."""

    _said = ""

    def begin(self) -> None:
        """Another call is made."""
        self._said = ""

    def __call__(self, delta: Delta) -> None:
        self._said = delta.text if delta.restarted else self._said + delta.text
        self.append(self._said)


def llm_at(
    base_url: str,
    *,
    gate: CallGate | None = None,
    retries: int = 2,
    sleep: Callable[[float], Awaitable[None]] | None = None,
    timeout_s: float = 10.0,
    api_key: str = KEY,
    max_reply_bytes: int = 200_000,
    endpoint: str = "",
) -> EndpointLLM:
    chat = open_chat("m", base_url=base_url, api_key=api_key, timeout_s=timeout_s, max_reply_bytes=max_reply_bytes)
    return EndpointLLM(chat, endpoint=endpoint, gate=gate or CallGate(4), retries=retries, sleep=sleep or Clock().sleep)


def ask(
    llm: ChatLLM,
    meter: CallMeter | None = None,
    *,
    on_text: TextListener | None = None,
    on_thinking: TextListener | None = None,
    heard_by: Sequence[BaseCallbackHandler] = (),
    **options: Any,
) -> Completion:
    """Ask as a node of a graph does, whose callbacks have the handlers ``heard_by``."""
    meter = meter or CallMeter(node="generate")
    for listener in (on_text, on_thinking):
        if isinstance(listener, Snapshots):
            listener.begin()

    async def call() -> Completion:
        var_child_runnable_config.set({"callbacks": AsyncCallbackManager([*heard_by])})
        asked = CallOptions(**options)
        return await llm.complete(QUESTION, meter=meter, options=asked, on_text=on_text, on_thinking=on_thinking)

    return background_loop().run(asyncio.wait_for(call(), PATIENCE_S))


def saying(*replies: ChatReply) -> Callable[[ReceivedRequest], ChatReply]:
    """A hook that gives one reply after the other, the last one for ever."""
    left = iter(itertools.chain(replies, itertools.repeat(replies[-1])))
    return lambda _: next(left)


Answer = tuple[int, dict[str, str], str | Iterable[bytes]]
"""Status, headers and body, as they are; a body in pieces is sent piece by piece."""


class RawEndpoint(ThreadingHTTPServer):
    """An endpoint that sends the answers it is given, the last one for ever, and keeps what it is sent."""

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), _RawHandler)
        self.base_url = f"http://127.0.0.1:{self.server_port}/v1"
        self.will_send()

    def will_send(self, *answers: Answer) -> None:
        self.bodies: list[dict[str, Any]] = []
        self.keys: list[str] = []
        self.answers = itertools.chain(answers, itertools.repeat(answers[-1] if answers else chat_reply("42")))


class _RawHandler(BaseHTTPRequestHandler):
    disable_nagle_algorithm = True
    server: RawEndpoint

    def do_POST(self) -> None:
        self.server.keys.append(self.headers["Authorization"])
        self.server.bodies.append(json.loads(self.rfile.read(int(self.headers["Content-Length"]))))
        status, headers, body = next(self.server.answers)
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        with contextlib.suppress(ConnectionError):  # the client may have had enough
            for piece in [body.encode()] if isinstance(body, str) else body:
                self.wfile.write(piece)

    def log_message(self, *_: object) -> None:
        """Say nothing."""


def chat_reply(text: str | None, **message: object) -> Answer:
    choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text, **message}}
    return (
        200,
        {},
        json.dumps({"id": "1", "object": "chat.completion", "created": 0, "model": "m", "choices": [choice]}),
    )


def stream_reply(*deltas: dict[str, object]) -> Answer:
    choices = [{"index": 0, "delta": delta, "finish_reason": None} for delta in deltas]
    choices.append({"index": 0, "delta": {}, "finish_reason": "stop"})
    return stream_of(*({"choices": [choice]} for choice in choices))


def stream_of(*pieces: dict[str, object]) -> Answer:
    """A stream of pieces as they are, but for the head that all have."""
    head = {"id": "1", "object": "chat.completion.chunk", "created": 0, "model": "m"}
    events = [json.dumps({**head, **piece}) for piece in pieces]
    return 200, {"Content-Type": "text/event-stream"}, "".join(f"data: {event}\n\n" for event in [*events, "[DONE]"])


@contextmanager
def serve_raw() -> Iterator[RawEndpoint]:
    with RawEndpoint() as endpoint:
        threading.Thread(target=endpoint.serve_forever, args=(0.01,), daemon=True).start()
        yield endpoint
        endpoint.shutdown()


def as_new(server: ScriptedServer) -> ScriptedServer:
    """The server with nothing counted, no fault, and "42" for an answer to everything."""
    default = Behaviour()
    server.configure(**{name: getattr(default, name) for name in Behaviour.__dataclass_fields__})
    server.reset()
    server.responses = saying(ChatReply(text="42"))
    return server


@contextmanager
def serve_tls(folder: Path) -> Iterator[str]:
    """The base URL of an endpoint whose certificate nobody has signed but itself."""
    key, certificate = folder / "key.pem", folder / "certificate.pem"
    make = ["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:prime256v1", "-nodes"]
    named = ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run([*make, *named, "-keyout", key, "-out", certificate], check=True, capture_output=True)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(certificate, key)
    with RawEndpoint() as endpoint:
        endpoint.socket = context.wrap_socket(endpoint.socket, server_side=True)
        threading.Thread(target=endpoint.serve_forever, args=(0.01,), daemon=True).start()
        yield endpoint.base_url.replace("http://", "https://")
        endpoint.shutdown()
