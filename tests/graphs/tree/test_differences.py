"""Where two search trees part, and what follows from it."""

from __future__ import annotations

import itertools
from dataclasses import replace

from judgetree import SearchTree
from judgetree.graphs.tree.nodes import ChunkNode, QueryNode
from tests.cpu_time import cpu_time_below
from tests.random_trees import random_tree


def chunk(chunk_id: str, rank: int, score: int, child: QueryNode | None = None) -> ChunkNode:
    metadata = {"rank": rank, "verdict": "judged", "score": score, "source": f"{chunk_id}.md"}
    return ChunkNode(
        chunk_id=chunk_id, text=f"text of {chunk_id}", metadata=metadata, sub_runs=(child,) if child else ()
    )


def query(words: str, *chunks: ChunkNode, answer: str = "VG 68", depth: int = 0, name: str = "") -> QueryNode:
    return QueryNode(
        thread_id=name or words,
        query=words,
        parent_thread_id="above" if depth else None,
        depth=depth,
        answer=answer,
        status="finished",
        answer_status="answered",
        chunks=chunks,
    )


SUB = query("Which oil does Delta need?", chunk("b", 0, 2), depth=1)
FIRST = SearchTree(root=query("Which oil?", chunk("a", 0, 1, SUB), chunk("c", 1, 0)), fingerprint={"llm": "x"})


def test_a_tree_is_like_itself() -> None:
    diff = FIRST.diff(SearchTree.from_json(FIRST.to_json()))
    assert diff.differences == () and diff.first is None
    assert "alike" in diff.to_text()


def test_the_first_difference_is_the_earliest_cause() -> None:
    """A flipped verdict on the top level stands before the answers that follow from it, the deepest answer first."""
    other = query("which  OIL?", chunk("a", 0, 1, replace(SUB, answer="other")), chunk("c", 1, 1), answer="VG 46")
    diff = FIRST.diff(SearchTree(root=other, fingerprint={"llm": "y"}))
    assert [(each.kind, each.depth, each.a, each.b) for each in diff.differences] == [
        ("verdict", 0, "0", "1"),
        ("answer", 1, "VG 68", "other"),
        ("answer", 0, "VG 68", "VG 46"),
    ]
    assert diff.first is not None and diff.first.chunk_id == "c"
    assert [each.chunk_id for each in diff.flips] == ["c"]
    assert diff.settings == {"llm": ("x", "y")}


def test_a_sub_question_that_another_chunk_asks_is_the_same_one() -> None:
    moved = query("Which oil?", chunk("a", 0, 1), chunk("d", 1, 1, replace(SUB, answer="other")))
    diff = FIRST.diff(SearchTree(root=moved))
    assert [each.chunk_id for each in diff.gained] == ["d"]
    assert [each.chunk_id for each in diff.lost] == ["c"]
    assert {(each.kind, each.a, each.b) for each in diff.differences if each.depth == 1} == {
        ("answer", "VG 68", "other")
    }
    [child] = diff.root.children
    assert child.a is not None and child.b is not None


def test_the_branch_of_one_side_alone_is_gained_and_not_compared() -> None:
    without = SearchTree(root=query("Which oil?", chunk("a", 0, 0), chunk("c", 1, 0)))
    diff = without.diff(FIRST)
    assert [each.kind for each in diff.differences] == ["verdict", "sub_question"]
    assert [each.chunk_id for each in diff.gained] == ["b"]


def test_a_chunk_without_a_verdict_is_not_judged_otherwise() -> None:
    unjudged = replace(chunk("a", 0, 1), metadata={"rank": 0, "source": "a.md"})
    diff = FIRST.diff(SearchTree(root=query("Which oil?", unjudged, chunk("c", 1, 0))))
    assert [each.kind for each in diff.differences] == ["sub_question"]


def test_both_sides_are_drawn_with_hostile_texts_escaped() -> None:
    other = query("Which oil?", chunk("<b>&", 0, 1), answer="<script>alert(1)</script>")
    page = FIRST.diff(SearchTree(root=other)).to_html()
    assert "<script>alert" not in page and "&lt;script&gt;alert" in page
    assert page.count("differs") > 2
    assert 'title="two search trees"' in FIRST.diff(SearchTree(root=other))._repr_html_()


def test_random_trees_differ_from_each_other_and_not_from_themselves() -> None:
    """Aligned pairs hold each query of both trees exactly once."""
    trees = [random_tree(seed) for seed in range(20)]
    for a, b in itertools.pairwise(trees):
        assert a.diff(a).differences == ()
        diff = a.diff(b)
        pairs = [diff.root]
        for pair in pairs:
            pairs += pair.children
        assert sorted(id(pair.a) for pair in pairs if pair.a) == sorted(id(node) for node in a.query_nodes())
        assert sorted(id(pair.b) for pair in pairs if pair.b) == sorted(id(node) for node in b.query_nodes())
        assert diff.to_text() and diff.to_html()


def large_tree(*, changed: str = "") -> SearchTree:
    """A tree of 1,000 nodes, three levels deep, with chunks of 1,000 characters."""

    def below(words: str, depth: int) -> QueryNode:
        chunks = []
        for rank in range(10):
            name = f"{words}/{rank}"
            child = below(name, depth + 1) if depth == 0 or (depth == 1 and rank < 8) else None
            score = 0 if name == changed else 1
            chunks.append(replace(chunk(name, rank, score, child), text=f"{name} has a text. " * 50))
        return query(words, *chunks, depth=depth, answer=f"{words} {changed}")

    return SearchTree(root=below("q", 0))


def test_two_trees_of_1000_nodes_are_compared_and_drawn_within_two_seconds() -> None:
    a, b = large_tree(), large_tree(changed="q/3/2/7")
    assert sum(1 for _ in a.query_nodes()) + sum(1 for _ in a.chunk_nodes()) == 1001
    with cpu_time_below(2):
        diff = a.diff(b)
        assert diff.first is not None and diff.first.chunk_id == "q/3/2/7"
        assert diff.to_text() and diff.to_html() and diff.to_document()
