"""Caches in SQLite files: what is kept is read, though nothing more can be written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import pytest

from judgetree.modules.embedding.cache import VectorCache

VECTOR = np.ones(3, dtype=np.float32)


@contextmanager
def full_disk(size: int) -> Iterator[None]:
    """Let no file grow beyond ``size`` bytes, as a full disk does."""
    resource = pytest.importorskip("resource", reason="needs limits of file sizes")
    before = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, before)


def kept_in(folder: Path) -> Path:
    path = folder / "vectors.sqlite"
    with VectorCache(path) as cache:
        cache.put_many("e", {"kept": VECTOR})
    return path


def test_a_disk_that_becomes_full_leaves_what_is_kept(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    with VectorCache(kept_in(tmp_path)) as cache:
        cache.get_many("e", ["kept"])
        with full_disk(100):
            cache.put_many("e", {"new": VECTOR})
            assert set(cache.get_many("e", ["kept", "new"])) == {"kept"}
    assert caplog.text.count("cannot be written, and is only read") == 1


@pytest.mark.parametrize("killed", [False, True], ids=["closed", "with its log"])
def test_a_folder_that_takes_no_file_leaves_what_is_kept(
    tmp_path: Path, killed: bool, caplog: pytest.LogCaptureFixture
) -> None:
    path = kept_in(tmp_path)
    other = VectorCache(path)
    if killed:
        other.put_many("e", {"log": VECTOR})
    (lock := tmp_path / "vectors.sqlite.lock").unlink(missing_ok=True)
    lock.mkdir()  # as in a folder that is read-only, which root would write to
    with VectorCache(path) as cache:
        assert set(cache.get_many("e", ["kept", "log"])) == ({"kept", "log"} if killed else {"kept"})
        cache.put_many("e", {"new": VECTOR})
        assert set(cache.get_many("e", ["new", "kept"])) == {"kept"}
    assert caplog.text.count("cannot be written, and is only read") == 1
    other.close()


def test_a_disk_that_is_full_from_the_start_leaves_what_is_kept(tmp_path: Path) -> None:
    path = kept_in(tmp_path)
    with full_disk(100), VectorCache(path) as cache:
        assert set(cache.get_many("e", ["kept"])) == {"kept"}


def test_garbage_that_cannot_be_replaced_counts_as_empty(tmp_path: Path) -> None:
    (path := tmp_path / "vectors.sqlite").write_bytes(b"garbage" * 5_000)
    (tmp_path / "vectors.sqlite.lock").mkdir()
    with VectorCache(path) as cache:
        assert cache.get_many("e", ["kept"]) == {}
        cache.put_many("e", {"new": VECTOR})
    assert path.read_bytes() == b"garbage" * 5_000
