"""Changing a collection by rewriting it (Lite) and in place (servers) gives the same content."""

from __future__ import annotations

import hashlib
import os
import signal
import subprocess
import sys
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from judgetree.modules.errors import CollectionError
from judgetree.modules.index.connection import MilvusConnection, connect
from judgetree.modules.index.content import (
    Changes,
    Row,
    StoredFile,
    content_digest,
    drop_leftovers,
    stored_files,
    stored_vectors,
    write,
)
from judgetree.modules.index.schema import (
    CollectionInfo,
    IndexParams,
    leftovers,
    new_physical_name,
    physical_name,
    read_collection_info,
    revision,
)
from judgetree.modules.progress import StageProgress

INFO = CollectionInfo(embedders={"dense": "fake:bag"}, dimensions={"dense": 2}, analyzer="standard", cjk_share=0.0)


@pytest.fixture(params=["rewritten", "in place"])
def way(request: pytest.FixtureRequest, connection: MilvusConnection) -> MilvusConnection:
    """Lite's engine changed both ways: no Milvus server is at hand, but its way of writing is."""
    return replace(connection, is_lite=request.param == "rewritten")


@pytest.fixture
def name(connection: MilvusConnection) -> Iterator[str]:
    yield from own_name(connection)


@pytest.fixture
def embedded_name(embedded: MilvusConnection) -> Iterator[str]:
    yield from own_name(embedded)


def own_name(connection: MilvusConnection) -> Iterator[str]:
    chosen = f"content_{uuid.uuid4().hex[:12]}"
    yield chosen
    last = physical_name(connection.client, chosen)
    connection.client.drop_alias(chosen)
    connection.client.drop_collection(last)


def row(pk: str, text: str, source: str = "a.md", angle: float = 0.0) -> Row:
    vector = np.array([np.cos(angle), np.sin(angle)], dtype=np.float32)
    return {"pk": pk, "text": text, "dense": vector, "source": source, "file_digest": f"digest-of-{source[0]}"}


def changes(
    rows: Sequence[Row] = (),
    removed: Collection[str] = (),
    *,
    info: CollectionInfo = INFO,
    rebuilt: Collection[str] = (),
    on_progress: StageProgress = lambda done, total, stage: None,
    check: Callable[[], None] = lambda: None,
) -> Changes:
    return Changes(
        info=info,
        rows=rows,
        removed=frozenset(removed),
        rebuilt=frozenset(rebuilt),
        on_progress=on_progress,
        check=check,
    )


def put(way: MilvusConnection, name: str, rows: list[Row], removed: Collection[str] = ()) -> list[tuple[int, int]]:
    calls: list[tuple[int, int]] = []

    def note(done: int, total: int, stage: str) -> None:
        calls.append((done, total))

    write(way, name, changes(rows, removed, on_progress=note))
    return calls


def texts(way: MilvusConnection, name: str) -> dict[str, str]:
    found = way.client.query(name, filter="", output_fields=["text"], limit=9999, consistency_level="Strong")
    return {one["pk"]: one["text"] for one in found}


def test_rows_are_put_replaced_and_removed(way: MilvusConnection, name: str) -> None:
    put(way, name, [row("b", "two"), row("a", "one"), row("c", "three", "c.md")])
    put(way, name, [row("b", "two again"), row("d", "four")], removed={"a", "b"})
    assert texts(way, name) == {"b": "two again", "c": "three", "d": "four"}


def test_files_vectors_and_digest_can_be_read_back(way: MilvusConnection, name: str) -> None:
    put(way, name, [row("b", "two", angle=1.0), row("a", "one"), row("c", "three", 'odd "name".md')])
    assert stored_files(way, name) == {
        "a.md": StoredFile(digest="digest-of-a", chunk_ids=frozenset("ab")),
        'odd "name".md': StoredFile(digest="digest-of-o", chunk_ids=frozenset("c")),
    }
    vectors = stored_vectors(way.client, name, ["b", "nowhere"], ["dense"])
    assert vectors.keys() == {"b"}
    assert vectors["b"]["dense"] == pytest.approx([np.cos(1.0), np.sin(1.0)])
    assert content_digest(way.client, name) == hashlib.sha256(b"a\nb\nc").hexdigest()


@pytest.mark.parametrize("connection", ["server"], indirect=True)
def test_a_file_of_which_an_interruption_left_a_part_or_two_versions_has_no_digest(
    connection: MilvusConnection, name: str
) -> None:
    server = replace(connection, is_lite=False)
    version = {number: {**row(str(number), "text"), "file_digest": "new 3"} for number in range(3)}

    def stop(done: int, total: int, stage: str) -> None:
        raise KeyboardInterrupt

    put(server, name, [row("old", "text"), row("b", "text", "b.md")])
    with pytest.raises(KeyboardInterrupt):
        write(server, name, changes(list(version.values())[:2], {"old"}, on_progress=stop))
    assert stored_files(server, name)["a.md"] == StoredFile(digest="", chunk_ids=frozenset({"old", "0", "1"}))
    put(server, name, [], removed={"old"})
    assert stored_files(server, name)["a.md"] == StoredFile(digest="", chunk_ids=frozenset({"0", "1"}))
    put(server, name, [version[2]])
    assert stored_files(server, name)["a.md"] == StoredFile(digest="new", chunk_ids=frozenset({"0", "1", "2"}))
    assert stored_files(server, name)["b.md"].digest == "digest-of-b"


def test_each_change_and_what_is_remembered_can_be_seen(way: MilvusConnection, name: str) -> None:
    revisions = set()
    info = INFO
    for number in range(3):
        info = replace(info, chunk_size=100 + number, folders={"": f"/folder/{number}"})
        write(way, name, changes([row(str(number), "one")], info=info))
        revisions.add(revision(way.client, name))
        assert read_collection_info(way.client, name) == info
    assert len(revisions) == 3


def test_a_writer_that_was_overtaken_changes_nothing(way: MilvusConnection, name: str) -> None:
    def overtaken() -> None:
        raise CollectionError("overtaken")

    put(way, name, [row("a", "one")])
    with pytest.raises(CollectionError, match="overtaken"):
        write(way, name, changes([row("b", "two")], "a", check=overtaken))
    assert texts(way, name) == {"a": "one"}
    assert leftovers(way.client, name) == []


def test_other_indexes_replace_the_former(way: MilvusConnection, name: str) -> None:
    put(way, name, [row("a", "one")])
    info = replace(INFO, index_params={"dense": {"index_type": "HNSW", "metric_type": "IP", "params": {"M": 4}}})
    write(way, name, changes(info=info))
    assert way.client.describe_index(name, "dense")["metric_type"] == "IP"
    assert texts(way, name) == {"a": "one"}


def test_a_collection_can_be_emptied(way: MilvusConnection, name: str) -> None:
    put(way, name, [row("a", "one")])
    put(way, name, [], removed={"a"})
    assert texts(way, name) == {}
    assert stored_files(way, name) == {}
    assert content_digest(way.client, name) == hashlib.sha256(b"").hexdigest()


@pytest.mark.parametrize("connection", ["server"], indirect=True)
def test_more_rows_than_a_page_come_back_once_each(connection: MilvusConnection, name: str) -> None:
    rows = [row(f"{number:05}", f"text {number}", f"{number % 7}.md") for number in range(2500)]
    assert put(connection, name, rows) == [(1000, 2500), (2000, 2500), (2500, 2500)]
    assert put(connection, name, [], removed={"00000"})[-1] == (2499, 2499)
    assert texts(connection, name) == {one["pk"]: one["text"] for one in rows[1:]}


class TestEmbedded:
    """An embedded collection changes by a copy of its files."""

    def scores(self, connection: MilvusConnection, name: str, field: str, query: object) -> dict[str, float]:
        hits = connection.client.search(name, data=[query], anns_field=field, limit=30, output_fields=["text"])
        return {hit["pk"]: hit["distance"] for hit in hits[0]}

    def test_only_the_new_rows_are_sent(self, embedded: MilvusConnection, embedded_name: str) -> None:
        put(embedded, embedded_name, [row(f"{number:05}", f"text {number}") for number in range(100)])
        assert put(embedded, embedded_name, [row("b", "two")]) == [(1, 1)]
        assert put(embedded, embedded_name, [], removed={"00000"}) == []
        assert len(texts(embedded, embedded_name)) == 100

    @pytest.mark.parametrize("removed", [set(), {"0050", "1340"}])
    @pytest.mark.slow
    def test_words_and_vectors_score_as_in_one_step(
        self, embedded: MilvusConnection, embedded_name: str, removed: set[str]
    ) -> None:
        words = [f"text {number % 9} {'rare' if number % 50 == 0 else 'x'}" for number in range(1400)]
        rows = [row(f"{number:04}", text, angle=number / 300) for number, text in enumerate(words)]
        put(embedded, embedded_name, rows[:1000] + rows[1300:])
        put(embedded, embedded_name, [])  # waits for the index
        put(embedded, embedded_name, rows[1000:1300], removed)
        for at_once in own_name(embedded):
            put(embedded, at_once, [one for one in rows if one["pk"] not in removed])
            for field, query in (("sparse", "rare text 3"), ("dense", [np.cos(3.7012), np.sin(3.7012)])):  # near no tie
                expected = self.scores(embedded, at_once, field, query)
                assert self.scores(embedded, embedded_name, field, query) == pytest.approx(expected)
                assert len(expected) == 30

    def test_rows_that_are_put_again_keep_their_vectors(self, embedded: MilvusConnection, embedded_name: str) -> None:
        put(embedded, embedded_name, [row(pk, pk, angle=number) for number, pk in enumerate("abc")])
        put(embedded, embedded_name, [row("b", "b", "new.md", angle=1), row("d", "d", angle=3)], removed={"b"})
        found = self.scores(embedded, embedded_name, "dense", [np.cos(1), np.sin(1)])
        assert found == pytest.approx({pk: np.cos(number - 1) for number, pk in enumerate("abcd")}, abs=1e-6)
        assert stored_files(embedded, embedded_name)["new.md"].chunk_ids == {"b"}

    def test_only_an_index_with_other_parameters_is_built(self, embedded: MilvusConnection, embedded_name: str) -> None:
        def written() -> dict[str, bytes]:
            assert embedded.folder is not None
            home = embedded.folder / "collections" / str(physical_name(embedded.client, embedded_name))
            return {path.name.split(".")[1]: path.read_bytes() for path in home.rglob("*.idx")}

        info = replace(INFO, embedders={"dense": "a", "small": "b"}, dimensions={"dense": 2, "small": 2})
        rows = [
            {**row(f"{number:04}", f"text {number}", angle=number), "small": np.array([number, 1], dtype=np.float32)}
            for number in range(1200)
        ]
        write(embedded, embedded_name, changes(rows, info=info))
        write(embedded, embedded_name, changes(info=info, rebuilt={"dense", "small"}))  # waits for both
        before = written()
        other: dict[str, IndexParams] = {"small": {"index_type": "HNSW", "metric_type": "COSINE", "params": {"M": 4}}}
        write(embedded, embedded_name, changes(info=replace(info, index_params=other)))
        after = written()
        assert after["dense"] == before["dense"]
        assert after["small"] != before["small"]
        assert len(texts(embedded, embedded_name)) == 1200

    def test_metadata_of_any_type_is_kept(self, embedded: MilvusConnection, embedded_name: str) -> None:
        odd = {"title": 'a "b"\n汉', "nested": {"x": [1, None, 2.5]}, "flag": True}
        put(embedded, embedded_name, [{**row("a", "one"), **odd}])
        put(embedded, embedded_name, [row("b", "two")])
        (found,) = embedded.client.get(embedded_name, ids=["a"], output_fields=["*"])
        assert {key: found[key] for key in odd} == odd

    def test_changes_of_other_programs_are_kept(self, embedded: MilvusConnection, embedded_name: str) -> None:
        put(embedded, embedded_name, [row("a", "one"), row("b", "two")])
        embedded.client.insert(embedded_name, [row("c", "three")])
        embedded.client.delete(embedded_name, ids=["a"])
        put(embedded, embedded_name, [row("d", "four")])
        put(embedded, embedded_name, [row("e", "five")])
        assert texts(embedded, embedded_name) == {"b": "two", "c": "three", "d": "four", "e": "five"}

    @pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no kill -9 here")
    @pytest.mark.slow
    def test_a_kill_before_the_name_moves_leaves_the_former_collection(self, tmp_path: Path) -> None:
        uri = str(tmp_path / "own.db")
        for held in opened(uri):
            put(held, "docs", [row("a", "one")])
        killed = subprocess.run(
            [sys.executable, "-c", KILLED_WRITING, uri],
            env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
            check=False,
        )
        assert killed.returncode == -signal.SIGKILL
        for held in opened(uri):
            held.client.load_collection("docs")
            assert texts(held, "docs") == {"a": "one"}
            assert len(leftovers(held.client, "docs")) == 2
            drop_leftovers(held, "docs")
            put(held, "docs", [row("b", "two")])
            assert texts(held, "docs") == {"a": "one", "b": "two"}
            assert len(list((tmp_path / "own.db" / "collections").iterdir())) == 1

    def test_a_copy_that_was_not_finished_is_removed(self, embedded: MilvusConnection, embedded_name: str) -> None:
        put(embedded, embedded_name, [row("a", "one")])
        assert embedded.folder is not None
        unfinished = embedded.folder / "collections" / new_physical_name(embedded_name)
        other = embedded.folder / "collections" / new_physical_name(f"{embedded_name}_2")
        for folder in (unfinished, other):
            (folder / "partitions").mkdir(parents=True)
        drop_leftovers(embedded, embedded_name)
        assert not unfinished.exists()
        assert other.exists()
        assert texts(embedded, embedded_name) == {"a": "one"}


def test_long_texts_are_sent_in_several_messages(embedded: MilvusConnection, embedded_name: str) -> None:
    rows = [row(f"{number:03}", "a" * 60_000) for number in range(80)]
    assert len(put(embedded, embedded_name, rows)) > 1
    assert len(texts(embedded, embedded_name)) == 80


def test_a_rewrite_leaves_no_old_collection(embedded: MilvusConnection, embedded_name: str) -> None:
    put(embedded, embedded_name, [row("a", "one")])
    first = physical_name(embedded.client, embedded_name)
    put(embedded, embedded_name, [row("b", "two")])
    assert physical_name(embedded.client, embedded_name) != first
    assert not embedded.client.has_collection(first)
    drop_leftovers(embedded, embedded_name)
    assert texts(embedded, embedded_name) == {"a": "one", "b": "two"}


def opened(uri: str) -> Iterator[MilvusConnection]:
    held = connect(uri)
    yield held
    held.close()


KILLED_WRITING = """
import os, signal, sys
from judgetree.modules.index.connection import connect
from judgetree.modules.index.content import write
from tests.modules.index.test_content import changes, row

held = connect(sys.argv[1])
held.client.load_collection("docs")
write(held, "docs", changes([row("b", "two")], check=lambda: os.kill(os.getpid(), signal.SIGKILL)))
"""
