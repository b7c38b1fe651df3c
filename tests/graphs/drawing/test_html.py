"""The pages of search trees, and what those of conversations share with them; with a browser what a reader sees."""

from __future__ import annotations

import asyncio
import html
import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgetree.graphs.conversation.tree import ConversationTree
from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.threads.state import JsonScalar
from judgetree.graphs.tree.nodes import ChunkNode, QueryNode
from judgetree.modules.addresses import Address
from judgetree.modules.calls.completion import Completion
from judgetree.modules.calls.messages import PLAIN_TEXT
from judgetree.modules.calls.transcript_writer import TranscriptWriter
from judgetree.modules.calls.transcripts import TranscriptPlace
from judgetree.modules.errors import DependencyError
from tests.browser import elements_of, needs_browser
from tests.call_records import call_record
from tests.graphs.conversation.drawing.talks import conversation
from tests.graphs.fakes import answered
from tests.html_pages import Elements, allow_own_script_and_style_alone, ask_nothing_outside, break_dot, part
from tests.random_trees import tree_of

Tree = SearchTree | ConversationTree
ATTACK = "</script><script>document.title='owned'</script><img src=x onerror=\"document.title='owned'\">'\"\u2028&lt;"
CALL = call_record(chunk_id="a", model=ATTACK, prompt_tokens=1234, completion_tokens=56, seconds=1.5)


def chunk(name: str, text: str, child: QueryNode | None = None, **metadata: JsonScalar) -> ChunkNode:
    return ChunkNode(
        chunk_id=name, text=text, metadata={"source": f"{name}.md", **metadata}, sub_runs=(child,) if child else ()
    )


def sample(text: str = ATTACK) -> SearchTree:
    """Three levels: root, a refused sub-question, and below it an open one."""
    open_query = QueryNode(thread_id="t2", parent_thread_id="t1", depth=2, query="第三层 question?")
    refused = answered(
        "t1",
        "Who wrote 《红楼梦》?",
        "I cannot answer this question.",
        chunk("c", "needle in the depth", open_query, verdict="judged", score=1, reason="deep"),
        chunk("d", "nothing", verdict="cancelled"),
        parent_thread_id="t0",
        depth=1,
        answer_status="refused",
    )
    useful = chunk("a", text, refused, verdict="judged", score=1, reason=text, next_query=text, sub_answer=text)
    failed = chunk("b", "曹雪芹 wrote it", verdict="unknown", sub_run_error=text)
    root = answered("t0", f"Root? {text}", text, useful, failed, evidence=text, usage=(CALL,))
    return SearchTree(root=root, fingerprint={"judge": text})


def recorded(folder: Path, tree: SearchTree, said: str = ATTACK) -> SearchTree:
    """The tree with what its call was sent and replied."""
    place = TranscriptPlace(url=Address(f"sqlite:///{folder / 'transcripts.sqlite'}"))
    reply = Completion(text=said, thinking="hm", finish_reason="stop")

    async def write() -> None:
        writer = TranscriptWriter(place, record="full")
        await writer.open()
        writer.keep(CALL, [("system", "Judge."), ("user", said)], PLAIN_TEXT, reply, root="t0", owner="t0")
        await writer.aclose()

    asyncio.run(write())
    return replace(tree, transcripts=place)


both = pytest.mark.parametrize("tree", [sample(), conversation()], ids=["search tree", "conversation"])


@both
def test_page_asks_for_nothing_outside_itself(tree: Tree) -> None:
    ask_nothing_outside(tree.to_html(picture=True))


@both
def test_policy_allows_this_script_and_style_alone(tree: Tree) -> None:
    allow_own_script_and_style_alone(tree.to_html(picture=True))


@pytest.mark.parametrize("tree_of", [sample, conversation])
@settings(max_examples=30)
@given(text=st.text() | st.text(st.sampled_from("<>/!-&\"'\u2028scriptSCRIPT$ {}\n")))
def test_text_never_becomes_markup(tree_of: Callable[[str], Tree], text: str) -> None:
    plain, page = (Elements(tree_of(given).to_html(picture=False)) for given in ("plain", text))

    assert [tag for tag, _ in page.tags] == [tag for tag, _ in plain.tags]
    assert all(json.loads(data) for name, data in page.scripts.items() if name), "data that are not whole JSON"


def test_page_holds_the_full_text_of_every_node() -> None:
    long_text = "很长的 text. " * 500
    data: Any = part(sample(long_text).to_html(picture=False), "tree")

    assert data["root"]["chunks"][0]["text"] == long_text
    assert data["root"]["evidence"] == long_text
    assert data["root"]["chunks"][0]["sub_runs"][0]["chunks"][0]["sub_runs"][0]["query"] == "第三层 question?"
    assert [label["label"] for label in data["verdicts"]] == ["1", "unknown", "cancelled"]


@pytest.mark.parametrize(
    ("tree", "line"), [(sample("x"), "Who wrote 《红楼梦》?"), (conversation("x"), "A: 堰边  (from earlier turns")]
)
def test_page_without_script_shows_the_tree_as_text(tree: Tree, line: str) -> None:
    page = tree.to_html(picture=False)

    noscript = page[page.index("<noscript>") : page.index("</noscript>")]
    assert html.escape(line) in noscript


def test_picture_is_left_out_of_large_trees_unless_asked_for() -> None:
    many = tuple(chunk(str(number), "t") for number in range(100))
    tree = SearchTree(root=QueryNode(thread_id="t", query="q", chunks=many))

    assert "<svg" in sample().to_html()
    assert "<svg" not in tree.to_html()
    assert "<svg" in tree.to_html(picture=True)


@both
def test_page_goes_without_picture_when_none_can_be_drawn(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, tree: Tree
) -> None:
    break_dot(monkeypatch, tmp_path)
    assert "<svg" not in tree.to_html()
    with pytest.raises(DependencyError):
        tree.to_html(picture=True)


@both
def test_notebook_shows_the_page_in_a_frame_of_its_own(tree: Tree) -> None:
    (tag, frame), *_ = Elements(tree._repr_html_()).tags
    assert (tag, frame["sandbox"]) == ("iframe", "allow-scripts")
    assert frame["srcdoc"] == tree.to_html()


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
@pytest.mark.slow
def test_browser_shows_the_tree_and_runs_nothing_of_its_text(tmp_path: Path) -> None:
    dom = elements_of(sample().to_html(), tmp_path)

    assert shown_nodes(dom) == [
        "query card finished leads",
        "chunk card verdict-1 leads",
        "query card finished",
        "chunk card verdict-unknown",
    ]
    assert "<title>owned</title>" not in dom
    assert not re.search(r"<img\b", dom)
    assert "[refused] I cannot answer this question." in dom
    assert ">7 nodes</output>" in dom


@needs_browser
@pytest.mark.slow
def test_browser_search_opens_highlights_and_counts_what_matches(tmp_path: Path) -> None:
    dom = elements_of(sample("x").to_html(picture=False), tmp_path, address="#search=NEEDLE")

    assert ">1 of 7 nodes match</output>" in dom
    assert "<mark>needle</mark> in the depth" in dom
    chain = ["chunk card verdict-1 leads", "query card finished", "chunk card verdict-1"]
    assert shown_nodes(dom) == ["query card finished leads", *chain]


@needs_browser
@pytest.mark.slow
def test_browser_filters_by_verdict_and_keeps_what_leads_there(tmp_path: Path) -> None:
    dom = elements_of(sample("x").to_html(picture=False), tmp_path, address="#verdict=unknown,cancelled")

    assert ">2 of 7 nodes match</output>" in dom
    assert shown_nodes(dom) == [
        "query card finished leads",
        "chunk card verdict-1 leads",
        "query card finished",
        "chunk card verdict-cancelled",
        "chunk card verdict-unknown",
    ]


def test_a_recorded_call_opens_at_its_chunk_to_what_was_sent_and_came(tmp_path: Path) -> None:
    page = recorded(tmp_path, sample()).to_html()
    allow_own_script_and_style_alone(page)
    root: Any = part(page, "tree")
    [call] = root["root"]["chunks"][0]["said"]
    assert call["texts"] == [["system", "Judge."], ["user", ATTACK], ["thinking", "hm"], ["reply", ATTACK]]
    assert root["root"]["said"] == []
    assert all(not chunk["said"] for chunk in part(sample().to_html(), "tree")["root"]["chunks"])  # type: ignore[index]


@needs_browser
@pytest.mark.slow
def test_what_the_judge_was_sent_is_a_fold_of_the_chunk(tmp_path: Path) -> None:
    shown = elements_of(recorded(tmp_path, sample("rapids")).to_html(), tmp_path, address="#search=rapids")
    assert "What the judge was sent and replied (Call 1: judge" in shown


@needs_browser
@pytest.mark.slow
@pytest.mark.parametrize("nodes", [3, 96])
def test_a_picture_that_is_too_small_to_be_read_is_closed_for_the_cards(tmp_path: Path, nodes: int) -> None:
    dom = elements_of(tree_of(nodes).to_html(picture=True), tmp_path)
    assert ('<details class="picture actual-size">' in dom) is (nodes == 96)
    cards = shown_nodes(dom)
    assert sum(each == "query card finished leads" for each in cards) == (1 if nodes == 3 else 4)
    assert sum(each == "query card finished" for each in cards) == (0 if nodes == 3 else 5)  # with nothing below


def test_an_answer_of_several_lines_keeps_them() -> None:
    root = answered("t0", "Root?", "One.\n\n- Two\n- Three", chunk("a", "text"))
    assert '<p class="answer " tabindex="0">One.\n\n- Two\n- Three</p>' in SearchTree(root=root).to_html(picture=False)


@needs_browser
@pytest.mark.slow
def test_a_picture_in_the_output_of_a_notebook_is_not_cut(tmp_path: Path) -> None:
    measure = "document.title = document.querySelector('svg').getBoundingClientRect().width"
    output = f'<meta charset="utf-8"><div style="width: 500px">{tree_of(12).to_svg()}</div><script>{measure}</script>'
    assert "<title>500</title>" in elements_of(output, tmp_path)
