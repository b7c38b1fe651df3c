"""The list of conversations, and what each holds."""

from __future__ import annotations

from contextlib import closing

import httpx
import pytest

from judgetree.app.server.keys.book import KeyBook
from judgetree.app.server.keys.tables import KeyTables
from judgetree.app.server.serving.options import ServerOptions
from judgetree.modules.settings import Settings
from tests.app.conftest import COLLECTION
from tests.app.server.conversations.asking import answered, as_holder, get, path_of
from tests.app.server.serving import serving
from tests.app.talks import FIRST, PAINT, THICKNESS

ODD = ["a/b", "a/history", "../..", "日本語 ☃", "50% & more?#", "monday\n", "ü" * 512]


def test_the_list_is_paged_the_last_updated_first(http: httpx.Client) -> None:
    for name in ("one", "two", "three"):
        answered(http, name, FIRST)
    answered(http, "one", PAINT)
    whole = get(http, "/v1/conversations")
    assert [each["name"] for each in whole["data"]] == ["one", "three", "two"]
    assert whole["data"][0] | {"created_at": "", "updated_at": ""} == {
        "name": "one", "title": FIRST, "turns": 2, "branches": ["main"], "active_branch": "main",
        "collection": COLLECTION, "created_at": "", "updated_at": "",
    }  # fmt: skip
    part = get(http, "/v1/conversations", limit=1, offset=1)
    assert ([each["name"] for each in part["data"]], part["total"]) == (["three"], 3)
    assert get(http, "/v1/conversations", offset=3)["data"] == []


def test_calls_of_programs_are_hidden_unless_they_are_asked_for(http: httpx.Client) -> None:
    answered(http, "chat-one", FIRST)
    body = {"model": f"{COLLECTION}/judge", "messages": [{"role": "user", "content": FIRST}]}
    for more in ({}, {"chat_id": "two"}):
        assert http.post("/v1/chat/completions", json=body | more).status_code == 200
    shown, whole = get(http, "/v1/conversations"), get(http, "/v1/conversations", unnamed=True)
    assert ([each["name"] for each in shown["data"]], shown["total"], shown["hidden"]) == (["two", "chat-one"], 2, 1)
    assert (len(whole["data"]), whole["total"], whole["hidden"]) == (3, 3, 0)
    assert get(http, path_of(whole["data"][1]["name"]))["turns"][0]["query"] == FIRST


def test_a_conversation_has_all_branches_and_its_history_one(http: httpx.Client) -> None:
    first = answered(http, "one", FIRST)["turn"]
    second = answered(http, "one", THICKNESS)["turn"]
    other = answered(http, "one", PAINT, parent_turn_id=first["turn_id"])["turn"]
    read = get(http, path_of("one"))
    assert read["turns"] == [first, second, other]
    assert {each["collection"] for each in (read, *read["turns"])} == {COLLECTION}
    assert [(each["name"], each["forked_from"], each["turns"]) for each in read["branches"]] == [
        ("main", "", 2),
        ("branch-2", first["turn_id"], 2),
    ]
    assert (read["active_branch"], read["open_turn"]) == ("branch-2", None)
    assert get(http, path_of("one", "history")) == {"active_branch": "branch-2", "turns": [first, other]}


@pytest.mark.parametrize("name", ODD)
def test_any_text_is_a_name(http: httpx.Client, name: str) -> None:
    assert answered(http, name, FIRST)["name"] == name
    assert [each["name"] for each in get(http, "/v1/conversations")["data"]] == [name]
    assert get(http, path_of(name))["name"] == name
    assert len(get(http, path_of(name, "history"))["turns"]) == 1


@pytest.mark.parametrize(
    ("path", "status", "words"),
    [
        (path_of("none"), 404, "There is no conversation 'none'"),
        (path_of("none", "history"), 404, "There is no conversation"),
        (path_of("a\0b"), 400, "NUL"),
        (path_of(" "), 400, "needs a name"),
        (path_of("ü" * 513), 400, "too long: 1026 bytes"),
        (path_of("x" * 1025), 422, "name"),
        ("/v1/conversations/%ff", 400, "UTF-8"),
        ("/v1/conversations/%ed%a0%80", 400, "UTF-8"),
        ("/v1/conversations?limit=0", 422, "limit"),
        ("/v1/conversations?offset=-1", 422, "offset"),
    ],
)
def test_what_is_not_there_and_what_is_no_name(http: httpx.Client, path: str, status: int, words: str) -> None:
    answer = http.get(path)
    assert (answer.status_code, words in answer.json()["error"]["message"]) == (status, True), answer.text


def test_conversations_of_other_callers_do_not_exist(settings: Settings) -> None:
    with closing(KeyTables(settings)) as tables:
        (ada, adas), (bob, bobs) = (KeyBook(tables).add(name, collections=None) for name in ("ada", "bob"))
    options = ServerOptions(needs_keys=True, requests_per_minute=100_000)
    with serving(settings, options) as url, httpx.Client(base_url=url, timeout=60) as http:
        as_holder(http, adas)
        assert answered(http, "monday", FIRST)["name"] == "monday"
        as_holder(http, bobs)
        assert get(http, "/v1/conversations") == {
            "object": "list",
            "data": [],
            "total": 0,
            "hidden": 0,
            "limit": 50,
            "offset": 0,
        }
        for path in (path_of("monday"), path_of("monday", "history"), path_of(f"key:{ada.id}/monday")):
            assert http.get(path).status_code == 404
        assert answered(http, "monday", PAINT)["answer"] == "grey"
        as_holder(http, adas)
        assert [turn["query"] for turn in get(http, path_of("monday"))["turns"]] == [FIRST]
    with serving(settings) as url, httpx.Client(base_url=url, timeout=60) as http:
        names = {each["name"] for each in get(http, "/v1/conversations")["data"]}
        assert names == {f"key:{ada.id}/monday", f"key:{bob.id}/monday"}
