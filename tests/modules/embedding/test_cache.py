"""The vector cache: what it gives back, to whom, and what it survives."""

from __future__ import annotations

import hashlib
import logging
import sqlite3
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from judgetree.modules.embedding.cache import RecentVectors, Vector, VectorCache
from judgetree.modules.errors import UserError

numbers = st.floats(width=32, allow_nan=False, allow_infinity=False)
vectors = st.lists(numbers, min_size=3, max_size=3).map(lambda floats: np.asarray(floats, dtype=np.float32))
texts = st.text(st.characters(), max_size=20)  # lone surrogates too


def vector(*floats: float) -> Vector:
    return np.asarray(floats, dtype=np.float32)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30, deadline=None)
@given(kept=st.dictionaries(texts, vectors, max_size=5), asked=st.lists(texts, max_size=5))
def test_cache_gives_back_exactly_what_was_put(tmp_path: Path, kept: dict[str, Vector], asked: list[str]) -> None:
    path = tmp_path / f"{abs(hash((tuple(kept), tuple(asked))))}.sqlite"
    path.unlink(missing_ok=True)
    with VectorCache(path) as cache:
        cache.put_many("m", kept)
    with VectorCache(path) as cache:
        found = cache.get_many("m", [*kept, *asked])
    assert found.keys() == kept.keys()
    for text, expected in kept.items():
        assert found[text].dtype == np.float32
        assert found[text].tolist() == expected.tolist()


def test_cache_keeps_embedders_apart(tmp_path: Path) -> None:
    with VectorCache(tmp_path / "v.sqlite") as cache:
        cache.put_many("a", {"text": vector(1, 2)})
        cache.put_many("b", {"text": vector(3)})
        assert cache.get_many("a", ["text"])["text"].tolist() == [1, 2]
        assert cache.get_many("b", ["text"])["text"].tolist() == [3]
        assert cache.get_many("c", ["text"]) == {}
        assert [cache.dimension_of(name) for name in "abc"] == [2, 1, None]


def test_cache_takes_more_texts_than_a_statement_has_parameters(tmp_path: Path) -> None:
    kept = {str(number): vector(number) for number in range(2500)}
    with VectorCache(tmp_path / "v.sqlite") as cache:
        cache.put_many("m", kept)
        assert cache.get_many("m", list(kept)) == kept


def test_cache_keeps_the_first_vector_of_a_text(tmp_path: Path) -> None:
    with VectorCache(tmp_path / "v.sqlite") as cache:
        cache.put_many("m", {"text": vector(1)})
        cache.put_many("m", {"text": vector(2)})
        assert cache.get_many("m", ["text"])["text"].tolist() == [1]


def saved_by_an_older_version(path: Path, vectors: dict[str, bytes]) -> None:
    VectorCache(path).get_many("m", [])
    with closing(sqlite3.connect(path)) as connection, connection:
        rows = [("m", hashlib.sha256(text.encode()).digest(), blob) for text, blob in vectors.items()]
        connection.executemany("INSERT INTO vectors VALUES (?, ?, ?)", rows)


@pytest.mark.parametrize(
    "broken", [vector(1, float("nan")).tobytes(), vector(1, float("inf")).tobytes(), b"", b"12345"]
)
def test_broken_vector_is_computed_again_and_replaced(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, broken: bytes
) -> None:
    path = tmp_path / "v.sqlite"
    saved_by_an_older_version(
        path, {"broken": broken} | ({"sound": vector(1, 2).tobytes()} if len(broken) == 8 else {})
    )
    with VectorCache(path) as cache:
        assert "broken" not in cache.get_many("m", ["sound", "broken"])
        assert "1 vectors of m" in caplog.text
        cache.put_many("m", {"broken": vector(3, 4), "sound": vector(1, 2)})
        found = cache.get_many("m", ["sound", "broken"])
        assert {text: each.tolist() for text, each in found.items()} == {"sound": [1, 2], "broken": [3, 4]}


def test_saved_vectors_of_several_lengths_are_computed_again(tmp_path: Path) -> None:
    path = tmp_path / "v.sqlite"
    saved_by_an_older_version(path, {"a": vector(1).tobytes(), "b": vector(1, 2).tobytes()})
    with VectorCache(path) as cache:
        assert cache.get_many("m", ["a", "b"]) == {}
        cache.put_many("m", {"a": vector(1, 2, 3)})


def test_vectors_of_another_length_are_refused_and_none_is_saved(tmp_path: Path) -> None:
    with VectorCache(tmp_path / "v.sqlite") as cache:
        with pytest.raises(UserError, match=r"model m gave vectors of lengths 1, 2\. .* none of these is saved"):
            cache.put_many("m", {"a": vector(1), "b": vector(1, 2)})
        assert cache.get_many("m", ["a", "b"]) == {}
        cache.put_many("m", {"a": vector(1)})
        with pytest.raises(
            UserError, match=r"lengths 1, 2, of which those of length 1 were saved .* delete .*v\.sqlite"
        ):
            cache.put_many("m", {"b": vector(1, 2)})
        assert cache.get_many("m", ["a", "b"]).keys() == {"a"}


def test_cache_opens_again_after_close(tmp_path: Path) -> None:
    cache = VectorCache(tmp_path / "new" / "folder" / "v.sqlite")
    cache.put_many("m", {"text": vector(1)})
    cache.close()
    cache.close()
    assert "text" in cache.get_many("m", ["text"])
    cache.close()


def test_cache_makes_nothing_before_its_first_use(tmp_path: Path) -> None:
    VectorCache(tmp_path / "home" / "v.sqlite").close()
    assert not (tmp_path / "home").exists()


def test_threads_share_a_cache(tmp_path: Path) -> None:
    with VectorCache(tmp_path / "v.sqlite") as cache, ThreadPoolExecutor(8) as threads:
        list(threads.map(lambda number: cache.put_many("m", {str(number): vector(number)}), range(200)))
        found = threads.map(lambda number: cache.get_many("m", [str(number)])[str(number)].tolist(), range(200))
        assert list(found) == [[number] for number in range(200)]


WRITER = """
import sys
from pathlib import Path
import numpy as np
from judgetree.modules.embedding.cache import VectorCache
name = sys.argv[2]
sys.stdin.readline()  # all start together
cache = VectorCache(Path(sys.argv[1]))
for number in range(100):
    cache.put_many("m", {f"{name}{number}": np.float32([number]), f"same{number}": np.float32([number])})
    assert f"same{number}" in cache.get_many("m", [f"same{number}"])
cache.close()
"""


def test_processes_share_a_file(tmp_path: Path) -> None:
    path = tmp_path / "v.sqlite"
    writers = [
        subprocess.Popen(
            [sys.executable, "-c", WRITER, str(path), name], stdin=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        )
        for name in "abc"
    ]
    outcomes = []
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        outcomes.append((writer.communicate(timeout=60)[1], writer.returncode))
    assert outcomes == [("", 0)] * 3  # no warning either
    with VectorCache(path) as cache:
        names = [f"{name}{number}" for name in ("a", "b", "c", "same") for number in range(100)]
        assert cache.get_many("m", names).keys() == set(names)


def overwrite(path: Path, *, start: int) -> None:
    garbage = b"\xa5" * (path.stat().st_size - start)
    with path.open("r+b") as file:
        file.seek(start)
        file.write(garbage)


@pytest.mark.parametrize("start", [0, 4096], ids=["header", "pages"])
def test_corrupt_file_is_reported_and_kept_while_a_new_one_begins(
    tmp_path: Path, caplog: pytest.LogCaptureFixture, start: int
) -> None:
    path = tmp_path / "v.sqlite"
    with VectorCache(path) as cache:
        cache.put_many("m", {str(number): vector(*range(500)) for number in range(50)})
    size = path.stat().st_size
    overwrite(path, start=start)
    with VectorCache(path) as cache, caplog.at_level(logging.WARNING):
        assert cache.get_many("m", ["1"]) == {}
        cache.put_many("m", {"1": vector(7)})
    assert [record.levelname for record in caplog.records] == ["WARNING"]
    assert f"{path} is corrupt" in caplog.text
    assert "kept as v.sqlite.corrupt1" in caplog.text
    assert (tmp_path / "v.sqlite.corrupt1").read_bytes()[start:] == b"\xa5" * (size - start)
    with VectorCache(path) as cache:
        assert cache.get_many("m", ["1"])["1"].tolist() == [7]


def test_place_that_cannot_be_written_is_warned_about_once(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    (tmp_path / "file").write_text("not a folder")
    with VectorCache(tmp_path / "file" / "v.sqlite") as cache, caplog.at_level(logging.WARNING):
        cache.put_many("m", {"text": vector(1)})
        assert cache.get_many("m", ["text"]) == {}
        assert cache.dimension_of("m") is None
    assert len(caplog.records) == 1
    assert "going on without" in caplog.text


def test_recent_vectors_drop_the_one_unused_for_longest() -> None:
    recent = RecentVectors(2)
    recent.put("a", vector(1))
    recent.put("b", vector(2))
    recent.get("a")
    recent.put("c", vector(3))
    assert recent.get("b") is None
    assert [found.tolist() for text in "ac" if (found := recent.get(text)) is not None] == [[1], [3]]
