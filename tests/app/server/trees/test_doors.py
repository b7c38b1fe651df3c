"""Search trees over HTTP: whole, drawn, chunk by chunk, and beside each other."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from urllib.parse import quote
from xml.etree import ElementTree as ET

import httpx
import pytest
from fastapi import Request

from judgetree.app.server.application import create_app
from judgetree.app.server.serving.caller import LOCAL, Caller, caller_of
from judgetree.app.server.trees.bodies import ChunkAnswer, DiffAnswer, TreeAnswer
from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.modules.settings import Settings
from tests.app.conftest import CHAIN, COLLECTION, SUB_QUESTION, Cli
from tests.app.server.serving import serving_app
from tests.app.server.trees.conftest import ask
from tests.app.talks import FIRST
from tests.html_pages import allow_own_script_and_style_alone, ask_nothing_outside

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}


@pytest.fixture
def keyed(settings: Settings) -> Iterator[httpx.Client]:
    """A client of a server on which the header ``X-Key`` names the holder of a key."""

    def caller(request: Request) -> Caller:
        key = request.headers.get("X-Key", "")
        return Caller(key_id=key) if key else LOCAL

    app = create_app(settings)
    app.dependency_overrides[caller_of] = caller
    with serving_app(app) as address, httpx.Client(base_url=address, timeout=60) as client:
        yield client


def test_a_tree_has_three_forms(http: httpx.Client, thread: str, cli: Cli) -> None:
    answers = {form: http.get(f"/v1/trees/{thread}", params={"format": form}) for form in ("json", "svg", "html")}
    assert [answer.status_code for answer in answers.values()] == [200, 200, 200]
    assert SearchTree.from_json(answers["json"].text).root.answer == CHAIN.answer
    assert json.loads(cli("tree", thread, "--json", "-").ok().out) == answers["json"].json()
    TreeAnswer.model_validate(answers["json"].json())
    assert ET.fromstring(answers["svg"].text).tag.endswith("svg")
    assert "sandbox" in answers["svg"].headers["Content-Security-Policy"]
    ask_nothing_outside(answers["html"].text)
    allow_own_script_and_style_alone(answers["html"].text)
    assert {answer.headers["X-Content-Type-Options"] for answer in answers.values()} == {"nosniff"}


def test_browsers_get_pages_and_programs_json(http: httpx.Client, thread: str) -> None:
    for accept, form in [
        (BROWSER["Accept"], "text/html"),
        ("*/*", "application/json"),
        ("image/svg+xml, text/html;q=0.5", "image/svg+xml"),
        ("text/html;q=broken", "application/json"),
    ]:
        assert http.get(f"/v1/trees/{thread}", headers={"Accept": accept}).headers["Content-Type"].startswith(form)


@pytest.mark.parametrize("form", ["json", "svg", "html"])
def test_a_finished_tree_is_sent_once(http: httpx.Client, thread: str, form: str) -> None:
    address = f"/v1/trees/{thread}?format={form}"
    first = http.get(address)
    assert first.headers["Cache-Control"] == "private, no-cache"
    again = http.get(address, headers={"If-None-Match": f'"other", W/{first.headers["ETag"]}'})
    assert (again.status_code, again.content, again.headers["ETag"]) == (304, b"", first.headers["ETag"])


def test_a_chunk_of_the_thread_or_of_its_tree(http: httpx.Client, thread: str) -> None:
    tree = SearchTree.from_json(http.get(f"/v1/trees/{thread}").text)
    own = tree.root.chunks[0]
    got = ChunkAnswer.model_validate(http.get(f"/v1/trees/{thread}/chunks/{own.chunk_id}").json())
    assert (got.rank, own.rank) == (1, 0), "answers count from 1"
    assert (got.text, got.score, got.next_query, got.sub_answer) == (own.text, 1, SUB_QUESTION, CHAIN.answer)
    (sub_run,) = own.sub_runs
    deep = http.get(f"/v1/trees/{got.next_thread_id}/chunks/{sub_run.chunks[0].chunk_id}").json()
    assert (deep["thread_id"], deep["score"]) == (sub_run.thread_id, 2)
    assert http.get(f"/v1/trees/{thread}/chunks/none").json()["error"]["code"] == "chunk_not_found"


def test_a_chunk_s_page_renders_its_markdown(http: httpx.Client, thread: str) -> None:
    chunk = SearchTree.from_json(http.get(f"/v1/trees/{thread}").text).root.chunks[0]
    assert chunk.text == "# Norm A\n\nNorm A names the drum."
    page = http.get(f"/v1/trees/{thread}/chunks/{chunk.chunk_id}", headers=BROWSER)
    assert page.headers["Content-Type"] == "text/html; charset=utf-8"
    assert "<h2>Norm A</h2>\n<p>Norm A names the drum.</p>" in page.text
    allow_own_script_and_style_alone(page.text)


def test_two_trees_beside_each_other(http: httpx.Client, thread: str) -> None:
    other = ask(http, FIRST)
    got = http.get(f"/v1/trees/{thread}/diff/{other}")
    assert DiffAnswer.model_validate(got.json()).threads == [thread, other]
    assert got.json()["first"]["kind"] == "question"
    page = http.get(f"/v1/trees/{thread}/diff/{other}", headers=BROWSER)
    assert "First divergence" in page.text
    assert http.get(f"/v1/trees/{thread}/diff/none").status_code == 404


def test_trees_belong_to_whom_their_conversation_belongs(keyed: httpx.Client, cli: Cli) -> None:
    cli("ask", FIRST, "-c", COLLECTION, "--thread-id", "alone").ok()
    own = ask(keyed, **{"X-Key": "k1"})
    sub_run = keyed.get(f"/v1/trees/{own}", headers={"X-Key": "k1"}).json()["root"]["chunks"][0]["sub_runs"][0]
    for thread, seen_by in [(own, ("k1", "")), (sub_run["thread_id"], ("k1", "")), ("alone", ("",))]:
        for key in ("k1", "k2", "k", ""):
            for path in ("", "/events", f"/diff/{thread}"):
                expected = 200 if key in seen_by else 404
                got = keyed.get(f"/v1/trees/{thread}{path}", headers={"X-Key": key})
                assert got.status_code == expected, (thread, key, path)
    hidden = keyed.get(f"/v1/trees/{own}", headers={"X-Key": "k2"}).json()
    absent = keyed.get("/v1/trees/none", headers={"X-Key": "k2"}).json()
    assert str(hidden).replace(own, "none") == str(absent)


def test_threads_that_are_no_searches_are_no_trees(http: httpx.Client) -> None:
    ask(http, **{"X-Chat-Id": "monday"})
    for thread in ("conversation:monday", "judgetree:store", "none"):
        assert http.get(f"/v1/trees/{thread}").status_code == 404


@pytest.mark.parametrize(
    "thread", ["a\x00b", "../../etc/passwd", "x" * 1025, "汉" * 400, "a/events", "%", "'; --", "\u202e"]
)
def test_a_hostile_thread_is_refused_or_unknown(http: httpx.Client, thread: str) -> None:
    for path in ("", "/events", "/chunks/c", "/diff/d"):
        got = http.get(f"/v1/trees/{quote(thread, safe='')}{path}")
        assert got.status_code in (400, 404, 422), (path, got.text)
        assert got.json()["error"]["message"]
    assert http.get(f"/v1/trees/t/chunks/{quote(thread, safe='')}").status_code in (400, 404, 422)


def test_a_thread_with_a_slash_has_a_tree(settings: Settings, cli: Cli) -> None:
    cli("ask", FIRST, "-c", COLLECTION, "--thread-id", "a/b c").ok()
    with serving_app(create_app(settings)) as address, httpx.Client(base_url=address, timeout=60) as http:
        tree = SearchTree.from_json(http.get("/v1/trees/a%2Fb%20c").text)
        assert tree.root.thread_id == "a/b c"
        assert http.get(f"/v1/trees/a%2Fb%20c/chunks/{tree.root.chunks[0].chunk_id}").status_code == 200


def test_a_server_without_a_store_knows_no_tree_and_makes_none(http: httpx.Client, settings: Settings) -> None:
    assert http.get("/v1/trees/none").status_code == 404
    assert not Path(settings.checkpoint_url.removeprefix("sqlite:///")).exists()
