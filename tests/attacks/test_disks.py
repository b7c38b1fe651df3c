"""A disk that is full, or a folder in the way: an old file stays as it was, and no half file lies beside it."""

from __future__ import annotations

from pathlib import Path

import pytest

from judgetree.modules.errors import UserError, WritingError
from tests.file_limits import largest_file

from .disks import WRITERS

SIZE = 2_000
"""Less than any of the files."""


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    folder = tmp_path / "out"
    folder.mkdir()
    return folder


@pytest.mark.parametrize("name", WRITERS)
def test_a_full_disk_leaves_the_old_file(folder: Path, name: str) -> None:
    write, pattern = WRITERS[name]
    write(folder)  # also loads what drawing needs, such as the cache of fonts
    (file,) = folder.glob(pattern)
    assert file.stat().st_size > SIZE
    file.write_text("old", encoding="utf-8")
    before = set(folder.iterdir())
    with largest_file(SIZE), pytest.raises(WritingError, match="could not be written: File too large"):
        write(folder)
    assert file.read_text(encoding="utf-8") == "old"
    assert set(folder.iterdir()) == before
    write(folder)
    assert file.stat().st_size > SIZE


@pytest.mark.parametrize("name", WRITERS)
def test_a_folder_in_the_place_of_the_file_is_named(folder: Path, name: str) -> None:
    write, pattern = WRITERS[name]
    write(folder)
    (file,) = folder.glob(pattern)
    file.unlink()
    file.mkdir()
    with pytest.raises(UserError, match=r"could not be written|is a folder"):
        write(folder)
    assert not list(folder.glob(".*"))
