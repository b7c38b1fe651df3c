"""Replies that are worse than they look, as ``ask``, its files and the pictures of a tree tell them."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from judgetree.app.scripted.answers import ChatReply
from judgetree.app.scripted.server import ScriptedServer
from judgetree.app.scripted.wire import ReceivedRequest
from judgetree.graphs.drawing.words import caveat_lines
from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.tree.nodes import QueryNode
from judgetree.modules.caveats.kinds import CAVEAT_KINDS, CAVEATS
from tests.app.conftest import CHAIN, COLLECTION, Cli, new_thread
from tests.call_records import call_record

WORDS = Path(__file__).parents[3] / "app/server/page/words"


def test_ask_prints_a_line_and_its_json_and_tree_have_it(cli: Cli, home: Path, scripted: ScriptedServer) -> None:
    def reply(request: ReceivedRequest) -> ChatReply | None:
        return ChatReply(text="", reasoning="40 mm") if request.prompt.kind == "read" else None

    scripted.responses = reply
    thread, page = new_thread(), home / "tree.html"
    done = cli("ask", CHAIN.question, "-c", COLLECTION, "--system", "naive", "--thread-id", thread, "--html", str(page))
    assert (done.status, done.out) == (0, "40 mm\n")
    told = f"1 thinking-only reply: {CAVEATS['only_thinking'].sentence} {CAVEATS['only_thinking'].remedy}"
    assert done.err.replace("\n", " ").count(told) == 1
    again = json.loads(cli("ask", "--resume", "--thread-id", thread, "--json").out)
    assert again["caveats"] == {"only_thinking": 1}, "a finished thread keeps them"
    assert again["tree"]["root"]["usage"][-1]["caveats"] == ["only_thinking"]
    assert f"! 1 thinking-only reply: {CAVEATS['only_thinking'].sentence}"[:60] in cli("tree", thread).out
    assert "thinking-only reply" in cli("calls", thread).out
    assert CAVEATS["only_thinking"].sentence in page.read_text(encoding="utf-8")


def test_a_model_that_declines_refuses_with_its_reason(cli: Cli, home: Path, scripted: ScriptedServer) -> None:
    reason = "This is against my rules."
    scripted.responses = lambda request: ChatReply(refusal=reason) if request.prompt.kind == "read" else None
    thread = new_thread()
    asked = cli("ask", CHAIN.question, "-c", COLLECTION, "--system", "naive", "--thread-id", thread, "--json")
    document = json.loads(asked.out)
    assert (document["answer"], document["status"]) == (reason, "refused")
    assert document["caveats"] == {"declined": 1}
    assert "declined reply (This is" in cli("calls", thread).out


@pytest.mark.parametrize("kind", CAVEAT_KINDS)
def test_every_kind_is_drawn_with_its_sentence(kind: str) -> None:
    marked = call_record(cut_off=True) if kind == "reply_cut" else call_record(caveats=[kind])
    tree = SearchTree(root=QueryNode(thread_id="t", query="q", answer="a", status="finished", usage=(marked,)))
    assert tree.caveats == {kind: 1}
    (line,) = caveat_lines(tree.caveats)
    assert line in tree.to_text(width=400)
    assert line in tree.to_html(picture=False).replace("\\u0026", "&")
    assert CAVEATS[kind].noun in tree.to_dot()  # type: ignore[index]
    assert kind in tree.to_graphml()
    assert SearchTree.from_json(tree.to_json()) == tree


def test_a_tree_without_caveats_is_drawn_as_ever() -> None:
    usual = SearchTree(root=QueryNode(thread_id="t", query="q", answer="a", status="finished", usage=(call_record(),)))
    assert usual.caveats == {}
    assert "!" not in usual.to_text()
    assert "caveat" not in usual.to_json() + usual.to_graphml()


def test_the_web_page_has_the_same_sentences() -> None:
    en, zh = ((WORDS / f"{language}.js").read_text(encoding="utf-8") for language in ("en", "zh"))
    for kind, caveat in CAVEATS.items():
        assert f'"caveat.{kind}": {json.dumps(caveat.sentence)}' in en
        assert f'"caveat.{kind}": "' in zh
