"""An endpoint's till: replies that are billed and cannot be used, and what the endpoint bills for all."""

from __future__ import annotations

import threading
from collections.abc import Callable
from dataclasses import dataclass, field, replace

from judgetree.app.scripted.answers import ChatReply
from judgetree.app.scripted.server import ScriptedServer
from judgetree.app.scripted.wire import ReceivedRequest, count_tokens

FAILURES: dict[str, Callable[[ChatReply], ChatReply]] = {
    "empty": lambda reply: ChatReply(text=""),
    "only-thinking": lambda reply: ChatReply(text="<think>" + "six by nine " * 20 + "</think>"),
    "only-reasoning-cut-off": lambda reply: ChatReply(reasoning="six by nine " * 20, finish_reason="length"),
    "white-space": lambda reply: ChatReply(text=" \n " * 30),
    "half-of-it": lambda reply: replace(reply, text=reply.text[: len(reply.text) // 2], finish_reason="length"),
    "prose": lambda reply: ChatReply(text="Having read the passage, I find that it helps a little."),
    "refused-by-a-filter": lambda reply: ChatReply(text="", finish_reason="content_filter"),
    "error-500": lambda reply: ChatReply(text="down", status=500),
    "error-400": lambda reply: ChatReply(text="no such option", status=400),
}
"""By name, what a failing endpoint makes of a reply; errors are not billed."""


@dataclass
class Till:
    """Lets a scripted server answer, makes some replies fail, and adds up requests and tokens that are billed."""

    server: ScriptedServer
    failure: str = ""
    """Name in ``FAILURES``; ``""`` for none."""
    fails: Callable[[int], bool] = lambda number: True
    """Whether a request fails, by its number from 1."""
    requests: int = 0
    """Requests that are billed."""
    tokens: int = 0
    largest: int = 0
    """Tokens of the largest request."""
    _number: int = 0
    _lock: threading.Lock = field(default_factory=threading.Lock)
    _inside: threading.local = field(default_factory=threading.local)

    def __call__(self, request: ReceivedRequest) -> ChatReply | None:
        if getattr(self._inside, "is_asked", False):
            return None
        self._inside.is_asked = True
        try:
            endpoints = self.server._endpoints
            reply = endpoints._reply(request, endpoints.behaviour)
        finally:
            self._inside.is_asked = False
        with self._lock:
            self._number += 1
            if self.failure and self.fails(self._number):
                reply = FAILURES[self.failure](reply)
            if reply.status == 200:
                used = count_tokens([text for _, text in request.messages])
                used += count_tokens([reply.reasoning, reply.text])
                self.requests += 1
                self.tokens += used
                self.largest = max(self.largest, used)
        return reply
