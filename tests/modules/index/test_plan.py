"""No two files of one collection share a name, and a folder keeps the names it had."""

from __future__ import annotations

from pathlib import Path

from judgetree.modules.index.folder_scan import FileScan, scan_files
from judgetree.modules.index.plan import SourceNames


def write(folder: Path, **files: str) -> FileScan:
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in files.items():
        (folder / f"{name}.txt").write_text(text)
    return scan_files(folder)


def names(stored: dict[str, str] | None = None, **folders: str) -> SourceNames:
    held = stored or {}
    return SourceNames(
        folders={"" if name == "first" else name: folder for name, folder in folders.items()},
        stored=held,
        is_same=lambda file: held.get(file.source) == file.path.read_text(),
    )


def named(by: SourceNames, found: FileScan, prefix: str | None = None) -> list[str]:
    return [file.source for file in by.name(found, prefix=prefix).files]


def test_the_first_folder_has_no_prefix_and_the_others_their_names(tmp_path: Path) -> None:
    by = names()
    folders = [write(tmp_path / place / "docs", a="x") for place in ("one", "two", "three")]
    assert [named(by, folder) for folder in folders] == [["a.txt"], ["docs/a.txt"], ["docs-2/a.txt"]]
    assert [named(by, folder) for folder in folders] == [["a.txt"], ["docs/a.txt"], ["docs-2/a.txt"]]


def test_a_folder_inside_a_known_one_is_named_as_there(tmp_path: Path) -> None:
    by = names()
    write(tmp_path / "docs" / "sub", b="y")
    assert named(by, write(tmp_path / "docs", a="x")) == ["a.txt", "sub/b.txt"]
    assert named(by, write(tmp_path / "docs" / "sub")) == ["sub/b.txt"]
    assert by.folders == {"": str(tmp_path / "docs")}


def test_a_folder_that_moved_keeps_its_names(tmp_path: Path) -> None:
    by = names({"a.txt": "x", "b.txt": "old", "gone.txt": "z"}, first="/not/there")
    assert named(by, write(tmp_path / "docs", a="x", b="new", c="w")) == ["a.txt", "b.txt", "c.txt"]
    assert by.folders == {"": str(tmp_path / "docs")}


def test_other_files_of_the_same_names_are_no_folder_that_moved(tmp_path: Path) -> None:
    by = names({"a.txt": "x", "b.txt": "y"}, first="/not/there")
    assert named(by, write(tmp_path / "docs", a="1", b="2")) == ["docs/a.txt", "docs/b.txt"]


def test_a_folder_that_is_still_there_has_not_moved(tmp_path: Path) -> None:
    by = names({"a.txt": "x"}, first=str(write(tmp_path / "one", a="x").folder))
    assert named(by, write(tmp_path / "two", a="x")) == ["two/a.txt"]


def test_a_prefix_that_is_given_counts(tmp_path: Path) -> None:
    by = names({"a.txt": "x"}, first=str(write(tmp_path / "one", a="x").folder))
    assert named(by, write(tmp_path / "two", a="1"), "") == ["a.txt"]
    assert by.folders == {"": str(tmp_path / "two")}


def test_a_new_subfolder_does_not_take_the_name_of_another_folder(tmp_path: Path) -> None:
    by = names()
    named(by, write(tmp_path / "docs", a="x"))
    assert named(by, write(tmp_path / "more", a="y")) == ["more/a.txt"]
    write(tmp_path / "docs" / "more", a="z")
    scan = by.name(write(tmp_path / "docs"))
    assert [file.source for file in scan.files] == ["a.txt"]
    ((skipped),) = scan.skipped
    assert (skipped.source, str(tmp_path / "more") in skipped.reason) == ("more/a.txt", True)
