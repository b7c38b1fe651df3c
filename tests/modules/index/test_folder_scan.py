"""Which files of a folder are read, followed, passed over and kept."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

from judgetree.modules.errors import LoadingError
from judgetree.modules.index.folder_scan import (
    FileScan,
    SkippedFile,
    SourceFile,
    absent_sources,
    gone_sources,
    scan_files,
)


def sources(scan: FileScan) -> list[str]:
    return [file.source for file in scan.files]


@pytest.fixture
def outside(tmp_path: Path) -> Path:
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "secret.txt").write_text("secret")
    (folder / "back").symlink_to("..")
    return folder


def test_links_are_followed_inside_the_folder_only(docs: Path, outside: Path) -> None:
    (docs / "a.txt").write_text("a")
    (docs / "same.txt").symlink_to("a.txt")
    (docs / "file.txt").symlink_to(outside / "secret.txt")
    (docs / "folder").symlink_to(outside)
    (docs / "up").symlink_to("..")
    scan = scan_files(docs)
    assert sources(scan) == ["a.txt", "same.txt"]
    assert [file.source for file in scan.skipped] == ["file.txt", "folder", "up"]
    assert {file.reason for file in scan.skipped} == {
        "it is a link that leaves the folder, and such links are not followed unless asked for"
    }


def test_links_that_leave_the_folder_are_followed_when_told_so_and_once(docs: Path, outside: Path) -> None:
    (docs / "file.txt").symlink_to(outside / "secret.txt")
    (docs / "folder").symlink_to(outside)
    (docs / "folder2").symlink_to(outside)
    scan = scan_files(docs, follow_links=True)
    assert sources(scan) == ["file.txt", "folder/secret.txt"]
    assert scan.skipped == ()


def test_a_folder_that_is_a_link_itself_is_entered(docs: Path, tmp_path: Path) -> None:
    (docs / "a.txt").write_text("a")
    (tmp_path / "link").symlink_to(docs)
    assert sources(scan_files(tmp_path / "link")) == ["a.txt"]


@pytest.mark.parametrize("name", ["nowhere", "circle", "nul\x00", "a" * 5000])
def test_a_path_that_cannot_be_looked_up_is_refused(tmp_path: Path, name: str) -> None:
    if name == "circle":
        (tmp_path / name).symlink_to(name)
    with pytest.raises(LoadingError, match="no file or folder"):
        scan_files(tmp_path / name)


@pytest.mark.skipif(sys.platform == "win32", reason="names are not that long")
def test_folders_nested_too_deep_to_be_listed_are_named(docs: Path) -> None:
    (docs / "a.txt").write_text("a")
    here = os.open(docs, os.O_RDONLY)
    for _ in range(30):
        os.mkdir("d" * 200, dir_fd=here)
        inner = os.open("d" * 200, os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)
    scan = scan_files(docs)
    assert sources(scan) == ["a.txt"]
    (skipped,) = scan.skipped
    assert skipped.reason == "the folder cannot be listed (File name too long)"
    assert gone_sources(["gone.txt", f"{skipped.source}/deeper/b.txt"], scan) == ["gone.txt"]


def test_what_cannot_be_read_is_not_gone() -> None:
    files = (SourceFile(path=Path("a.txt"), source="a.txt"),)
    skipped = (SkippedFile(source="b.txt", reason="r"), SkippedFile(source="locked", reason="r"))
    scan = FileScan(folder=Path(), files=files, skipped=skipped)
    stored = ["a.txt", "b.txt", "locked/c.txt", "locked2/c.txt", "d.txt"]
    assert absent_sources(stored, scan) == ["d.txt", "locked2/c.txt"]
    everything = FileScan(folder=Path(), files=(), skipped=(SkippedFile(source=".", reason="r"),))
    assert gone_sources(stored, everything) == []


def test_a_file_that_grows_beyond_the_limit_or_turns_special_is_refused(docs: Path) -> None:
    file = SourceFile(path=docs / "a.txt", source="a.txt")
    file.path.write_bytes(b"x" * 11)
    assert file.read(max_bytes=11) == b"x" * 11
    with pytest.raises(LoadingError, match=r"larger than 1e-05 MB"):
        file.read(max_bytes=10)
    file.path.unlink()
    with pytest.raises(FileNotFoundError):
        file.read(max_bytes=10)
    if hasattr(os, "mkfifo"):
        os.mkfifo(file.path)
        with pytest.raises(LoadingError, match="a FIFO"):
            file.read(max_bytes=10)
        with pytest.raises(LoadingError, match="a FIFO"):
            file.digest()


def test_a_limit_larger_than_the_memory_reads_a_small_file_all_the_same(tmp_path: Path) -> None:
    file = tmp_path / "a.md"
    file.write_bytes(b"a" * 3_000_000)
    assert SourceFile(path=file, source="a.md").read(max_bytes=1 << 50) == b"a" * 3_000_000
