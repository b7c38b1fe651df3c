"""The page of a conversation: what it carries, and in a browser what a reader sees."""

from __future__ import annotations

import html
import json
import os
import re
from pathlib import Path

import pytest

from judgetree.graphs.drawing.html import csp_hash
from tests.browser import elements_of, needs_browser
from tests.graphs.conversation.drawing.talks import conversation, long_talk
from tests.html_pages import part, unpacked


def test_page_carries_every_turn_and_each_text_of_its_trees_once() -> None:
    page = conversation("x").to_html(picture=False)
    index, trees, texts = part(page, "index"), part(page, "trees"), unpacked(part(page, "texts"))
    assert isinstance(index, dict)
    assert isinstance(trees, list)
    assert [branch["turns"] for branch in index["branches"]] == [[0, 1, 2], [3, 4]]
    assert [turn["status"] for turn in index["turns"]] == ["answered", "answered", "refused", "answered", "open"]
    assert index["turns"][1]["sources"][0]["finder"] == 0
    assert [tree is None for tree in trees] == [False, True, True, True, False]
    root = unpacked(trees[0])
    assert texts[root["chunks"][0]["sub_runs"][0]["chunks"][0]["text"]] == "deep down: needle x"
    assert len(texts) == len(set(texts)) == 4


def acting(page: str, action: str) -> str:
    """The page with a reader's action at the end of its script, which its policy then allows."""
    (script,) = re.findall(r"<script>(.*?)</script>", page, re.DOTALL)
    changed = f"{script}\n{action}"
    return page.replace(script, changed).replace(csp_hash(script), csp_hash(changed))


def shown_turns(dom: str) -> list[str]:
    """Questions of the turns that are not hidden, in the order of the page."""
    dom = re.sub(r"</?mark>", "", dom[dom.index('<main id="branches">') :])
    card = r'<li(?: class="")?( hidden="")?><details class="turn card.*?<span class="title">(.*?)</span>'
    cards = re.findall(card, dom, re.DOTALL)
    return [html.unescape(query) for hidden, query in cards if not hidden]


@needs_browser
@pytest.mark.slow
def test_browser_lists_the_turns_by_branch_and_runs_nothing_of_their_text(tmp_path: Path) -> None:
    dom = elements_of(conversation().to_html(), tmp_path, "#turn=main-1")
    assert [query.split("?")[0] for query in shown_turns(dom)] == [
        "First",
        "And it",
        "磨坊在哪里",
        "The weather",
        "Open",
    ]
    assert ">5 turns</output>" in dom
    assert '<span class="badge">active</span>' in dom
    assert "from turn 1 of main</a>" in dom
    assert "<title>owned</title>" not in dom
    assert not re.search(r"<img\b", dom)


@needs_browser
@pytest.mark.slow
def test_browser_opens_a_turn_to_its_sources_and_its_whole_search_tree(tmp_path: Path) -> None:
    page = acting(conversation("x").to_html(picture=False), "TURNS[2].card.open = true;")
    dom = elements_of(page, tmp_path, "#turn=main-1")
    first, refused = dom.index('<div class="body">'), dom.index("磨坊在哪里?</span>")
    opened = dom[first:refused]
    assert "<dt>answer</dt><dd>x</dd>" in opened
    for seen in ("weir.md", "Search tree", "Searched?", "needle x", "第二层?"):
        assert seen in opened
    assert '<h3>Search tree</h3><p class="faint">gone</p>' in dom[refused:]
    assert dom.count('<div class="body">') - opened.count('<div class="body">') == 1, "the other turns are closed"


@needs_browser
@pytest.mark.slow
def test_browser_opens_the_turn_that_is_clicked_in_the_picture(tmp_path: Path) -> None:
    click = 'document.querySelector("#t1 text").dispatchEvent(new MouseEvent("click", { bubbles: true }));'
    dom = elements_of(acting(conversation("x").to_html(picture=True), click), tmp_path)
    (current,) = re.findall(r'<details class="turn card ([\w-]+) current" open="">', dom)
    assert current == "from-history"
    assert "<dt>stands alone</dt><dd>Where is it? x</dd>" in dom
    assert ">found by turn 1</a>" in dom


@needs_browser
@pytest.mark.slow
def test_browser_finds_turns_by_text_and_by_how_they_were_answered(tmp_path: Path) -> None:
    found = {
        ("weir.md", "", False): ["First? x", "And it?"],
        ("堰", "", False): ["And it?"],
        ("where IS it", "", False): ["And it?"],
        ("NEEDLE", "", False): [],
        ("NEEDLE", "", True): ["First? x"],
        ("", "refused", False): ["磨坊在哪里?"],
        ("", "open", False): ["Open? x"],
        ("weir.md", "history", False): ["And it?"],
        ("", "", False): ["First? x", "And it?", "磨坊在哪里?", "The weather?", "Open? x"],
    }
    searching = f"""
    (async () => {{
      await ready;
      const found = [];
      for (const [term, from, deep] of {json.dumps(list(found))}) {{
        Object.assign(control("search"), {{ value: term }});
        Object.assign(control("from"), {{ value: from }});
        Object.assign(control("deep"), {{ checked: deep }});
        await search();
        found.push(TURNS.filter((turn) => turn.item.checkVisibility()).map((turn) => turn.query));
      }}
      document.body.append(make("pre", "found", JSON.stringify(found)));
    }})();"""
    dom = elements_of(acting(conversation("x").to_html(picture=False), searching), tmp_path)
    (seen,) = re.findall(r'<pre class="found">(.*?)</pre>', dom)
    assert json.loads(html.unescape(seen)) == list(found.values())


@needs_browser
@pytest.mark.slow
def test_search_in_the_address_opens_what_it_found_in_a_tree(tmp_path: Path) -> None:
    dom = elements_of(conversation("x").to_html(picture=False), tmp_path, "#search=deep+down&deep=1&turn=main-1")
    assert shown_turns(dom) == ["First? x", "Open? x"]
    assert ">2 of 5 turns</output>" in dom
    assert "<pre><mark>deep down</mark>: needle x</pre>" in dom


@needs_browser
@pytest.mark.slow
def test_page_of_five_hundred_turns_is_made_and_searched_within_seconds(tmp_path: Path) -> None:
    tree = long_talk(500)
    started = sum(os.times()[:2])
    page = tree.to_html()
    assert sum(os.times()[:2]) - started < 5, "CPU seconds of this process"
    assert len(page) < 5_000_000
    dom = elements_of(page, tmp_path, "#search=text+of+r499&deep=1&turn=main-499")
    assert ">1 of 500 turns</output>" in dom
    assert "<mark>text of r499</mark>" in dom
