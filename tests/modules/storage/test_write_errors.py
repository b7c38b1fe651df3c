"""Disks and databases that are full."""

from __future__ import annotations

import sqlite3
from pathlib import Path

import pytest

from judgetree.modules.storage.write_errors import is_full_disk


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
