"""The files of a collection tell of its changes."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path

import pytest

from judgetree.modules.index.lite_state import FilesWatch


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two collections; the name ``notes`` points to the first."""
    for physical in ("notes__1", "notes__2"):
        (tmp_path / "collections" / physical).mkdir(parents=True)
        (tmp_path / "collections" / physical / "manifest.json").write_text("{}")
    point(tmp_path, "notes__1")
    return tmp_path


def replace(file: Path, text: str) -> None:
    half = file.with_suffix(".half")
    half.write_text(text)
    half.replace(file)


def point(folder: Path, physical: str) -> None:
    replace(folder / "aliases.json", json.dumps({"notes": physical}))


def home(folder: Path) -> Path:
    return folder / "collections" / "notes__1"


def write_index(folder: Path) -> None:
    indexes = home(folder) / "partitions" / "_default" / "indexes"
    indexes.mkdir(parents=True)
    (indexes / "data.dense.hnsw.idx").write_text("graph")


def test_the_state_stays_while_nothing_changes(folder: Path) -> None:
    watch = FilesWatch(folder, "notes")
    first = watch.state()
    assert first is not None
    assert first.physical == "notes__1"
    assert watch.state() == first == FilesWatch(folder, "notes").state()


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: point(folder, "notes__2"),
        lambda folder: replace(home(folder) / "manifest.json", "{}"),
        write_index,
    ],
    ids=["name", "manifest", "index"],
)
def test_each_change_is_another_state(folder: Path, change: Callable[[Path], None]) -> None:
    watch = FilesWatch(folder, "notes")
    first = watch.state()
    change(folder)
    assert watch.state() not in (None, first)


def test_a_physical_collection_is_known_by_its_own_name(folder: Path) -> None:
    state = FilesWatch(folder, "notes__2").state()
    assert state is not None
    assert state.physical == "notes__2"


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: point(folder, "notes__3"),
        lambda folder: (home(folder) / "manifest.json").unlink(),
        lambda folder: (folder / "aliases.json").write_text("{"),
        lambda folder: (folder / "aliases.json").unlink(),
        lambda folder: [(home(folder) / "wal").mkdir(), (home(folder) / "wal" / "wal_data_000001.arrow").touch()],
    ],
    ids=["dropped", "no manifest", "half a file", "no file", "not flushed"],
)
def test_there_is_no_state_of_what_cannot_be_read_as_a_whole(folder: Path, change: Callable[[Path], object]) -> None:
    watch = FilesWatch(folder, "notes")
    assert watch.state() is not None
    change(folder)
    assert watch.state() is None
