"""Search trees that grow, as server-sent events."""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from typing import cast

import httpx
import jsonpatch
import pytest

from judgetree.app.scripted.server import ScriptedServer
from judgetree.app.server.application import create_app
from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.systems.judge_rag import build_judge_rag
from judgetree.modules.settings import Settings
from tests.app.conftest import CHAIN, COLLECTION, Cli, killed, new_thread
from tests.app.server.serving import serving, serving_app
from tests.app.server.trees.conftest import at_the_sub_answer, held_elsewhere
from tests.graphs.bushy import bushy_context


@dataclass(frozen=True)
class Event:
    """A server-sent event."""

    kind: str
    id: str
    data: object


def events_of(response: httpx.Response) -> Iterator[Event]:
    """The events of a stream, as they come."""
    fields: dict[str, str] = {}
    for line in response.iter_lines():
        if line.startswith(":"):
            continue
        if line:
            name, _, value = line.partition(": ")
            fields[name] = value
        elif fields:
            yield Event(fields["event"], fields.get("id", ""), json.loads(fields["data"]))
            fields = {}


def watch(http: httpx.Client, thread: str, last: str = "") -> list[Event]:
    """All events of a stream that ends."""
    headers = {"Last-Event-ID": last} if last else {}
    with http.stream("GET", f"/v1/trees/{thread}/events", headers=headers) as response:
        assert response.status_code == 200
        return list(events_of(response))


@dataclass
class Client:
    """Keeps a tree as a page does."""

    tree: object = None
    last: str = ""
    kinds: tuple[str, ...] = ()

    def take(self, event: Event) -> None:
        """Apply an event."""
        self.kinds, self.last = (*self.kinds, event.kind), event.id
        if event.kind == "snapshot":
            self.tree = event.data
        elif event.kind == "delta":
            self.tree = jsonpatch.apply_patch(self.tree, event.data)

    @property
    def root(self) -> dict[str, object]:
        return cast("dict[str, dict[str, object]]", self.tree)["root"]


def follow(http: httpx.Client, thread: str, client: Client) -> None:
    """Apply the events of a tree that may not have begun yet, to their end."""
    with http.stream("GET", f"/v1/trees/{thread}/events?wait=30") as response:
        assert response.status_code == 200, response.read()
        for event in events_of(response):
            client.take(event)


@pytest.mark.slow
def test_a_run_of_another_process_is_seen_while_it_grows(http: httpx.Client, scripted: ScriptedServer) -> None:
    scripted.responses = dam = at_the_sub_answer()
    client, before = Client(), ""
    with (
        held_elsewhere(dam) as thread,
        http.stream("GET", f"/v1/trees/{thread}/events?wait=10") as response,
    ):
        for event in events_of(response):
            client.take(event)
            if not before and '"score": 2' in json.dumps(client.tree):
                assert (client.root["status"], client.root["answer"]) == ("open", "")
                before = client.last
                dam.opened.set()
    assert (client.kinds[0], set(client.kinds[1:-1]), client.kinds[-1]) == ("snapshot", {"delta"}, "end")
    assert client.tree == http.get(f"/v1/trees/{thread}").json()
    assert client.root["answer"] == CHAIN.answer
    again = watch(http, thread, before)
    assert [event.kind for event in again] == ["snapshot", "end"]  # it has missed changes
    assert again[0].data == client.tree


@pytest.mark.slow
def test_who_comes_back_to_another_server_goes_on(
    settings: Settings, http: httpx.Client, scripted: ScriptedServer, cli: Cli
) -> None:
    thread, client = new_thread(), Client()
    scripted.responses = dam = at_the_sub_answer()
    killed("ask", CHAIN.question, "-c", COLLECTION, "--thread-id", thread, at=dam)
    scripted.responses = None
    with http.stream("GET", f"/v1/trees/{thread}/events?wait=10") as response:
        client.take(next(events_of(response)))
    assert client.root["status"] == "open"
    assert client.tree == http.get(f"/v1/trees/{thread}").json()
    with serving(settings) as address, httpx.Client(base_url=address, timeout=60) as other:
        headers = {"Last-Event-ID": client.last}
        with other.stream("GET", f"/v1/trees/{thread}/events", headers=headers) as response:
            cli("ask", "--resume", "--thread-id", thread, "-c", COLLECTION).ok()
            for event in events_of(response):
                client.take(event)
    assert (client.kinds.count("snapshot"), client.kinds[-1]) == (1, "end")
    assert client.root["answer"] == CHAIN.answer
    assert client.tree == http.get(f"/v1/trees/{thread}").json()


def test_who_waits_sees_a_question_that_is_asked_later(http: httpx.Client, cli: Cli) -> None:
    thread, client = new_thread(), Client()
    with ThreadPoolExecutor(1) as pool:
        following = pool.submit(follow, http, thread, client)
        cli("ask", CHAIN.question, "-c", COLLECTION, "--thread-id", thread).ok()
        following.result()
    assert client.root["answer"] == CHAIN.answer


@pytest.mark.slow
def test_a_tree_of_a_thousand_nodes(settings: Settings, http: httpx.Client) -> None:
    thread = new_thread()
    context = bushy_context("breadth", topk=6, max_rec_depth=4, max_llm_calls=1700, suffices=0.0, seed=3)
    with build_judge_rag(checkpointer=settings.checkpoint_url, context=context) as graph:
        graph.invoke("q", {"configurable": {"thread_id": thread}})
    tree = SearchTree.from_json(http.get(f"/v1/trees/{thread}").text)
    assert tree.sub_runs + sum(tree.verdict_counts.values()) >= 1000
    assert http.get(f"/v1/trees/{thread}?format=html").status_code == 200
    snapshot, end = watch(http, thread)
    assert snapshot.data == http.get(f"/v1/trees/{thread}").json()
    assert watch(http, thread, snapshot.id) == [end]


@pytest.mark.slow
def test_who_leaves_frees_everything(settings: Settings, scripted: ScriptedServer) -> None:
    scripted.responses = dam = at_the_sub_answer()
    app = create_app(settings)
    trees = app.state.served.trees
    with serving_app(app) as address, httpx.Client(base_url=address, timeout=60) as http, held_elsewhere(dam) as thread:
        for _ in range(2):
            with http.stream("GET", f"/v1/trees/{thread}/events?wait=10") as response:
                events = events_of(response)  # which closes the connection as soon as it is dropped
                assert next(events).kind == "snapshot"
                assert trees.watched == 1
        deadline = time.monotonic() + 60
        while trees.watched and time.monotonic() < deadline:
            http.get("/v1/models")
        assert trees.watched == 0
        dam.opened.set()


def test_a_finished_tree_is_a_snapshot_and_the_end(http: httpx.Client, thread: str) -> None:
    snapshot, end = watch(http, thread)
    assert (snapshot.kind, end.kind) == ("snapshot", "end")
    assert snapshot.data == http.get(f"/v1/trees/{thread}").json()
    assert end.data == {"status": "finished", "answer_status": "answered", "answer": "40 mm"}


def test_who_has_the_tree_already_gets_no_snapshot_again(http: httpx.Client, thread: str) -> None:
    snapshot, end = watch(http, thread)
    assert watch(http, thread, snapshot.id) == [end]
    done = http.get(f"/v1/trees/{thread}/events", headers={"Last-Event-ID": end.id})
    assert (done.status_code, done.content) == (204, b"")


@pytest.mark.parametrize("last", ["7-" + "0" * 32, "7-" + "0" * 32 + "-end"])
def test_who_has_another_tree_gets_a_new_snapshot(http: httpx.Client, thread: str, last: str) -> None:
    snapshot, end = watch(http, thread, last)
    assert (snapshot.kind, end.kind) == ("snapshot", "end")
    assert snapshot.id.startswith("8-")


@pytest.mark.parametrize("last", ["x", "-1-" + "0" * 32, "9" * 13 + "-" + "0" * 32, "٣-" + "0" * 32])
def test_an_id_that_is_none_counts_as_none(http: httpx.Client, thread: str, last: str) -> None:
    with http.stream("GET", f"/v1/trees/{thread}/events", headers={"Last-Event-ID": last.encode()}) as response:
        assert [event.kind for event in events_of(response)] == ["snapshot", "end"]
