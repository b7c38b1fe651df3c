"""The sources of an answer: where they are named, which of them it cites, and who may follow their addresses."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import closing
from typing import Any
from urllib.parse import parse_qs, unquote, urlsplit

import httpx
import pytest
from markdown_it import MarkdownIt

from judgetree.app.scripted.answers import ChatReply
from judgetree.app.scripted.server import ScriptedServer
from judgetree.app.scripted.wire import ReceivedRequest
from judgetree.app.server.chat.sources import link_address, link_text, without_list
from judgetree.app.server.keys.book import KeyBook
from judgetree.app.server.keys.key import StoredKey
from judgetree.app.server.keys.links import LinkSigner, SignedLink
from judgetree.app.server.keys.tables import KeyTables
from judgetree.app.server.serving.options import ServerOptions
from judgetree.modules.reader.prompts import REFUSAL
from judgetree.modules.settings import Settings
from tests.app.conftest import CHAIN, COLLECTION
from tests.app.server.safety.test_admission import clients, key_for
from tests.app.server.serving import serving
from tests.app.talks import FIRST

BROWSER = {"Accept": "text/html,application/xhtml+xml,*/*;q=0.8"}


def answering(scripted: ScriptedServer, text: str) -> None:
    """Let the reader of the whole question say something."""

    def reply(request: ReceivedRequest) -> ChatReply | None:
        is_asked = request.prompt.kind == "read" and request.prompt.query == CHAIN.question
        return ChatReply(text=text) if is_asked else None

    scripted.responses = reply


def ask(http: httpx.Client, question: str = CHAIN.question, **own: object) -> dict[str, Any]:
    body = {"model": f"{COLLECTION}/judge", "messages": [{"role": "user", "content": question}], "judgetree": own}
    answer = http.post("/v1/chat/completions", json=body)
    assert answer.status_code == 200, answer.text
    document: dict[str, Any] = answer.json()
    if thread := document["judgetree"]["thread_id"]:
        assert answer.headers["X-Judgetree-Thread"] == thread
    return document


def message_of(document: dict[str, Any]) -> dict[str, Any]:
    message: dict[str, Any] = document["choices"][0]["message"]
    return message


def test_a_citation_is_where_its_number_stands_and_the_rest_is_told_apart(
    http: httpx.Client, scripted: ScriptedServer
) -> None:
    text = "The drum [1] is thick [7]; so says the norm [1]."
    answering(scripted, text)
    document = ask(http)
    cited = [each["url_citation"] for each in message_of(document)["annotations"]]
    places = [(each["title"], text[each["start_index"] : each["end_index"]]) for each in cited]
    assert places == [("Norm A", "[1]"), ("Norm A", "[1]"), ("Drums", "")]
    assert [each["start_index"] for each in cited] == [9, 44, len(text)]
    assert document["judgetree"]["cited"] == [1]
    listed = message_of(ask(http, sources="both"))["content"]
    assert re.search(r"\n1\. \[Norm A\]\(\S+\)\n2\. \[Drums\]\(\S+\) \(not cited\)\n", listed)


@pytest.mark.parametrize(
    "name",
    [
        "F[40] (*new*)",
        "__init__ of `a`",
        "a\\]b<i>&amp;",
        "~~old~~ | $x$ #1",
        "two\nlines",
        "![a](b)",
        "图 1 [二]",
        "1. a",
    ],
)
@pytest.mark.parametrize(
    "url",
    [
        "https://h.org/Drum_(40)?a=[b]&c=d",
        "http://[::1]:80/a b<c>`d`\\(e",
        "http://h.org?a=)[b](http://c",
        "https://h#) d",
    ],
)
def test_a_listed_source_is_one_link_whatever_its_name_and_address(name: str, url: str) -> None:
    line = f"1. [{link_text(name)}]({link_address(url)}) (not cited)"
    inline = next(each for each in MarkdownIt("commonmark").parse(line) if each.type == "inline")
    opened, *texts, closed, rest = inline.children or []
    assert (opened.type, closed.type, rest.content) == ("link_open", "link_close", " (not cited)")
    assert {each.type for each in texts} <= {"text", "text_special"}
    assert "".join(each.content for each in texts) == " ".join(name.split())
    assert unquote(str(opened.attrs["href"])) == url
    assert without_list(f"40 mm\n\nSources:\n{line}") == "40 mm"


@pytest.mark.parametrize("server", ["annotations", "markdown", "both", "none"])
def test_the_server_says_where_sources_are_named_and_a_request_may_say_otherwise(
    settings: Settings, server: str
) -> None:
    options = ServerOptions(requests_per_minute=1_000_000, sources=server)  # type: ignore[arg-type]
    with serving(settings, options) as url, httpx.Client(base_url=url, timeout=60) as http:
        for chosen, own in ((server, {}), ("both", {"sources": "both"}), ("none", {"sources": "none"})):
            message = message_of(ask(http, FIRST, **own))
            assert bool(message["annotations"]) == (chosen in ("annotations", "both"))
            assert ("Sources:" in message["content"]) == (chosen in ("markdown", "both"))


def test_a_refusal_has_no_sources(http: httpx.Client, scripted: ScriptedServer) -> None:
    answering(scripted, REFUSAL)
    document = ask(http, sources="both")
    assert document["judgetree"]["status"] == "refused"
    assert (message_of(document)["annotations"], message_of(document)["content"]) == ([], REFUSAL)


def test_a_stream_names_its_thread_in_a_header(http: httpx.Client) -> None:
    body = {"model": f"{COLLECTION}/judge", "messages": [{"role": "user", "content": FIRST}], "stream": True}
    answer = http.post("/v1/chat/completions", json=body)
    assert http.get(f"/v1/trees/{answer.headers['X-Judgetree-Thread']}").status_code == 200


@pytest.fixture
def keyed(settings: Settings) -> Iterator[httpx.Client]:
    with clients(settings, key_for(settings, "ada"), requests_per_minute=1_000_000) as (http,):
        yield http


def test_a_source_s_address_opens_in_a_browser_without_the_key(keyed: httpx.Client, settings: Settings) -> None:
    document = ask(keyed, FIRST)
    chunk = message_of(document)["annotations"][0]["url_citation"]["url"]
    tree = document["judgetree"]["tree_url"]
    with httpx.Client(headers=BROWSER, timeout=60) as browser:
        page = browser.get(chunk)
        assert (page.status_code, "<p>Norm A names the drum.</p>" in page.text) == (200, True)
        assert browser.get(tree).status_code == 200
        plain = urlsplit(tree)._replace(query="").geturl()
        for refused in (plain, tree.replace("signature=", "signature=0"), chunk.replace("until=1", "until=2")):
            answer = browser.get(refused)
            assert (answer.status_code, answer.headers["Content-Type"]) == (401, "text/html; charset=utf-8")
            assert '<a href="/">' in answer.text
        query = urlsplit(tree).query
        assert browser.get(f"{plain}/events?{query}").status_code == 401, "the signature is of one address"
        assert browser.post(tree).status_code == 401
        with closing(KeyTables(settings)) as tables:
            KeyBook(tables).revoke("ada")
        end = time.monotonic() + 30
        while browser.get(tree).status_code != 401:
            assert time.monotonic() < end, "the link outlives its key"
            time.sleep(0.1)


def test_a_link_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    signer = LinkSigner.of(StoredKey(id="a", name="ada", digest="ab" * 32, created_at=""))
    query = signer.query("/v1/trees/t")
    link = SignedLink.in_query(query.removeprefix("?"))
    assert link is not None
    assert signer.has_signed("/v1/trees/t", link)
    assert not signer.has_signed("/v1/trees/other", link)
    until = int(parse_qs(query[1:])["until"][0])
    monkeypatch.setattr(time, "time", lambda: until + 1)
    assert not signer.has_signed("/v1/trees/t", link)
