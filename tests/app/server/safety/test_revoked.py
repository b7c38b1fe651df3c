"""A key that another process revokes: what is served under it ends, with a last event, and pays for nothing more."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, closing
from dataclasses import dataclass, field
from typing import Any

import httpx
import pytest

from judgetree.app.scripted.server import ScriptedServer
from judgetree.app.server.application import create_app
from judgetree.app.server.keys.book import KeyBook
from judgetree.app.server.keys.tables import KeyTables
from judgetree.app.server.serving.options import ServerOptions
from judgetree.app.server.serving.served import Served
from judgetree.app.stores.collections import CollectionReader
from judgetree.modules.index.connection import connect
from judgetree.modules.index.writer_lock import LockOptions, writer_lock
from judgetree.modules.settings import Settings
from tests.app.conftest import CHAIN, COLLECTION, CORPUS, Dam
from tests.app.server.collections.test_upload import KETTLES, send
from tests.app.server.conversations.asking import events_of as turn_events
from tests.app.server.safety.test_admission import ASK, MODEL, body, key_for
from tests.app.server.safety.test_client_gone import until
from tests.app.server.serving import serving_app

SAID = "revoked while the request was served"


@dataclass
class Revoking:
    """A server that answers questions of a key, of which none gets a reply of the model."""

    http: httpx.Client
    settings: Settings
    served: Served
    scripted: ScriptedServer
    dam: Dam
    held: ExitStack = field(default_factory=ExitStack)

    def revoke(self) -> None:
        """Revoke the key as another process does."""
        with closing(KeyTables(self.settings)) as tables:
            KeyBook(tables).revoke("ada")

    def growing_thread(self) -> str:
        """The thread of a tree that grows."""
        question = {"model": MODEL, "question": CHAIN.question}
        stream = self.http.stream("POST", "/v1/conversations/other/questions", json=question)
        events = turn_events(self.held.enter_context(stream))
        inner = (event.get("event") or {} for event in events if event["type"] == "tree")
        return next(str(event["thread_id"]) for event in inner if event.get("thread_id"))

    def waiting_job(self) -> str:
        """An upload that waits for another writer."""
        connection = self.held.enter_context(closing(connect(str(self.settings.milvus_address))))
        self.held.enter_context(writer_lock(connection, COLLECTION, LockOptions(), on_wait=lambda _: None))
        return str(send(self.http, KETTLES).json()["id"])


@pytest.fixture
def revoking(settings: Settings, scripted: ScriptedServer) -> Iterator[Revoking]:
    scripted.responses = dam = Dam(stops=lambda request: request.prompt.kind == "judge")
    options = ServerOptions(needs_keys=True)
    app, key = create_app(settings, options), key_for(settings, "ada")
    headers = {"Authorization": f"Bearer {key}"}
    with serving_app(app, options) as url, httpx.Client(base_url=url, timeout=60, headers=headers) as http:
        case = Revoking(http, settings, app.state.served, scripted, dam)
        try:
            yield case
        finally:
            dam.opened.set()
            case.held.close()


Request = dict[str, Any]
STREAMS: dict[str, Callable[[Revoking], Request]] = {
    "/v1/chat/completions": lambda _: {"method": "POST", "url": ASK, "json": body(CHAIN.question, stream=True)},
    "/knowledge_chat_conversation": lambda _: {
        "method": "POST",
        "url": "/knowledge_chat_conversation",
        "json": {"question": CHAIN.question, "session_id": "one", "model_id": MODEL},
    },
    "/v1/conversations/{name}/questions": lambda _: {
        "method": "POST",
        "url": "/v1/conversations/one/questions",
        "json": {"model": MODEL, "question": CHAIN.question},
    },
    "/v1/trees/{thread}/events": lambda case: {"method": "GET", "url": f"/v1/trees/{case.growing_thread()}/events"},
    "/v1/jobs/{id}": lambda case: {
        "method": "GET",
        "url": f"/v1/jobs/{case.waiting_job()}",
        "headers": {"Accept": "text/event-stream"},
    },
}


def last_events(text: str) -> list[str]:
    return [block for block in text.split("\n\n") if "data: " in block][-2:]


def test_every_stream_of_the_server_is_tried(settings: Settings) -> None:
    described = create_app(settings).openapi()["paths"]
    streams = {
        path
        for path, methods in described.items()
        for method in methods.values()
        if "text/event-stream" in method["responses"].get("200", {}).get("content", {})
    }
    assert streams == set(STREAMS)


@pytest.mark.parametrize("path", STREAMS)
def test_a_stream_ends_with_its_last_event(revoking: Revoking, path: str) -> None:
    with revoking.http.stream(**STREAMS[path](revoking)) as stream:
        assert stream.status_code == 200
        lines = stream.iter_lines()
        first = next(line for line in lines if line.startswith(("data:", "event:")))
        if "jobs" not in path and "trees" not in path:
            assert revoking.dam.reached.wait(60)
        revoking.revoke()
        events = last_events("\n".join([first, *lines, ""]))
    match path:
        case "/v1/chat/completions":
            assert SAID in json.loads(events[0].removeprefix("data: "))["error"]["message"]
            assert events[1] == "data: [DONE]"
        case "/knowledge_chat_conversation":
            assert events[0].startswith("data: ERROR: ")
            assert SAID in events[0]
            assert events[1].startswith("data: DONE: ")
        case "/v1/jobs/{id}":
            assert events[-1].startswith("event: failed\n")
            assert SAID in events[-1]
        case _:
            assert "event: error\n" in events[-1]
            assert SAID in events[-1]
    pays_for_nothing_more(revoking)


def pays_for_nothing_more(revoking: Revoking) -> None:
    until(lambda: revoking.served.admissions.running == 0, "a question goes on")
    made = revoking.scripted.requests
    revoking.dam.opened.set()
    assert revoking.http.get("/v1/models").status_code == 401
    assert revoking.scripted.requests == made


def test_a_stream_of_ag_ui_ends_with_an_error(revoking: Revoking) -> None:
    accept = {"Accept": "text/vnd.ag-ui+event-stream"}
    with revoking.http.stream(**STREAMS["/v1/trees/{thread}/events"](revoking), headers=accept) as stream:
        lines = stream.iter_lines()
        assert json.loads(next(lines).removeprefix("data: "))["type"] == "RUN_STARTED"
        revoking.revoke()
        last = json.loads([line for line in lines if line.startswith("data: ")][-1].removeprefix("data: "))
    assert last["type"] == "RUN_ERROR"
    assert SAID in last["message"]


@pytest.mark.parametrize("model", [MODEL, "fast"])
def test_a_whole_answer_is_refused(revoking: Revoking, model: str) -> None:
    revoking.dam.stops = lambda _: True
    with ThreadPoolExecutor(1) as threads:
        answered = threads.submit(revoking.http.post, ASK, json=body(CHAIN.question, model=model))
        assert revoking.dam.reached.wait(60)
        revoking.revoke()
        answer = answered.result(60)
    assert (answer.status_code, answer.json()["error"]["code"]) == (401, "invalid_api_key")
    assert SAID in answer.json()["error"]["message"]
    pays_for_nothing_more(revoking)


def test_an_upload_is_not_indexed(settings: Settings) -> None:
    options = ServerOptions(needs_keys=True)
    key = key_for(settings, "ada")
    held = ExitStack()
    with (
        serving_app(app := create_app(settings, options), options) as url,
        httpx.Client(base_url=url, timeout=60, headers={"Authorization": f"Bearer {key}"}) as http,
        held,
    ):
        case = Revoking(http, settings, app.state.served, ScriptedServer([]), Dam(), held)
        job = case.waiting_job()
        with http.stream("GET", f"/v1/jobs/{job}", headers={"Accept": "text/event-stream"}) as stream:
            lines = stream.iter_lines()
            assert next(lines) in ("event: queued", "event: running")
            case.revoke()
            assert "event: failed" in list(lines)
    with closing(CollectionReader(settings)) as reader:
        assert list(((found := reader.read(COLLECTION)) and found.files) or ()) == sorted(CORPUS)
