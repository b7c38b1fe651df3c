"""Branches, undone turns and deletions."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import httpx
import pytest

from tests.app.server.conversations.asking import Gate, answered, get, path_of, streaming
from tests.app.talks import FIRST, PAINT, THICKNESS


@pytest.fixture
def forked(http: httpx.Client) -> list[dict[str, object]]:
    """A conversation ``a/b`` with two branches, the second active; its three turns."""
    first = answered(http, "a/b", FIRST)["turn"]
    second = answered(http, "a/b", THICKNESS)["turn"]
    return [first, second, answered(http, "a/b", PAINT, parent_turn_id=first["turn_id"])["turn"]]


def test_branches_are_switched_renamed_and_deleted(http: httpx.Client, forked: list[dict[str, object]]) -> None:
    renamed = http.post(path_of("a/b", "branch"), json={"branch": "branch-2", "new_name": "pa/int"}).json()
    assert renamed["active_branch"] == "pa/int"
    assert http.delete(path_of("a/b", "branches", "pa/int")).status_code == 400  # it is active
    switched = http.post(path_of("a/b", "branch"), json={"branch": "main"}).json()
    assert switched["active_branch"] == "main"
    assert [turn["query"] for turn in get(http, path_of("a/b", "history"))["turns"]] == [FIRST, THICKNESS]
    assert http.delete(path_of("a/b", "branches", "pa/int")).json() == {"deleted_turns": 1}
    assert get(http, path_of("a/b"))["turns"] == forked[:2]


def test_undo_returns_the_turn_it_deletes(http: httpx.Client, forked: list[dict[str, object]]) -> None:
    meant = {"turn_id": forked[2]["turn_id"]}
    undone = http.post(path_of("a/b", "undo"), json=meant)
    assert (undone.status_code, undone.json()) == (200, forked[2])
    assert get(http, path_of("a/b"))["turns"] == forked[:2]
    http.post(path_of("a/b", "branch"), json={"branch": "main"})
    twice = http.post(path_of("a/b", "undo"), json=meant)
    assert (twice.status_code, "not the newest" in twice.text) == (400, True), "another tab deletes no other turn"
    http.post(path_of("a/b", "branch"), json={"branch": "branch-2"})
    refused = http.post(path_of("a/b", "undo"))
    assert (refused.status_code, "nothing to undo" in refused.text) == (400, True)


def test_a_deleted_conversation_is_gone_with_its_trees(http: httpx.Client, forked: list[dict[str, object]]) -> None:
    answered(http, "other", FIRST)
    assert http.delete(path_of("a/b")).status_code == 204
    assert http.get(path_of("a/b")).status_code == 404
    assert http.get(f"/v1/trees/{forked[0]['rag_thread_id']}").status_code == 404
    assert [each["name"] for each in get(http, "/v1/conversations")["data"]] == ["other"]


def test_a_deletion_takes_no_turn_away_that_runs(http: httpx.Client, address: str, gate: Gate) -> None:
    gate.close()
    with (
        streaming(http, "one", FIRST) as events,
        httpx.Client(base_url=address, timeout=60) as other,
        ThreadPoolExecutor() as pool,
    ):
        next(events)
        assert gate.reached.wait(60)
        deleted = pool.submit(other.delete, path_of("one"))
        gate.open()
        assert [*events][-1]["answer"] == "the drum"
        assert deleted.result().status_code == 204
    assert http.get(path_of("one")).status_code == 404


def test_of_two_deletions_that_wait_one_finds_nothing(http: httpx.Client, address: str, gate: Gate) -> None:
    gate.close()
    with (
        streaming(http, "one", FIRST) as events,
        httpx.Client(base_url=address, timeout=60) as other,
        ThreadPoolExecutor() as pool,
    ):
        next(events)
        assert gate.reached.wait(60)
        deleted = [pool.submit(other.delete, path_of("one")) for _ in range(2)]
        gate.open()
        assert [*events][-1]["answer"] == "the drum"
        assert sorted(each.result().status_code for each in deleted) == [204, 404]


@pytest.mark.parametrize(
    ("method", "path", "body", "status", "words"),
    [
        ("DELETE", path_of("none"), None, 404, "no conversation 'none'"),
        ("POST", path_of("none", "undo"), None, 404, "no conversation"),
        ("POST", path_of("none", "branch"), {"branch": "main"}, 404, "no conversation"),
        ("POST", path_of("a/b", "branch"), {"branch": "none"}, 404, "no branch 'none'"),
        ("POST", path_of("a/b", "branch"), {"branch": "main", "new_name": "branch-2"}, 400, "taken"),
        ("POST", path_of("a/b", "branch"), {"branch": "main", "new_name": "a\0"}, 400, "NUL"),
        ("POST", path_of("a/b", "branch"), {}, 422, "branch"),
        ("DELETE", path_of("a/b", "branches", "main"), None, 400, "delete the conversation instead"),
        ("DELETE", path_of("a/b", "branches", "no/ne"), None, 404, "no branch 'no/ne'"),
    ],
)
def test_refused_changes_say_why(
    http: httpx.Client, forked: object, method: str, path: str, body: object, status: int, words: str
) -> None:
    answer = http.request(method, path, json=body)
    assert (answer.status_code, words in answer.json()["error"]["message"]) == (status, True), answer.text
