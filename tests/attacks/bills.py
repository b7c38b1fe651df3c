"""An endpoint that keeps its own bill of what its replies report, and fails below the level of a reply."""

from __future__ import annotations

import json
import random
import threading
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace

from judgetree.app.scripted.endpoints import Outgoing, json_answer
from judgetree.app.scripted.server import ScriptedServer

Json = dict[str, object]
PATHS = ("/v1/chat/completions", "/v1/completions")


@dataclass(frozen=True)
class Failure:
    """What an endpoint makes of its reply, and whether the reply is billed."""

    change: Callable[[Outgoing, Json], Outgoing]
    """Takes the reply and its usage."""
    is_billed: bool = True


def _whole(outgoing: Outgoing, usage: Json, **changes: object) -> Outgoing:
    """Replace the text of a reply, streamed or not; the usage stays."""
    message = {"role": "assistant", "content": "", **changes}
    if outgoing.events:
        return _events(outgoing, [{"choices": [_choice("delta", message)]}, {"choices": [], "usage": usage}], done=True)
    return json_answer({**_HEAD, "choices": [_choice("message", message)], "usage": usage})


_HEAD: Json = {"id": "1", "object": "chat.completion", "created": 0, "model": "scripted"}


def _choice(name: str, message: Json, finish: str | None = "stop") -> Json:
    return {"index": 0, "finish_reason": finish, name: message}


def _events(outgoing: Outgoing, pieces: Sequence[Json], *, done: bool, drop: bool = False) -> Outgoing:
    head = {**_HEAD, "object": "chat.completion.chunk"}
    events = [f"data: {json.dumps({**head, **piece})}\n\n".encode() for piece in pieces]
    return replace(outgoing, events=(*events, *([b"data: [DONE]\n\n"] if done else [])), drop=drop)


def _breaks_off(outgoing: Outgoing, usage: Json) -> Outgoing:
    """The stream reports its usage with each piece, and ends without a reason."""
    if not outgoing.events:
        return _in_band(outgoing, usage)
    piece: Json = {"choices": [_choice("delta", {"content": "It is "}, None)], "usage": usage}
    return _events(outgoing, [piece, piece], done=False)


def _in_band(outgoing: Outgoing, usage: Json) -> Outgoing:
    error: Json = {"error": {"message": "the worker died", "code": 500}, "usage": usage}
    if outgoing.events:
        piece: Json = {"choices": [_choice("delta", {"content": "It is "}, None)]}
        return _events(outgoing, [piece, error], done=True)
    return json_answer({**_HEAD, **error})


def _error_after_usage(outgoing: Outgoing, usage: Json) -> Outgoing:
    """The stream reports its usage, then an error in place of its end."""
    if not outgoing.events:
        return _in_band(outgoing, usage)
    piece: Json = {"choices": [_choice("delta", {"content": "It is "}, None)], "usage": usage}
    return _events(outgoing, [piece, {"error": {"message": "the worker died"}}], done=True)


def _no_choices(outgoing: Outgoing, usage: Json) -> Outgoing:
    if outgoing.events:
        return _events(outgoing, [{"choices": [], "usage": usage}], done=True)
    return json_answer({**_HEAD, "choices": [], "usage": usage})


def _null_message(outgoing: Outgoing, usage: Json) -> Outgoing:
    if outgoing.events:
        return _events(outgoing, [{"choices": [_choice("delta", {})], "usage": usage}], done=True)
    return json_answer({**_HEAD, "choices": [{"index": 0, "message": None}], "usage": usage})


def _status(status: int) -> Callable[[Outgoing, Json], Outgoing]:
    return lambda outgoing, usage: json_answer({"error": {"message": "down"}, "usage": usage}, status)


FAILURES: dict[str, Failure] = {
    "empty": Failure(_whole),
    "only-thinking": Failure(lambda outgoing, usage: _whole(outgoing, usage, content="<think>so</think>")),
    "cut-json": Failure(lambda outgoing, usage: _whole(outgoing, usage, content='{"score": 2, "rea')),
    "prose": Failure(lambda outgoing, usage: _whole(outgoing, usage, content="It helps a little.")),
    "breaks-off": Failure(_breaks_off),
    "error-in-band": Failure(_in_band),
    "error-after-usage": Failure(_error_after_usage),
    "no-choices": Failure(_no_choices),
    "null-message": Failure(_null_message),
    "error-503": Failure(_status(503), is_billed=False),
    "error-429": Failure(lambda outgoing, usage: replace(_status(429)(outgoing, usage), retry_after_s=0.01), False),
}
"""By name, failures whose usage the endpoint reports."""


@dataclass
class Bill:
    """Adds up what a scripted server bills, and makes some of its replies fail; each sum is that of reported usage."""

    server: ScriptedServer
    names: Sequence[str] = tuple(FAILURES)
    share: float = 0.4
    """Share of requests that fail."""
    seed: int = 0
    requests: int = 0
    tokens: int = 0
    largest: int = 0
    met: Counter[str] = field(default_factory=Counter)
    """Failures by name."""
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __post_init__(self) -> None:
        self._random = random.Random(self.seed)
        posts = self.server._endpoints._posts
        for path in PATHS:
            posts[path] = self._billed(posts[path])

    def _billed(self, answer: Callable[[bytes], Outgoing]) -> Callable[[bytes], Outgoing]:
        def post(raw: bytes) -> Outgoing:
            outgoing = answer(raw)
            if outgoing.status != 200:
                return outgoing
            usage = _usage_of(outgoing)
            with self._lock:
                fails = bool(self.names) and self._random.random() < self.share
                name = self._random.choice(list(self.names)) if fails else ""
                self.met[name] += 1
                if not name or FAILURES[name].is_billed:
                    used = int(str(usage["total_tokens"]))
                    self.requests, self.tokens = self.requests + 1, self.tokens + used
                    self.largest = max(self.largest, used)
            return FAILURES[name].change(outgoing, usage) if name else outgoing

        return post


def _usage_of(outgoing: Outgoing) -> Json:
    bodies = [outgoing.body] if not outgoing.events else [each[6:] for each in outgoing.events if b'"usage"' in each]
    usage: Json = json.loads(bodies[-1])["usage"]
    return usage
