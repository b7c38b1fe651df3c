"""An id is refused before anything is written, or names what it was given for, in every picture and after a restart."""

from __future__ import annotations

import sqlite3
import xml.etree.ElementTree as ET
from contextlib import closing
from pathlib import Path

import pytest

from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.session import RagSession
from judgetree.graphs.threads.context import RagContext
from judgetree.modules.errors import UserError
from judgetree.modules.index.index import Index
from judgetree.modules.judge.oracle import GoldFact, OracleJudge
from judgetree.modules.settings import load_settings
from tests.graphs.conversation.talk import CLASS, TalkingLLM, open_conversations
from tests.graphs.fakes import FakeLLM, TableRetriever, chunk
from tests.modules.fake_embeddings import BagOfWordsEmbedder

IDS: dict[str, str] = {
    "blank": " ",
    "long": "a" * 100_000,
    "nul": "a\x00b",
    "surrogate": "a\ud800",
    "lines": "a\nb\r\nc",
    "up": "../../up",
    "root": "/",
    "dots": "..",
    "device": "CON",
    "bidi": "\u202egnp.exe",
    "sql": "'; DROP TABLE checkpoints; --",
    "like": "%_%",
    "format": "%s%n{0}",
    "shell": "$(touch owned) `id`",
    "escape": "a\x1b[2J\x1b]0;owned\x07",
    "markup": "</script><script>alert(1)</script>'\"&",
    "graph": '" ]; owned [label="',
    "option": "--json",
    "none": "None",
    "wide": "🜁\u0301" * 300,
    "namespace": "a|b:c",
}
QUESTION = "Which oil does KS-1 need?"


@pytest.mark.parametrize("thread_id", IDS.values(), ids=IDS)
def test_a_thread_with_a_hostile_id(thread_id: str, tmp_path: Path) -> None:
    retriever = TableRetriever({QUESTION: [chunk(thread_id, "KS-1 needs Vellin.")]})
    judge = OracleJudge({QUESTION: [GoldFact(quote="KS-1 needs Vellin", question=QUESTION)]})
    context = RagContext(reader=FakeLLM(lambda _: "Vellin"), retriever=retriever, judge=judge)
    file = tmp_path / "c.sqlite"
    settings = load_settings(home=tmp_path / "home", checkpoints=f"sqlite:///{file}")
    with RagSession(context=context, settings=settings) as session:
        try:
            result = session.ask(QUESTION, thread_id=thread_id)
        except UserError as error:
            assert len(str(error)) < 1_000
            assert "\x1b" not in str(error)
            assert not _threads(file)
            return
        assert (result.answer, result.thread_id) == ("Vellin", thread_id)
    with RagSession(context=context, settings=settings) as again:
        tree = again.ask(QUESTION, thread_id=thread_id).tree
        assert again.ask(QUESTION, thread_id=thread_id).usage_this_run["llm_calls"] == 0
    assert SearchTree.from_json(tree.to_json()) == tree
    ET.fromstring(tree.to_svg())
    ET.fromstring(tree.to_graphml())
    html = tree.to_html()
    assert "<script>alert" not in html
    assert "\x1b" not in tree.to_text()
    assert sorted(path.name for path in tmp_path.iterdir() if path.name in {"owned", "up"}) == []


@pytest.mark.parametrize("name", IDS.values(), ids=IDS)
def test_a_conversation_with_a_hostile_name(name: str, tmp_path: Path) -> None:
    with open_conversations(tmp_path, TalkingLLM()) as conversations:
        try:
            answer = conversations.conversation(name).ask(CLASS).answer
        except UserError as error:
            assert len(str(error)) < 1_000
            assert "\x1b" not in str(error)
            assert not _threads(tmp_path / "c.sqlite")
            return
        assert answer == "Delta"
    with open_conversations(tmp_path, TalkingLLM()) as conversations:
        talk = conversations.conversation(name)
        assert [turn["answer"] for turn in talk.turns()] == ["Delta"]
        drawn = talk.tree()
        ET.fromstring(drawn.to_svg())
        assert "<script>alert" not in drawn.to_html()
        assert "\x1b" not in drawn.to_text()


@pytest.mark.parametrize("name", IDS.values(), ids=IDS)
def test_a_collection_with_a_hostile_name_is_refused(name: str, tmp_path: Path) -> None:
    if name in {"CON", "None"}:  # names like others, to Milvus
        return
    with pytest.raises(UserError) as refused:
        Index(BagOfWordsEmbedder(), vector_store_name=name, uri=str(tmp_path / "m.db"))
    assert len(str(refused.value)) < 1_000
    assert "\x1b" not in str(refused.value)


def _threads(file: Path) -> list[str]:
    if not file.exists():
        return []
    with closing(sqlite3.connect(file)) as opened:
        if not opened.execute("SELECT 1 FROM sqlite_master WHERE name = 'checkpoints'").fetchone():
            return []
        return [str(row[0]) for row in opened.execute("SELECT DISTINCT thread_id FROM checkpoints")]
