"""Files that are written whole, and disks that are full."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from judgetree.modules.disk import is_full_disk, write_whole
from judgetree.modules.errors import WritingError
from tests.file_limits import largest_file


def test_file_that_does_not_fit_leaves_the_old_one_and_nothing_beside_it(tmp_path: Path) -> None:
    file = tmp_path / "run" / "report.md"
    file.parent.mkdir()
    write_whole(file, "before")
    with largest_file(50_000), pytest.raises(WritingError, match=r"report\.md could not be written: File too large"):
        write_whole(file, "x" * 60_000)
    assert list(file.parent.iterdir()) == [file]
    assert file.read_text(encoding="utf-8") == "before"


def test_database_that_is_full_is_told_from_one_that_is_asked_nonsense(tmp_path: Path) -> None:
    with sqlite3.connect(tmp_path / "a.sqlite") as connection:
        connection.execute("CREATE TABLE kept (text TEXT)")
        with pytest.raises(sqlite3.OperationalError) as nonsense:
            connection.execute("SELECT nothing FROM nowhere")
        connection.execute("PRAGMA max_page_count = 3")
        with pytest.raises(sqlite3.OperationalError) as full:
            connection.execute("INSERT INTO kept VALUES (?)", ("x" * 100_000,))
        connection.rollback()
    connection.close()
    assert not is_full_disk(nonsense.value)
    assert is_full_disk(full.value)
    assert is_full_disk(ExceptionWithin(full.value))
    assert not is_full_disk(None)


class ExceptionWithin(RuntimeError):
    """An error that another one led to."""

    def __init__(self, cause: BaseException) -> None:
        super().__init__("the store failed")
        self.__cause__ = cause
