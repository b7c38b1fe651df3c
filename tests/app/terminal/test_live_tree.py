from __future__ import annotations

import io
import sys

import pytest
from rich.console import Console

from judgetree.app.terminal.live_tree import LiveQuery, LiveTree
from judgetree.app.terminal.watching import GrowingAnswer
from judgetree.graphs.drawing.layout import columns as columns_of
from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.threads.context import RunEvent
from judgetree.graphs.tree.nodes import ChunkNode, QueryNode
from judgetree.modules.calls.growing_text import Delta
from judgetree.modules.reader.prompts import REFUSAL

QUESTION = "Which oil does the pump need?"


def event(kind: str, thread: str = "root", parent: str = "", depth: int = 0, **details: object) -> RunEvent:
    return {"event": kind, "thread_id": thread, "parent_thread_id": parent, "depth": depth, **details}


def new_tree(*events: RunEvent) -> LiveTree:
    tree = LiveTree(LiveQuery(thread_id="root"))
    for each in events:
        tree.apply(each)
    return tree


def drawn(tree: LiveTree, *, columns: int = 80, rows: int = 20) -> list[str]:
    return [line.plain for line in tree.lines(columns=columns, rows=rows)]


RETRIEVED = event("chunks", query=QUESTION, chunk_ids=["x", "y", "z"])
JUDGED = [
    event("verdict", chunk_id="x", verdict="judged", score=1),
    event("verdict", chunk_id="y", verdict="unknown", score=None),
    event("verdict", chunk_id="z", verdict="cancelled", score=None),
]
PLANNED = event("sub_run_planned", chunk_id="x", next_query="What class is the pump?", next_rag_thread_id="sub")
SUB_CHUNKS = event("chunks", "sub", "root", 1, query="What class is the pump?", chunk_ids=["v"])


def test_verdicts_stand_in_the_order_of_the_chunks() -> None:
    assert drawn(new_tree(RETRIEVED)) == [f"{QUESTION}  [… … …]"]
    assert drawn(new_tree(RETRIEVED, *reversed(JUDGED))) == [f"{QUESTION}  [1 ? ×]"]


def test_a_sub_question_hangs_below_with_its_answer() -> None:
    tree = new_tree(RETRIEVED, *JUDGED, PLANNED, SUB_CHUNKS)
    assert drawn(tree)[1] == "└─ What class is the pump?  […]"
    tree.apply(event("answer", "sub", "root", 1, answer="Delta", status="answered"))
    assert drawn(tree)[1] == "└─ What class is the pump?  […] → Delta"
    assert tree.counts() == "2 queries · 3 of 4 chunks judged"


def test_a_sub_run_that_was_finished_before_is_drawn_from_its_end_alone() -> None:
    ended = event("sub_run_done", chunk_id="x", next_rag_thread_id="sub", sub_answer="Delta", sub_run_error="")
    assert drawn(new_tree(RETRIEVED, PLANNED, ended))[1] == "└─ What class is the pump? → Delta"


def test_a_sub_run_that_failed_shows_why() -> None:
    ended = event("sub_run_done", chunk_id="x", next_rag_thread_id="sub", sub_run_error="the model is down")
    tree = new_tree(RETRIEVED, PLANNED, ended)
    assert drawn(tree)[1].endswith("→ the model is down")
    assert tree.root.children[0].status == "failed"


def test_events_of_a_resumed_run_need_no_beginning() -> None:
    tree = new_tree(event("verdict", "sub", "root", 1, chunk_id="v", verdict="judged", score=2))
    assert drawn(tree) == ["(asking)", "└─ (asking)  [2]"]


def test_a_resumed_run_starts_from_what_was_saved() -> None:
    child = QueryNode(thread_id="sub", query="What class?", answer="Delta", status="finished", answer_status="answered")
    chunk = ChunkNode(
        chunk_id="x", text="", metadata={"verdict": "judged", "score": 1}, sub_runs=(child,) if child else ()
    )
    saved = SearchTree(root=QueryNode(thread_id="root", query=QUESTION, chunks=(chunk,)))
    assert drawn(LiveTree.of_saved(saved)) == [f"{QUESTION}  [1]", "└─ What class? → Delta"]


def test_what_is_finished_folds_when_room_is_short() -> None:
    deep = event("sub_run_planned", "sub", "root", 1, chunk_id="v", next_query="Deeper?", next_rag_thread_id="deep")
    tree = new_tree(RETRIEVED, PLANNED, SUB_CHUNKS, deep)
    assert len(drawn(tree, rows=3)) == 3
    assert drawn(tree, rows=2)[1] == "… and 2 more"
    tree.apply(event("answer", "sub", "root", 1, answer="Delta", status="answered"))
    assert drawn(tree, rows=2)[1].endswith("… → Delta")


def test_no_line_is_wider_than_the_terminal() -> None:
    chinese = event("chunks", query="甲类容器的壁厚是多少？" * 6, chunk_ids=["x", "y", "z"])
    answered = event("answer", "sub", "root", 1, answer="四十毫米" * 30, status="answered")
    tree = new_tree(chinese, *JUDGED, PLANNED, SUB_CHUNKS, answered)
    for columns in (30, 40, 79, 120):
        assert all(columns_of(line) <= columns for line in drawn(tree, columns=columns))


def test_without_colours_the_verdicts_are_still_told() -> None:
    out = io.StringIO()
    console = Console(file=out, no_color=True, width=80)
    for line in new_tree(RETRIEVED, *JUDGED).lines(columns=80, rows=5):
        console.print(line)
    assert out.getvalue() == f"{QUESTION}  [1 ? ×]\n"


class Terminal(io.StringIO):
    """A standard output that says it is a terminal."""

    def isatty(self) -> bool:
        return True


@pytest.mark.parametrize(
    ("grown", "answer", "written"),
    [
        ([Delta("40"), Delta(" mm")], "40 mm", "40 mm\n"),
        ([Delta("40"), Delta(" mm ")], "40 mm", "40 mm \n"),
        ([Delta("I th"), Delta("", True), Delta("40"), Delta(" mm")], "40 mm", "I th\n40 mm\n"),
        ([Delta("I th"), Delta("40 mm", True)], "40 mm", "I th\n40 mm\n"),
        ([Delta("I th"), Delta("", True)], "40 mm", "I th\n40 mm\n"),
        ([Delta("I th")], "40 mm", "I th\n40 mm\n"),
        ([Delta("I cannot answer"), Delta(" this")], REFUSAL, f"{REFUSAL}\n"),
        ([], "40 mm", "40 mm\n"),
        ([Delta("\x1b[31m40")], "\x1b[31m40", "�[31m40\n"),
    ],
)
def test_an_answer_grows_in_a_terminal_and_is_whole_in_the_end(
    monkeypatch: pytest.MonkeyPatch, grown: list[Delta], answer: str, written: str
) -> None:
    terminal = Terminal()
    monkeypatch.setattr(sys, "stdout", terminal)
    growing = GrowingAnswer()
    for text, restarted in grown:
        growing.grow(text, restarted=restarted)
    growing.finish(answer)
    assert terminal.getvalue() == written


def test_a_file_gets_the_answer_once_it_is_sure(monkeypatch: pytest.MonkeyPatch) -> None:
    file = io.StringIO()
    monkeypatch.setattr(sys, "stdout", file)
    growing = GrowingAnswer()
    growing.grow("I th", restarted=False)
    assert file.getvalue() == ""
    growing.finish("40 mm")
    assert file.getvalue() == "40 mm\n"


def test_linked_chunks_wait_for_their_verdicts() -> None:
    tree = new_tree(RETRIEVED, *JUDGED, event("chunks_linked", query=QUESTION, chunk_ids=["w"]))
    assert tree.counts() == "1 query · 3 of 4 chunks judged"
    tree.apply(event("verdict", chunk_id="w", verdict="judged", score=0))
    assert tree.counts() == "1 query · 4 of 4 chunks judged"
