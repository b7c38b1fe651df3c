"""Questions to a conversation of a running server, and a model that waits."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import quote

import httpx

from judgetree.app.scripted.answers import ChatReply
from judgetree.app.scripted.wire import ReceivedRequest
from tests.app.conftest import COLLECTION

MODEL = f"{COLLECTION}/judge"
Event = dict[str, Any]


def path_of(name: str, *rest: str) -> str:
    """Path of a conversation, or of something below it."""
    return "/v1/conversations/" + "/".join(quote(each, safe="") for each in (name, *rest))


@contextmanager
def streaming(http: httpx.Client, name: str, question: str, **more: object) -> Iterator[Iterator[Event]]:
    """The events of a question as they come; leaving closes the connection."""
    body = {"model": MODEL, "question": question} | more
    with http.stream("POST", path_of(name, "questions"), json=body) as answer:
        assert answer.status_code == 200, answer.read()
        assert answer.headers["content-type"].startswith("text/event-stream")
        yield events_of(answer)


def events_of(answer: httpx.Response) -> Iterator[Event]:
    """The events of a stream, of which each one says its type twice."""
    kind = ""
    for line in answer.iter_lines():
        if line.startswith("event: "):
            kind = line.removeprefix("event: ")
        elif line.startswith("data: "):
            event = json.loads(line.removeprefix("data: "))
            assert event["type"] == kind
            yield event


def ask(http: httpx.Client, name: str, question: str, **more: object) -> list[Event]:
    """All events of a question."""
    with streaming(http, name, question, **more) as events:
        return list(events)


def answered(http: httpx.Client, name: str, question: str, **more: object) -> Event:
    """The ``done`` of a question that was answered."""
    done = ask(http, name, question, **more)[-1]
    assert done["type"] == "done", done
    assert done["turn"] is not None, done
    return done


def get(http: httpx.Client, path: str, **query: Any) -> Any:
    """The document at a path."""
    answer = http.get(path, params=query)
    assert answer.status_code == 200, answer.text
    return answer.json()


def as_holder(http: httpx.Client, key: str) -> None:
    """Let a client send a key from now on."""
    http.headers["Authorization"] = f"Bearer {key}"


class Gate:
    """Holds chat calls back until it is opened; then ``reply`` answers them, or the script."""

    def __init__(self) -> None:
        self.calls = 0
        self.reply: ChatReply | None = None
        self._lock = threading.Lock()
        self.reached = threading.Event()
        self._open = threading.Event()
        self._open.set()

    def close(self) -> None:
        self.reached.clear()
        self._open.clear()

    def open(self) -> None:
        self._open.set()

    def __call__(self, request: ReceivedRequest) -> ChatReply | None:
        with self._lock:
            self.calls += 1
        self.reached.set()
        assert self._open.wait(60), "the gate stayed closed"
        return self.reply
