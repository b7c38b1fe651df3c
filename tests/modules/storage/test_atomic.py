"""Files that are written whole: beside other writers, on full disks, through links, and into what is no file."""

from __future__ import annotations

import json
import multiprocessing
import os
import stat
import sys
import threading
from collections.abc import Callable
from pathlib import Path

import pytest

from judgetree.modules.errors import WritingError
from judgetree.modules.storage.atomic import replacing, write_atomic
from tests.file_limits import largest_file

SIZE = 200_000


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder in which nothing else is."""
    folder = tmp_path / "folder"
    folder.mkdir()
    return folder


def test_file_that_does_not_fit_leaves_the_old_one_and_nothing_beside_it(folder: Path) -> None:
    file = folder / "run" / "report.md"
    file.parent.mkdir()
    write_atomic(file, "before")
    with largest_file(50_000), pytest.raises(WritingError, match=r"report\.md could not be written: File too large"):
        write_atomic(file, "x" * 60_000)
    assert list(file.parent.iterdir()) == [file]
    assert file.read_text(encoding="utf-8") == "before"


def test_bytes_of_a_path_that_are_not_utf8_are_read_back_out_of_json(folder: Path) -> None:
    path = os.fsdecode(b"q\xff.csv")
    write_atomic(folder / "f.json", json.dumps({"questions": path}, ensure_ascii=False))
    assert json.loads((folder / "f.json").read_text(encoding="utf-8")) == {"questions": path}


def _write_often(path: Path, letter: str, times: int) -> None:
    for _ in range(times):
        write_atomic(path, letter * SIZE)


def test_two_processes_that_write_one_file_never_show_a_torn_one(folder: Path) -> None:
    file = folder / "f"
    write_atomic(file, "a" * SIZE)
    context = multiprocessing.get_context("spawn")
    writers = [context.Process(target=_write_often, args=(file, letter, 150)) for letter in "ab"]
    for writer in writers:
        writer.start()
    while any(writer.is_alive() for writer in writers):
        content = file.read_bytes()
        assert len(content) == SIZE
        assert content == content[:1] * SIZE
    for writer in writers:
        writer.join()
    assert [writer.exitcode for writer in writers] == [0, 0]  # no write of one fails for the other
    assert list(folder.iterdir()) == [file]


def test_an_exception_within_the_block_leaves_the_old_file_and_nothing_beside_it(folder: Path) -> None:
    file = folder / "plot.svg"
    write_atomic(file, "before")
    with pytest.raises(KeyboardInterrupt), replacing(file) as out:
        out.write(b"half")
        raise KeyboardInterrupt
    assert file.read_text(encoding="utf-8") == "before"
    assert list(folder.iterdir()) == [file]


def test_what_a_killed_writer_left_goes_once_it_is_old(folder: Path) -> None:
    file, other = folder / "report.md", folder / "report.md.csv"
    old, fresh, foreign = (folder / name for name in (".report.md.a.half", ".report.md.b.half", ".other.md.a.half"))
    for half in (old, fresh, foreign):
        half.write_text("half", encoding="utf-8")
    for half in (old, foreign):
        os.utime(half, (0, 0))
    write_atomic(other, "")
    assert old.exists()
    write_atomic(file, "whole")
    assert set(folder.iterdir()) == {file, other, fresh, foreign}


@pytest.mark.skipif(sys.platform == "win32", reason="rights and links of POSIX")
def test_rights_and_links_stay(folder: Path) -> None:
    real, link, fresh = folder / "real.svg", folder / "link.svg", folder / "fresh.svg"
    write_atomic(real, "1")
    real.chmod(0o640)
    link.symlink_to(real)
    write_atomic(link, "2")
    assert link.is_symlink()
    assert real.read_text(encoding="utf-8") == "2"
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    before = os.umask(0o027)
    try:
        write_atomic(fresh, "1")
    finally:
        os.umask(before)
    assert stat.S_IMODE(fresh.stat().st_mode) == 0o640
    write_atomic(fresh, "2", private=True)
    assert stat.S_IMODE(fresh.stat().st_mode) == 0o600


@pytest.mark.skipif(sys.platform == "win32", reason="pipes with names")
def test_a_pipe_is_written_to_and_stays_a_pipe(folder: Path) -> None:
    pipe, heard = folder / "pipe", list[str]()
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: heard.append(pipe.read_text(encoding="utf-8")))
    reader.start()
    write_atomic(pipe, "<svg/>")
    reader.join()
    assert heard == ["<svg/>"]
    assert pipe.is_fifo()


IMPOSSIBLE: dict[str, Callable[[Path], Path]] = {
    "folder": lambda folder: folder,
    "no-folder": lambda folder: folder / "missing" / "f",
    "below-a-file": lambda folder: folder / "file" / "f",
    "long-name": lambda folder: folder / ("n" * 300),
    "circle": lambda folder: folder / "circle",
}


@pytest.mark.parametrize("name", IMPOSSIBLE)
def test_a_file_that_cannot_be_made_is_named(folder: Path, name: str) -> None:
    (folder / "file").touch()
    (folder / "circle").symlink_to("circle")
    with pytest.raises(WritingError, match="could not be written"):
        write_atomic(IMPOSSIBLE[name](folder), "x")
    assert {path.name for path in folder.iterdir()} == {"file", "circle"}


def test_a_name_of_the_greatest_length_can_be_written(folder: Path) -> None:
    file = folder / ("é" * 127)
    write_atomic(file, "x")
    assert list(folder.iterdir()) == [file]
