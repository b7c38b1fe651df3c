"""Changing a collection by rewriting it (Lite) and in place (servers) gives the same content."""

from __future__ import annotations

import hashlib
import uuid
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import replace

import numpy as np
import pytest

from judgetree.modules.errors import CollectionError
from judgetree.modules.index.connection import MilvusConnection
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
from judgetree.modules.index.schema import CollectionInfo, leftovers, physical_name, read_collection_info, revision
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
    return {"pk": pk, "text": text, "dense": vector, "source": source, "file_digest": f"digest of {source}"}


def changes(
    rows: Sequence[Row] = (),
    removed: Collection[str] = (),
    *,
    info: CollectionInfo = INFO,
    on_progress: StageProgress = lambda done, total, stage: None,
    check: Callable[[], None] = lambda: None,
) -> Changes:
    return Changes(info=info, rows=rows, removed=frozenset(removed), on_progress=on_progress, check=check)


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
    assert stored_files(way.client, name) == {
        "a.md": StoredFile(digest="digest of a.md", chunk_ids=frozenset("ab")),
        'odd "name".md': StoredFile(digest='digest of odd "name".md', chunk_ids=frozenset("c")),
    }
    vectors = stored_vectors(way.client, name, ["b", "nowhere"], ["dense"])
    assert vectors.keys() == {"b"}
    assert vectors["b"]["dense"] == pytest.approx([np.cos(1.0), np.sin(1.0)])
    assert content_digest(way.client, name) == hashlib.sha256(b"a\nb\nc").hexdigest()


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


def test_other_indexes_are_made_by_a_rewrite(way: MilvusConnection, name: str) -> None:
    put(way, name, [row("a", "one")])
    info = replace(INFO, index_params={"dense": {"index_type": "HNSW", "metric_type": "IP", "params": {"M": 4}}})
    write(way, name, changes(info=info))
    assert way.client.describe_index(name, "dense")["metric_type"] == "IP"
    assert texts(way, name) == {"a": "one"}


def test_a_collection_can_be_emptied(way: MilvusConnection, name: str) -> None:
    put(way, name, [row("a", "one")])
    put(way, name, [], removed={"a"})
    assert texts(way, name) == {}
    assert stored_files(way.client, name) == {}
    assert content_digest(way.client, name) == hashlib.sha256(b"").hexdigest()


def test_more_rows_than_a_page_come_back_once_each(embedded: MilvusConnection, embedded_name: str) -> None:
    rows = [row(f"{number:05}", f"text {number}", f"{number % 7}.md") for number in range(2500)]
    assert put(embedded, embedded_name, rows) == [(1000, 2500), (2000, 2500), (2500, 2500)]
    assert put(embedded, embedded_name, [], removed={"00000"})[-1] == (2499, 2499)
    assert texts(embedded, embedded_name) == {one["pk"]: one["text"] for one in rows[1:]}


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
    drop_leftovers(embedded.client, embedded_name)
    assert texts(embedded, embedded_name) == {"a": "one", "b": "two"}
