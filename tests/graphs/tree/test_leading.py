"""What leads to the answer of a tree, and what led nowhere."""

from __future__ import annotations

from dataclasses import replace

from judgetree.graphs.tree.leading import find_leading
from tests.random_trees import tree_of


def test_chunks_that_were_read_and_answers_to_what_they_asked_lead_to_the_answer() -> None:
    leading = find_leading(tree_of(96).root)
    assert leading.queries == {"1", "1.0", "1.0.0", "1.0.0.0"}
    assert leading.chunks == {(thread, f"{thread}/{rank}") for thread in leading.queries for rank in range(3)}
    assert {"1.1", "1.0.1", "1.1.0"} <= leading.dead
    assert not leading.dead & leading.queries


def test_answers_may_still_be_needed_while_there_is_none() -> None:
    root = replace(tree_of(96).root, status="open", answer_status=None)
    assert "1.1" in find_leading(root).dead  # refused
    assert "1.0" not in find_leading(root).dead


def test_where_it_is_not_kept_what_was_read_all_that_helps_counts() -> None:
    root = tree_of(6).root
    plain = [replace(chunk, metadata={**chunk.metadata, "shown_place": None}) for chunk in root.chunks]
    leading = find_leading(replace(root, chunks=tuple(plain)))
    assert leading.chunks == {("1", f"1/{rank}") for rank in range(3)}
