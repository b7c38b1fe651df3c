"""Web searches over real HTTP: what comes of results, and of everything that is none."""

from __future__ import annotations

import asyncio
import gzip
import logging
import socket
import threading
from collections.abc import Iterator

import pytest
from langchain_core.documents import Document

from judgetree.modules.errors import SearchArgumentError, SettingsError
from judgetree.modules.retriever.web import MAX_REPLY_BYTES, SearxngSearch, WebSearch
from tests.modules.searxng_server import SearxngServer, serve_searxng

ADA = {"url": "https://ada.example/life", "title": "Ada Lovelace", "content": "She was born in 1815.", "score": 2.5}


@pytest.fixture
def searxng() -> Iterator[SearxngServer]:
    with serve_searxng() as server:
        yield server


def search(engine: WebSearch, query: str = "q", *, limit: int = 10) -> list[Document]:
    return asyncio.run(engine.search(query, limit=limit))


def found(server: SearxngServer, *results: object, limit: int = 10) -> list[Document]:
    server.finds(results)
    return search(SearxngSearch(server.url), limit=limit)


# --- what is asked ---


def test_question_is_sent_as_it_is(searxng: SearxngServer) -> None:
    search(SearxngSearch(searxng.url), "C++ & 汉字? #1 100%\ud83d")
    assert searxng.asked == [("/search", {"q": ["C++ & 汉字? #1 100%?"], "format": ["json"]})]


def test_language_and_categories_are_sent_where_they_are_set(searxng: SearxngServer) -> None:
    search(SearxngSearch(f"{searxng.url}/", language="zh-CN", categories=["general", "science"]))
    path, asked = searxng.asked[0]
    assert (path, asked["language"], asked["categories"]) == ("/search", ["zh-CN"], ["general,science"])


def test_instance_below_a_path_is_asked_there(searxng: SearxngServer) -> None:
    search(SearxngSearch(f"{searxng.url}/searxng"))
    assert searxng.asked[0][0] == "/searxng/search"


@pytest.mark.parametrize("url", ["", "127.0.0.1:8080", "ftp://host", "http://", "http://[", "http://host:port"])
def test_address_that_is_none_is_refused_at_once(url: str) -> None:
    with pytest.raises(SettingsError, match=r"JUDGETREE_SEARXNG_URL.*such as http://127\.0\.0\.1:8080"):
        SearxngSearch(url)


# --- what is found ---


def test_result_becomes_a_passage_with_its_address(searxng: SearxngServer) -> None:
    (document,) = found(searxng, ADA)
    assert document.page_content == "Ada Lovelace\nShe was born in 1815."
    assert len(document.metadata.pop("chunk_id")) == 64
    assert document.metadata == {"source": "https://ada.example/life", "title": "Ada Lovelace", "retrieval_score": 2.5}


def test_results_keep_their_order_up_to_the_limit_and_come_once(searxng: SearxngServer) -> None:
    results = [{"url": f"https://{name}.example", "title": name} for name in "cabaed"]
    assert [document.page_content for document in found(searxng, *results, limit=4)] == ["c", "a", "b", "e"]


def test_same_text_at_two_addresses_is_two_passages(searxng: SearxngServer) -> None:
    documents = found(searxng, ADA, {**ADA, "url": "https://mirror.example"})
    assert len({document.metadata["chunk_id"] for document in documents}) == 2


@pytest.mark.parametrize(
    ("result", "text"),
    [
        ({"title": "T", "content": ""}, "T"),
        ({"title": None, "content": "C"}, "C"),
        ({"title": "T"}, "T"),
        ({"title": "T", "content": "C", "score": None}, "T\nC"),
    ],
)
def test_what_a_result_lacks_is_left_out(searxng: SearxngServer, result: dict[str, object], text: str) -> None:
    (document,) = found(searxng, {"url": "https://a.example", **result})
    assert document.page_content == text
    assert "retrieval_score" not in document.metadata


@pytest.mark.parametrize("result", [{"title": "no address"}, {"url": None, "title": "x"}, {"url": "https://a.example"}])
def test_result_that_nobody_could_cite_is_left_out(searxng: SearxngServer, result: object) -> None:
    assert found(searxng, result) == []


def test_nothing_found_says_who_did_not_answer(searxng: SearxngServer, caplog: pytest.LogCaptureFixture) -> None:
    assert found(searxng) == []
    assert not caplog.records
    searxng.finds([], unresponsive_engines=[["google", "timeout"]])
    with caplog.at_level(logging.WARNING):
        assert search(SearxngSearch(searxng.url)) == []
    assert "google" in caplog.text


@pytest.mark.parametrize(
    ("marked_up", "text"),
    [
        ("<b>Ada</b>&#39;s <em class='x'>notes</em> &amp; more", "Ada's notes & more"),
        ("one<br/>two<p>three", "one two three"),
        ("un<wbr>broken", "unbroken"),
        ("  many \n\t blanks ", "many blanks"),
        ("a < b & c > d", "a < b & c > d"),
        ("write &lt;b&gt; for bold", "write <b> for bold"),
        ("1 <3 you", "1 <3 you"),
        ("nul\x00 gone", "nul gone"),
    ],
)
def test_markup_of_titles_and_quotes_is_made_text(searxng: SearxngServer, marked_up: str, text: str) -> None:
    (document,) = found(searxng, {"url": "https://a.example", "title": marked_up, "content": marked_up})
    assert (document.metadata["title"], document.page_content) == (text, f"{text}\n{text}")


@pytest.mark.parametrize("odd", ["&#0;", "&#xd800;", "&#x110000;", "\x00", "\ud83d", "<a " * 5000])
def test_whatever_a_quote_holds_it_can_be_stored(searxng: SearxngServer, odd: str) -> None:
    (document,) = found(searxng, {"url": "https://a.example", "title": "t", "content": f"x{odd}y"})
    assert "\x00" not in document.page_content
    assert document.page_content.encode()


@pytest.mark.parametrize("limit", [0, -1])
def test_limit_below_one_is_refused(searxng: SearxngServer, limit: int) -> None:
    with pytest.raises(SearchArgumentError, match=f"limit={limit}"):
        found(searxng, ADA, limit=limit)
    assert searxng.asked == []


# --- what is no answer ---


def failure(url: str, *, timeout_s: float = 10) -> str:
    with pytest.raises(SettingsError) as caught:
        search(SearxngSearch(url, timeout_s=timeout_s))
    return str(caught.value)


@pytest.mark.parametrize(
    ("status", "remedy"),
    [
        (403, "formats: [html, json]"),
        (404, "without /search"),
        (429, "limiter"),
        (400, "language and categories"),
        (500, "the log of SearXNG"),
    ],
)
def test_refusal_is_told_with_address_and_remedy(searxng: SearxngServer, status: int, remedy: str) -> None:
    searxng.status = status
    message = failure(searxng.url)
    assert f"SearXNG at {searxng.url}/search answered HTTP {status}" in message
    assert remedy in message


def test_redirect_is_told_and_not_followed(searxng: SearxngServer) -> None:
    searxng.status, searxng.headers = 301, {"Location": "https://elsewhere.example/search"}
    assert "HTTP 301, go to https://elsewhere.example/search" in failure(searxng.url)


def test_nobody_there_is_told() -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        url = f"http://ada:hunter2@127.0.0.1:{free.getsockname()[1]}"
        message = failure(url)
    assert "cannot be reached" in message
    assert "SearXNG at http://127.0.0.1" in message
    assert "hunter2" not in message


def test_silence_is_told_when_the_time_is_over(searxng: SearxngServer) -> None:
    searxng.keeps_silent = threading.Event()
    try:
        assert "did not answer within 0.1 s" in failure(searxng.url, timeout_s=0.1)
    finally:
        searxng.keeps_silent.set()


@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"<html>Search</html>",
        b"[]",
        b"{}",
        b'{"results": null}',
        b'{"results": {}}',
        b'{"results": ["text"]}',
        b'{"results": [{"url": 5}]}',
        b'{"results": [{"url": "https://a.example", "title": ["t"]}]}',
        b'{"results": [{"url": "https://a.example", "title": "t", "score": "high"}]}',
        b'{"results": [{"url": "https://a.example", "title": "t", "score": NaN}]}',
        b'{"results": [{"url": "\xff"}]}',
        b'{"results": [',
        b"[" * 100_000,
    ],
)
def test_reply_of_another_shape_is_told(searxng: SearxngServer, body: bytes) -> None:
    searxng.body = body
    message = failure(searxng.url)
    assert f"SearXNG at {searxng.url}/search did not answer with search results" in message
    assert len(message) < 500


def test_reply_without_end_is_cut_off_and_told(searxng: SearxngServer) -> None:
    searxng.body = b" " * (2 * MAX_REPLY_BYTES)
    assert f"more than {MAX_REPLY_BYTES:,} bytes" in failure(searxng.url)


def test_packed_reply_is_refused(searxng: SearxngServer) -> None:
    searxng.body, searxng.headers = gzip.compress(b"{}"), {"Content-Encoding": "gzip"}
    assert "answers packed (gzip)" in failure(searxng.url)
