"""The HTML page: without a browser its structure and its locks, with one what a reader sees."""

from __future__ import annotations

import base64
import hashlib
import html
import json
import re
from html.parser import HTMLParser
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.threads.state import JsonScalar
from judgetree.graphs.tree.nodes import ChunkNode, QueryNode
from judgetree.modules.calls.usage import CallRecord
from judgetree.modules.errors import DependencyError
from tests.browser import look_at, needs_browser

ATTACK = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">'\"\u2028&lt;"
CALL = CallRecord(
    call_id="1",
    kind="chat",
    node="judge",
    chunk_id="a",
    model=ATTACK,
    prompt_tokens=1234,
    completion_tokens=56,
    estimated=False,
    cut_off=False,
    seconds=1.5,
    attempts=1,
    cached=False,
    error="",
)


def chunk(name: str, text: str, child: QueryNode | None = None, **metadata: JsonScalar) -> ChunkNode:
    return ChunkNode(chunk_id=name, text=text, metadata={"source": f"{name}.md", **metadata}, child=child)


def sample(text: str = ATTACK) -> SearchTree:
    """Three levels: root, a refused sub-question, and below it an open one."""
    open_query = QueryNode(thread_id="t2", parent_thread_id="t1", depth=2, query="第三层 question?")
    refused = QueryNode(
        thread_id="t1",
        parent_thread_id="t0",
        depth=1,
        query="Who wrote 《红楼梦》?",
        answer="I cannot answer this question.",
        status="finished",
        answer_status="refused",
        chunks=(
            chunk("c", "needle in the depth", open_query, verdict="judged", score=1, reason="deep"),
            chunk("d", "nothing", verdict="cancelled"),
        ),
    )
    root = QueryNode(
        thread_id="t0",
        query=f"Root? {text}",
        answer=text,
        status="finished",
        answer_status="answered",
        evidence=text,
        usage=(CALL,),
        chunks=(
            chunk("a", text, refused, verdict="judged", score=1, reason=text, next_query=text, sub_answer=text),
            chunk("b", "曹雪芹 wrote it", verdict="unknown", sub_run_error=text),
        ),
    )
    return SearchTree(root=root, fingerprint={"judge": text})


class Elements(HTMLParser):
    """Every start tag with its attributes, and the text of script and style elements."""

    def __init__(self, page: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.scripts: list[str] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        if self.tags and self.tags[-1][0] == "script" and self.cdata_elem:
            self.scripts.append(data)


def test_page_asks_for_nothing_outside_itself() -> None:
    page = sample().to_html(picture=True)

    tags = Elements(page).tags
    assert not [tag for tag, _ in tags if tag in {"link", "img", "iframe", "object", "base"}]
    assert not [
        value for _, attrs in tags for name, value in attrs.items() if name in {"src", "href", "action"} and value
    ]
    addresses = set(re.findall(r"https?://[^\s\"'<>]+", page))
    assert addresses <= {"http://www.w3.org/2000/svg"}


def test_policy_allows_this_script_and_style_alone() -> None:
    page = sample().to_html()

    policy = next(attrs["content"] for tag, attrs in Elements(page).tags if attrs.get("http-equiv"))
    assert policy is not None
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy
    for tag, directive in (("style", "style-src"), ("script", "script-src")):
        content = re.findall(rf"<{tag}>(.*?)</{tag}>", page, re.DOTALL)
        digest = base64.b64encode(hashlib.sha256(content[0].encode()).digest()).decode()
        assert len(content) == 1
        assert f"{directive} 'sha256-{digest}'" in policy


def test_page_has_no_inline_style_or_handler_that_the_policy_would_block() -> None:
    tags = Elements(sample().to_html(picture=True)).tags

    assert not [name for _, attrs in tags for name in attrs if name == "style" or name.startswith("on")]


@settings(max_examples=50, deadline=None)
@given(st.text() | st.text(st.sampled_from("<>/!-&\"'\u2028scriptSCRIPT$ {}")))
def test_text_never_becomes_markup(text: str) -> None:
    plain, page = (Elements(sample(given).to_html(picture=False)) for given in ("plain", text))

    assert [tag for tag, _ in page.tags] == [tag for tag, _ in plain.tags]
    data = json.loads(page.scripts[0])
    assert data["root"]["chunks"][1]["origin"] == "b.md"


def test_page_holds_the_full_text_of_every_node() -> None:
    long_text = "很长的 text. " * 500
    data = json.loads(Elements(sample(long_text).to_html(picture=False)).scripts[0])

    assert data["root"]["chunks"][0]["text"] == long_text
    assert data["root"]["evidence"] == long_text
    assert data["root"]["chunks"][0]["child"]["chunks"][0]["child"]["query"] == "第三层 question?"
    assert [label["label"] for label in data["verdicts"]] == ["1", "unknown", "cancelled"]


def test_page_without_script_shows_the_tree_as_text() -> None:
    page = sample("x").to_html(picture=False)

    noscript = page[page.index("<noscript>") : page.index("</noscript>")]
    assert html.escape("Who wrote 《红楼梦》?") in noscript


def test_picture_is_left_out_of_large_trees_unless_asked_for() -> None:
    many = tuple(chunk(str(number), "t") for number in range(100))
    tree = SearchTree(root=QueryNode(thread_id="t", query="q", chunks=many))

    assert "<svg" in sample().to_html()
    assert "<svg" not in tree.to_html()
    assert "<svg" in tree.to_html(picture=True)


def test_page_goes_without_picture_when_none_can_be_drawn(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "dot").write_text("#!/bin/sh\nexit 1\n")
    (tmp_path / "dot").chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))

    assert "<svg" not in sample().to_html()
    with pytest.raises(DependencyError):
        sample().to_html(picture=True)


def test_notebook_shows_the_page_in_a_frame_of_its_own() -> None:
    shown = sample()._repr_html_()

    (tag, frame), *_ = Elements(shown).tags
    assert (tag, frame["sandbox"]) == ("iframe", "allow-scripts")
    assert frame["srcdoc"] == sample().to_html()


def elements_of(page: str, folder: Path, *, address: str = "") -> str:
    """The page's elements after its script ran without a word on the console."""
    file = folder / "page.html"
    file.write_text(page, encoding="utf-8")
    look = look_at(file, address)
    assert look.console == []
    return look.elements


def shown_nodes(dom: str) -> list[str]:
    """Classes of the cards in items and lists that are not hidden, in the order of the page."""
    shown, hidden_depth, stack = [], 0, []
    for closing, tag, attributes in re.findall(r"<(/?)(li|ul|details)\b([^>]*)>", dom):
        if closing:
            hidden_depth -= stack.pop()
            continue
        stack.append(bool(re.search(r"\bhidden\b", attributes)))
        hidden_depth += stack[-1]
        if tag == "details" and "card" in attributes and not hidden_depth:
            shown.append(attributes.split('"')[1])
    return shown


@needs_browser
def test_browser_shows_the_tree_and_runs_nothing_of_its_text(tmp_path: Path) -> None:
    dom = elements_of(sample().to_html(), tmp_path)

    assert shown_nodes(dom) == [
        "query card finished",
        "chunk card verdict-1",
        "query card finished",
        "chunk card verdict-1",
        "query card open-thread",
        "chunk card verdict-cancelled",
        "chunk card verdict-unknown",
    ]
    assert "<title>owned</title>" not in dom
    assert not re.search(r"<img\b", dom)
    assert "[refused] I cannot answer this question." in dom
    assert ">7 nodes</output>" in dom


@needs_browser
def test_browser_search_opens_highlights_and_counts_what_matches(tmp_path: Path) -> None:
    dom = elements_of(sample("x").to_html(picture=False), tmp_path, address="#search=NEEDLE")

    assert ">1 of 7 nodes match</output>" in dom
    assert "<mark>needle</mark> in the depth" in dom
    assert shown_nodes(dom) == ["query card finished", "chunk card verdict-1"] * 2


@needs_browser
def test_browser_filters_by_verdict_and_keeps_what_leads_there(tmp_path: Path) -> None:
    dom = elements_of(sample("x").to_html(picture=False), tmp_path, address="#verdict=unknown,cancelled")

    assert ">2 of 7 nodes match</output>" in dom
    assert shown_nodes(dom) == [
        "query card finished",
        "chunk card verdict-1",
        "query card finished",
        "chunk card verdict-cancelled",
        "chunk card verdict-unknown",
    ]
