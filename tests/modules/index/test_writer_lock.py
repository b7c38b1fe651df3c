"""One writer at a time, on a real server and in a real folder, across processes."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import threading
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from judgetree.modules.errors import CollectionError
from judgetree.modules.index.connection import MilvusConnection, connect
from judgetree.modules.index.index import Index
from judgetree.modules.index.schema import list_collections, lock_collections, new_lock_name
from judgetree.modules.index.writer_lock import PROPERTY, LockOptions, writer_lock
from judgetree.modules.retriever.retriever import Retriever
from tests.modules.conftest import LiteServer
from tests.modules.fake_embeddings import BagOfWordsEmbedder
from tests.modules.index.test_lite_folder import next_line

ROOT = Path(__file__).parents[3]
AT_ONCE = LockOptions(wait_s=0)


def ignore(owner: str) -> None:
    """Nobody is told."""


@pytest.fixture
def name() -> str:
    return f"test_{uuid.uuid4().hex[:12]}"


@pytest.fixture(scope="module")
def served(lite_server: LiteServer) -> Iterator[MilvusConnection]:
    held = connect(lite_server.uri)
    yield held
    held.close()


def left(connection: MilvusConnection, name: str) -> tuple[list[str], list[str]]:
    aliases = [alias for alias in connection.client.list_aliases()["aliases"] if alias.startswith(name)]
    return lock_collections(connection.client, name), aliases


def test_a_second_writer_is_refused_by_name_and_let_in_afterwards(connection: MilvusConnection, name: str) -> None:
    with writer_lock(connection, name, AT_ONCE, on_wait=ignore) as check:
        check()
        with (
            pytest.raises(CollectionError, match=rf"'{name}' is being written by .*process.*--wait"),
            writer_lock(connection, name, AT_ONCE, on_wait=ignore),
        ):
            pass
        with writer_lock(connection, f"{name}_2", AT_ONCE, on_wait=ignore):
            assert name not in list_collections(connection.client)
    with writer_lock(connection, name, AT_ONCE, on_wait=ignore):
        pass
    assert left(connection, name) == ([], [])


def test_a_waiting_writer_is_told_for_whom_and_gets_the_lock(connection: MilvusConnection, name: str) -> None:
    told: list[str] = []
    waiting = threading.Event()

    def tell(owner: str) -> None:
        told.append(owner)
        waiting.set()

    def wait() -> None:
        with writer_lock(connection, name, LockOptions(wait_s=60), on_wait=tell):
            told.append("in")

    with writer_lock(connection, name, AT_ONCE, on_wait=ignore):
        thread = threading.Thread(target=wait)
        thread.start()
        assert waiting.wait(30)
        assert len(told) == 1
    thread.join(30)
    assert told[1:] == ["in"]


def test_a_lease_that_is_renewed_is_not_taken_over(served: MilvusConnection, name: str) -> None:
    with (
        writer_lock(served, name, LockOptions(lease_s=0.8), on_wait=ignore) as check,
        pytest.raises(CollectionError, match="is being written by"),
        writer_lock(served, name, LockOptions(wait_s=2.5), on_wait=ignore),
    ):
        pass
    check()


@pytest.mark.slow
def test_a_stale_lease_has_one_heir_and_its_owner_is_refused(lite_server: LiteServer, name: str) -> None:
    """The owner is a process that is stopped; eight threads, each with its own connection, try to be its heir."""
    command = [sys.executable, "-c", HOLD, lite_server.uri, name]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, env=ENVIRONMENT, text=True) as owner:
        assert owner.stdout is not None
        assert owner.stdout.readline() == "held\n"
        os.kill(owner.pid, signal.SIGSTOP)
        inside: list[int] = []
        most: list[int] = []
        with ExitStack() as stack:
            connections = [connect(lite_server.uri) for _ in range(8)]
            for one in connections:
                stack.callback(one.close)
            threads = [threading.Thread(target=heir, args=(one, name, inside, most)) for one in connections]
            for thread in threads:
                thread.start()
            for thread in threads:
                thread.join(60)
            assert most == [1] * 8
            os.kill(owner.pid, signal.SIGCONT)
            out, _ = owner.communicate("go on\n", timeout=60)
            assert "another writer took over" in out
            assert left(connections[0], name) == ([], [])


def heir(connection: MilvusConnection, name: str, inside: list[int], most: list[int]) -> None:
    with writer_lock(connection, name, LockOptions(wait_s=60, lease_s=20), on_wait=ignore) as check:
        inside.append(1)
        check()
        most.append(len(inside))
        inside.pop()


def test_what_killed_writers_left_behind_goes(served: MilvusConnection, name: str) -> None:
    schema = served.client.create_schema(auto_id=False)
    from pymilvus import DataType

    schema.add_field("pk", DataType.INT64, is_primary=True)
    schema.add_field("vector", DataType.FLOAT_VECTOR, dim=2)
    served.client.create_collection(new_lock_name(name), schema=schema, properties={PROPERTY: '{"made_at": 1.0}'})
    assert len(lock_collections(served.client, name)) == 1
    with writer_lock(served, name, AT_ONCE, on_wait=ignore):
        assert len(lock_collections(served.client, name)) == 1
    assert left(served, name) == ([], [])


@pytest.mark.parametrize("collection", ["docs__lock", "docs__lock_1", "docs__lock_12"])
def test_names_of_locks_are_no_names_of_collections(collection: str) -> None:
    with pytest.raises(CollectionError, match="cannot be a collection's name"):
        Index(BagOfWordsEmbedder(), None, None, collection)


class TestTwoProcesses:
    """Different folders into one collection at once."""

    @pytest.mark.slow
    def test_nothing_is_lost(self, lite_server: LiteServer, tmp_path: Path, name: str) -> None:
        one, other = (write(tmp_path / str(number) / "docs", number) for number in range(2))
        # Both are held at their first stage. The second one must be waiting there, and not reading what the first is
        # about to change.
        with writer(one, lite_server, name) as first:
            assert next_line(first) == "load"
            with writer(other, lite_server, name) as second:
                assert next_line(second) == "wait"
                for process in (first, second):
                    process.communicate("\n", timeout=120)
        assert (first.returncode, second.returncode) == (0, 0)
        with Index(BagOfWordsEmbedder(), None, None, name, uri=lite_server.uri, token="") as index:
            index.info()
            rows = index.connection.client.query(name, filter="", output_fields=["source", "text"], limit=1000)
            expected = sorted(f"Text {number} of {writer}." for number in range(10) for writer in range(2))
            assert sorted(row["text"] for row in rows) == expected
            assert len({row["source"] for row in rows}) == 20
            assert left(index.connection, name) == ([], [name])

    @pytest.mark.slow
    def test_the_digest_of_another_process_follows(self, lite_server: LiteServer, tmp_path: Path, name: str) -> None:
        folder = write(tmp_path / "docs", 0)
        with Index(BagOfWordsEmbedder(), folder, None, name, uri=lite_server.uri, token="") as index:
            index.get_index_done()
            retriever = Retriever(index)
            before = index.content_digest(), retriever.fingerprint()["content"]
            (folder / "new.txt").write_text("Quokkas smile.")
            with writer(folder, lite_server, name) as other:
                other.communicate("\n", timeout=120)
            assert other.returncode == 0
            after = index.content_digest(), retriever.fingerprint()["content"]
            assert before[0] == before[1] != after[0] == after[1]
            assert retriever.get_similar_chunk_with_score("quokkas smile")[0][0].metadata["source"] == "new.txt"


def writer(folder: Path, server: LiteServer, name: str) -> subprocess.Popen[str]:
    """A process that indexes a folder, tells its first stage and then waits for a line."""
    command = [sys.executable, "-c", INDEX, str(folder), server.uri, name]
    return subprocess.Popen(command, env=ENVIRONMENT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def write(folder: Path, writer: int) -> Path:
    folder.mkdir(parents=True)
    for number in range(10):
        (folder / f"{number}.txt").write_text(f"Text {number} of {writer}.")
    return folder


ENVIRONMENT = {**os.environ, "PYTHONPATH": str(ROOT)}
HOLD = """
import sys
from judgetree.modules.errors import CollectionError
from judgetree.modules.index.connection import connect
from judgetree.modules.index.writer_lock import LockOptions, writer_lock

with writer_lock(connect(sys.argv[1]), sys.argv[2], LockOptions(lease_s=1.0), on_wait=print) as check:
    print("held", flush=True)
    sys.stdin.readline()
    try:
        check()
    except CollectionError as error:
        print(error)
"""
INDEX = """
import sys
from judgetree.modules.index.index import Index
from tests.modules.fake_embeddings import BagOfWordsEmbedder

stages = []

def hold(done, total, stage):
    stages.append(stage)
    if len(stages) == 1:
        print(stage, flush=True)
        sys.stdin.readline()

embedder = BagOfWordsEmbedder()
with Index(embedder, sys.argv[1], None, sys.argv[3], uri=sys.argv[2], token="", on_progress=hold) as index:
    index.get_index_done()
"""
