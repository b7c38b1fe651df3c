"""Pruning takes out what was under the named paths and is gone, and nothing else."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest

from judgetree.modules.index.index import Index
from tests.modules.fake_embeddings import BagOfWordsEmbedder


@pytest.fixture
def docs(tmp_path: Path) -> Path:
    """A folder of two levels; every file has words of its own."""
    folder = tmp_path / "docs"
    for name in ("a.txt", "b.md", "sub/c.txt", "sub/d.md", "sub2/e.txt"):
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_text(f"Words of {name}.")
    return folder


@pytest.fixture
def more(tmp_path: Path) -> Path:
    """Another folder, such as that of uploads."""
    (tmp_path / "more" / "sub").mkdir(parents=True)
    for name in ("x.txt", "sub/y.txt"):
        (tmp_path / "more" / name).write_text(f"More words of {name}.")
    return tmp_path / "more"


@pytest.fixture
def whole(docs: Path, more: Path, tmp_path: Path) -> Iterator[Path]:
    """The database of a collection with both folders."""
    with index_of(docs, tmp_path / "own.db") as index:
        index.get_index_done(also=[more])
    yield tmp_path / "own.db"


ALL = {"a.txt", "b.md", "sub/c.txt", "sub/d.md", "sub2/e.txt", "more/x.txt", "more/sub/y.txt"}


def index_of(path: Path, uri: Path, *, types: list[str] | None = None, prefix: str | None = None) -> Index:
    return Index(BagOfWordsEmbedder(), path, types, "papers", uri=str(uri), source_prefix=prefix)


def sources(index: Index) -> set[str]:
    return set(index._stored())


@pytest.mark.parametrize(
    ("named", "gone", "removed"),
    [
        (".", ["a.txt", "sub/c.txt"], ["a.txt", "sub/c.txt"]),
        ("sub", ["a.txt", "sub/c.txt"], ["sub/c.txt"]),
        ("sub", ["a.txt"], []),
        ("a.txt", ["b.md", "sub"], []),
        (".", ["sub"], ["sub/c.txt", "sub/d.md"]),
        ("sub", ["sub2"], []),
        ("../more", ["a.txt", "../more/x.txt"], ["more/x.txt"]),
        ("../more/sub", ["../more/x.txt"], []),
        (".", ["../more"], []),
    ],
)
def test_only_what_is_named_is_pruned(whole: Path, docs: Path, named: str, gone: list[str], removed: list[str]) -> None:
    for name in gone:
        path = docs / name
        shutil.rmtree(path) if path.is_dir() else path.unlink()
    with index_of(docs / named, whole) as index:
        assert list(index.gone_files()) == removed
        report = index.get_index_done(prune=True, dry_run=True)
        assert (list(report.removed), sources(index)) == (removed, ALL)
        report = index.get_index_done(prune=True)
        assert (list(report.removed), sources(index)) == (removed, ALL - set(removed))


def test_types_that_were_not_asked_for_and_hidden_files_stay(whole: Path, docs: Path) -> None:
    (docs / "a.txt").unlink()
    (docs / "b.md").unlink()
    with index_of(docs, whole, types=["md"]) as index:
        assert index.get_index_done(prune=True).removed == ("b.md",)
    (docs / ".notes").mkdir()
    (docs / ".notes" / "h.txt").write_text("Hidden words.")
    with index_of(docs / ".notes", whole) as index:
        assert index.get_index_done().added == (".notes/h.txt",)
    with index_of(docs, whole) as index:
        assert index.get_index_done(prune=True).removed == ("a.txt",)
        assert ".notes/h.txt" in sources(index)


def test_a_folder_with_a_name_of_its_own_inside_another_stays(whole: Path, docs: Path) -> None:
    with index_of(docs / "sub", whole, prefix="own") as index:
        assert index.get_index_done().added == ("own/c.txt", "own/d.md")
    with index_of(docs, whole) as index:
        assert index.get_index_done(prune=True).removed == ()
    (docs / "sub" / "c.txt").unlink()
    with index_of(docs, whole) as index:
        assert index.get_index_done(prune=True).removed == ("sub/c.txt",)
    with index_of(docs / "sub", whole, prefix="own") as index:
        assert index.get_index_done(prune=True).removed == ("own/c.txt",)


def test_a_folder_that_takes_the_prefix_of_another_prunes_none_of_its_files(
    whole: Path, docs: Path, tmp_path: Path
) -> None:
    (docs / "b.md").unlink()
    with index_of(docs / "sub", whole, prefix="") as index:
        assert index.get_index_done(prune=True).removed == ("b.md",)
    copy = Path(shutil.copytree(tmp_path / "more" / "sub", tmp_path / "copy"))
    with index_of(copy, whole, prefix="more") as index:
        assert index.get_index_done(prune=True).removed == ()
        assert {"more/x.txt", "more/sub/y.txt", "more/y.txt"} <= sources(index)


def test_a_moved_folder_and_a_file_renamed_in_case_are_pruned(whole: Path, docs: Path) -> None:
    moved = docs.rename(docs.with_name("moved"))
    (moved / "a.txt").rename(moved / "A.txt")
    with index_of(moved, whole) as index:
        report = index.get_index_done(prune=True)
        assert (report.added, report.removed) == (("A.txt",), ("a.txt",))


def test_all_else_is_removed_on_request_and_named_before(whole: Path, docs: Path) -> None:
    with index_of(docs / "sub", whole) as index:
        others = index.gone_files(everywhere=True)
        assert others == dict.fromkeys(sorted(ALL - {"sub/c.txt", "sub/d.md"}), 1)
        assert index.get_index_done(prune=["a.txt", "sub/c.txt", "nothing.txt"]).removed == ("a.txt",)
        assert index.get_index_done(prune=others).chunks == 2


def test_a_dry_run_makes_no_database_and_calls_no_embedder(docs: Path, tmp_path: Path) -> None:
    with index_of(docs, tmp_path / "new.db") as index:
        assert index.gone_files() == {}
        report = index.get_index_done(dry_run=True)
        assert (len(report.added), report.embedded, report.chunks) == (5, 0, 5)
    assert not (tmp_path / "new.db").exists()


def test_a_dry_run_of_a_removal_changes_nothing(whole: Path, docs: Path) -> None:
    with index_of(docs, whole) as index:
        report = index.remove_files("a.txt", "more/x.txt", dry_run=True)
        assert (report.removed, report.chunks) == (("a.txt", "more/x.txt"), 5)
        assert sources(index) == ALL


@pytest.mark.parametrize("everywhere", [False, True])
def test_a_folder_without_a_file_such_as_one_whose_disk_is_not_mounted_loses_nothing(
    whole: Path, docs: Path, more: Path, everywhere: bool
) -> None:
    (docs / "a.txt").unlink()
    shutil.rmtree(more)
    (more / "sub").mkdir(parents=True)
    with index_of(docs, whole) as index:
        assert list(index.gone_files(also=[more], everywhere=everywhere)) == ["a.txt"]
        report = index.get_index_done(prune=True, also=[more])
        assert report.removed == ("a.txt",)
        assert [each.source for each in report.skipped] == ["more"]
        assert "mounted" in report.skipped[0].reason
    with index_of(docs, whole) as index:
        assert set(index.gone_files(everywhere=True)) == {"more/x.txt", "more/sub/y.txt"}


def test_all_else_is_not_what_is_there_with_another_type(whole: Path, docs: Path) -> None:
    with index_of(docs, whole, types=["md"]) as index:
        assert set(index.gone_files(everywhere=True)) == {"more/x.txt", "more/sub/y.txt"}
    (docs / "sub" / "c.txt").unlink()
    with index_of(docs, whole, types=["md"]) as index:
        assert set(index.gone_files(everywhere=True)) == {"sub/c.txt", "more/x.txt", "more/sub/y.txt"}


def test_a_file_whose_name_a_folder_has_taken_is_gone(whole: Path, docs: Path) -> None:
    (docs / "b.md").unlink()
    (docs / "b.md").mkdir()
    (docs / "b.md" / "in.txt").write_text("Inner words.")
    with index_of(docs, whole) as index:
        report = index.get_index_done(prune=True)
        assert (report.added, report.removed) == (("b.md/in.txt",), ("b.md",))
