"""Text fitted to columns, and the tree that a terminal shows."""

from __future__ import annotations

import html
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from judgetree.graphs.drawing.layout import columns, glyph_ems, one_line, shorten, wrap
from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.threads.state import JsonScalar, Try
from judgetree.graphs.tree.nodes import ChunkNode, QueryNode
from judgetree.modules.storage.texts import printable
from tests.graphs.fakes import answered


@pytest.mark.parametrize(("text", "width"), [("", 0), ("abc", 3), ("红楼梦", 6), ("e\u0301", 1), ("。", 2), ("→", 1)])
def test_columns_counts_chinese_twice_and_combining_marks_not_at_all(text: str, width: int) -> None:
    assert columns(text) == width


def test_wrap_breaks_at_blanks_and_between_chinese_characters() -> None:
    assert wrap("one two three", 8, max_lines=9) == ["one two", "three"]
    assert wrap("曹雪芹著红楼梦", 6, max_lines=9) == ["曹雪芹", "著红楼", "梦"]
    assert wrap("abcdefgh", 3, max_lines=9) == ["abc", "def", "gh"]


def test_wrap_marks_what_it_cut() -> None:
    assert wrap("one two three four", 8, max_lines=2) == ["one two", "three…"]
    assert shorten("曹雪芹著", 6) == "曹雪…"
    assert shorten("exact", 5) == "exact"


@given(st.text(), st.integers(4, 30), st.integers(1, 5))
def test_wrapped_lines_fit_and_lose_no_character(text: str, width: int, max_lines: int) -> None:
    lines = wrap(text, width, max_lines=max_lines)

    assert len(lines) <= max_lines
    assert all(columns(line) <= width for line in lines)
    whole = "".join(wrap(text, width, max_lines=10_000))
    assert whole.replace(" ", "") == one_line(text).replace(" ", "")


@given(st.text(), st.floats(2, 40))
def test_wrapped_lines_fit_whatever_the_measure(text: str, ems: float) -> None:
    lines = wrap(text, ems, max_lines=3, measure=glyph_ems)

    assert all(sum(map(glyph_ems, line)) <= ems + 1e-9 for line in lines)


def test_printable_replaces_what_a_terminal_or_xml_would_choke_on() -> None:
    assert printable("a\x00b\x1b[31mc\u202ed\ud800\ufffe") == "a�b�[31mc�d��"
    assert printable("tab\tline\nfeed 中文 😀") == "tab\tline\nfeed 中文 😀"


def chunk(child: QueryNode | None = None, **metadata: JsonScalar) -> ChunkNode:
    return ChunkNode(
        chunk_id=str(metadata["rank"]), text="正文 of the chunk", metadata=metadata, sub_runs=(child,) if child else ()
    )


REFUSAL = "I cannot answer this question."
CANCELLED = chunk(rank=0, verdict="cancelled")
REFUSED = answered("s", "谁写了《红楼梦》?", REFUSAL, CANCELLED, parent_thread_id="r", depth=1, answer_status="refused")
TREE = SearchTree(
    root=answered(
        "r",
        "Who?",
        "曹雪芹",
        chunk(REFUSED, rank=0, verdict="judged", score=1, retrieval_score=0.5, source="a.md", reason="a part"),
        chunk(rank=1, verdict="unknown", sub_run_error="lost"),
    )
)


def test_text_shows_queries_verdicts_refusals_and_errors() -> None:
    assert str(TREE).splitlines() == [
        "Q: Who?",
        "A: 曹雪芹  (no model calls)",
        "├─ [1] #1 · 0.500 · a.md · a part",
        "│  Q: 谁写了《红楼梦》?",
        "│  A: [refused] I cannot answer this question.  (no model calls)",
        "│  └─ [×] #1 · 正文 of the chunk",
        "└─ [?] #2 · 正文 of the chunk",
        "   ! sub-run: lost",
        "2 queries · 3 chunks · no model calls",
        "verdicts: [1] × 1, [unknown] × 1, [cancelled] × 1",
    ]


@pytest.mark.parametrize("width", [50, 72, 120])
def test_text_lines_fit_the_terminal(width: int) -> None:
    assert max(map(columns, TREE.to_text(width=width).splitlines())) <= width


@given(st.text())
def test_text_is_one_line_a_node_whatever_the_text(text: str) -> None:
    tree = SearchTree(root=QueryNode(thread_id="r", query=text, answer=text, status="finished"))

    assert len(tree.to_text().split("\n")) == 4
    assert "\x1b" not in tree.to_text()


def test_every_drawing_says_in_which_round_and_try_a_sub_question_was_asked_and_why_others_were_not() -> None:
    first, second = (answered(f"s{number}", f"Why {number}?", "", parent_thread_id="r", depth=1) for number in (1, 2))
    tries = tuple(Try(query="", thread_id="", answer="", error="", round=at, priority=0) for at in (2, 5))
    asked = replace(chunk(rank=0, verdict="judged", score=1), sub_runs=(first, second), tries=tries)
    skipped = chunk(rank=1, verdict="judged", score=1, next_query="Which?", skipped="sub_runs")
    tree = SearchTree(root=answered("r", "Who?", "", asked, skipped))
    for text in (tree.to_text(), tree.to_svg(), tree.to_html()):
        words = html.unescape(text)
        assert "round 2 · try 1" in words
        assert "round 5 · try 2" in words
        assert (
            "not asked: the tree has all its sub-runs" in words
            or '["not asked","the tree has all its sub-runs"]' in words
        )
