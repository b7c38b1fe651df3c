"""The trees of a run directory: what is written is read again, whatever a kill left at the end of the file."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from judgetree.evaluation.rows.trees import TreeStore
from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.tree.nodes import ChunkNode, QueryNode
from judgetree.modules.errors import LoadingError


def tree(thread_id: str, text: str = "煤油 oil\nline two") -> SearchTree:
    child = QueryNode(thread_id=f"{thread_id}-1", parent_thread_id=thread_id, depth=1, query="Below?")
    chunk = ChunkNode(
        chunk_id="c", text=text, metadata={"score": 1, "verdict": "judged"}, sub_runs=(child,) if child else ()
    )
    return SearchTree(root=QueryNode(thread_id=thread_id, query="Q?", chunks=(chunk,)), fingerprint={"system": "judge"})


def test_tree_is_read_as_it_was_written(tmp_path: Path) -> None:
    TreeStore(tmp_path).append("a", tree("a"))
    TreeStore(tmp_path).append("b", tree("b"))
    store = TreeStore(tmp_path)
    assert store.read("b") == tree("b")
    assert store.read("a") == tree("a")
    assert store.read("c") is None
    assert list(store.read_all()) == [("a", tree("a")), ("b", tree("b"))]


def test_directory_without_trees_has_none(tmp_path: Path) -> None:
    store = TreeStore(tmp_path / "not there")
    store.mend()
    assert store.read("a") is None
    assert list(store.read_all()) == []


def test_reader_sees_what_is_added_while_it_reads(tmp_path: Path) -> None:
    store = TreeStore(tmp_path)
    store.append("a", tree("a"))
    assert store.read("b") is None
    TreeStore(tmp_path).append("b", tree("b"))
    assert store.read("b") == tree("b")


def test_last_tree_of_a_thread_counts(tmp_path: Path) -> None:
    store = TreeStore(tmp_path)
    for thread_id, text in (("a", "first"), ("b", "other"), ("a", "second")):
        store.append(thread_id, tree(thread_id, text))
    assert store.read("a") == tree("a", "second")
    assert [thread_id for thread_id, _ in store.read_all()] == ["b", "a"]


@settings(max_examples=30, deadline=None)
@given(cut=st.integers(min_value=1), text=st.text() | st.just("x" * 70_000))
def test_torn_tree_is_left_out_and_mended(tmp_path_factory: pytest.TempPathFactory, cut: int, text: str) -> None:
    folder = tmp_path_factory.mktemp("run")
    TreeStore(folder).append("a", tree("a"))
    kept = (folder / "trees.jsonl").stat().st_size
    TreeStore(folder).append("b", tree("b", text))
    with (folder / "trees.jsonl").open("rb+") as file:
        whole = file.seek(0, 2)
        file.truncate(whole - 1 - cut % (whole - kept - 1))

    torn = TreeStore(folder)
    assert list(torn.read_all()) == [("a", tree("a"))]
    assert torn.read("b") is None
    torn.mend()
    assert (folder / "trees.jsonl").stat().st_size == kept
    torn.append("c", tree("c", text))
    assert list(torn.read_all()) == [("a", tree("a")), ("c", tree("c", text))]


@pytest.mark.parametrize("damaged", ['{"thread_id":"a","tree":{}}', '{"row": 1}'])
def test_damage_in_the_middle_is_named(tmp_path: Path, damaged: str) -> None:
    (tmp_path / "trees.jsonl").write_text(damaged + "\n", encoding="utf-8")
    TreeStore(tmp_path).append("b", tree("b"))
    with pytest.raises(LoadingError, match=r"trees\.jsonl.*Take that line out"):
        TreeStore(tmp_path).read("a")
