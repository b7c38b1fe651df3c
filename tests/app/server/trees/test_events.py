"""Search trees that grow, as server-sent events."""

from __future__ import annotations

import json
from collections.abc import Iterator
from dataclasses import dataclass

import httpx
import pytest


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
