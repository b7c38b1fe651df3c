"""Processes of one user share a Milvus Lite folder, and outlive each other."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import stat
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest
from pymilvus import MilvusClient

from judgetree.modules.errors import CollectionError
from judgetree.modules.index import lite_folder
from judgetree.modules.index.connection import connect
from judgetree.modules.index.index import Index
from judgetree.modules.index.lite_folder import SOCKET_FILE, OpenFolder, is_served_here
from judgetree.modules.index.writer_lock import LockOptions, writer_lock
from judgetree.modules.retriever.retriever import Retriever
from judgetree.modules.storage.file_locks import lock_holder
from tests.modules.fake_embeddings import BagOfWordsEmbedder

pytestmark = pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="there are no Unix sockets here")


def index_of(docs: Path, uri: Path) -> Index:
    """An index whose searches ask the process that serves the folder."""
    return Index(BagOfWordsEmbedder(), docs, None, "docs", uri=str(uri), search_snapshot="off")


def sources(index: Index) -> set[str]:
    return {str(chunk.metadata["source"]) for chunk, _ in Retriever(index, topk=9).get_similar_chunk_with_score("cats")}


@contextmanager
def process(script: str, docs: Path, uri: Path) -> Iterator[subprocess.Popen[str]]:
    """A process that runs ``script`` with ``index``, ``tell`` (prints a line) and ``wait`` (until it is sent one)."""
    with subprocess.Popen(
        [sys.executable, "-c", IN_PROCESS + script, str(docs), str(uri)],
        env={**os.environ, "PYTHONPATH": str(Path(__file__).parents[3])},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    ) as other:
        assert next_line(other) == "ready"
        try:
            yield other
        finally:
            other.kill()


IN_PROCESS = """
import sys
from judgetree.modules.index.index import Index
from tests.modules.fake_embeddings import BagOfWordsEmbedder

def tell(line):
    print(line, flush=True)

wait = sys.stdin.readline
index = Index(BagOfWordsEmbedder(), sys.argv[1], None, "docs", uri=sys.argv[2])
"""
INDEX_AND_WAIT = "index.get_index_done(); tell('ready'); wait(); index.close(); tell('closed'); wait()"
WRITE = """
from judgetree.modules.index.writer_lock import LockOptions, writer_lock
with writer_lock(index.connection, "docs", LockOptions(), on_wait=print):
    tell("ready")
    wait()
tell("done")
wait()
"""


def next_line(other: subprocess.Popen[str]) -> str:
    assert other.stdout is not None
    return other.stdout.readline().strip()


def send_line(other: subprocess.Popen[str]) -> None:
    assert other.stdin is not None
    other.stdin.write("\n")
    other.stdin.flush()


@pytest.mark.slow
@pytest.mark.parametrize("end", ["kill", "close"])
def test_a_second_process_asks_and_writes_and_outlives_the_first(tmp_path: Path, docs: Path, end: str) -> None:
    (docs / "a.txt").write_text("Cats sleep.")
    uri = tmp_path / "own.db"
    with process(INDEX_AND_WAIT, docs, uri) as first, index_of(docs, uri) as second:
        assert sources(second) == {"a.txt"}
        assert not is_served_here(second.connection.address)
        (docs / "b.txt").write_text("Dogs bark.")
        assert second.get_index_done().added == ("b.txt",)
        retriever = Retriever(second, topk=9)
        assert len(retriever.get_similar_chunk_with_score("cats")) == 2
        if end == "kill":
            first.kill()
            first.wait()
        else:
            send_line(first)
            assert next_line(first) == "closed"
        assert len(retriever.get_similar_chunk_with_score("cats")) == 2  # waits until this process has taken over
        assert is_served_here(second.connection.address)
        (docs / "c.txt").write_text("Owls fly.")
        assert second.get_index_done().added == ("c.txt",)
    with index_of(docs, uri) as later:
        assert sources(later) == {"a.txt", "b.txt", "c.txt"}


def test_the_socket_is_in_a_directory_of_this_user_alone(tmp_path: Path) -> None:
    held = connect(str(tmp_path / "own.db"))
    address = Path(held.address.removeprefix("unix:"))
    assert stat.S_ISSOCK(address.lstat().st_mode)
    assert stat.S_IMODE(address.parent.lstat().st_mode) == 0o700
    held.close()
    assert not address.exists()


def test_a_folder_that_could_not_be_served_is_free_again(tmp_path: Path) -> None:
    held = connect(str(tmp_path / "own.db"))
    held.close()
    socket_path = Path(held.address.removeprefix("unix:"))
    socket_path.mkdir()  # nothing can listen there
    with pytest.raises(CollectionError, match="cannot open"):
        connect(str(tmp_path / "own.db"))
    assert lock_holder(tmp_path / "own.db" / "LOCK") is None
    socket_path.rmdir()
    connect(str(tmp_path / "own.db")).close()


def test_a_new_folder_whose_server_is_about_to_start_is_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of two first commands at once, one failed: the other had the lock, and had not yet said its address."""
    answers = iter([False, False])
    serve = OpenFolder.serve
    monkeypatch.setattr(
        OpenFolder, "serve", lambda folder, *, loaded: next(answers, True) and serve(folder, loaded=loaded)
    )
    monkeypatch.setattr(lite_folder, "LOOK_EVERY_S", 0.0)
    held = connect(str(tmp_path / "new.db"))
    assert held.address
    held.close()


def test_a_copied_folder_has_a_socket_of_its_own(tmp_path: Path) -> None:
    first = connect(str(tmp_path / "own.db"))
    shutil.copytree(tmp_path / "own.db", tmp_path / "copy.db")
    second = connect(str(tmp_path / "copy.db"))
    assert second.address != first.address
    assert first.client.list_collections() == second.client.list_collections() == []
    for held in (first, second):
        held.close()


def test_further_clients_of_this_process_find_an_open_folder(tmp_path: Path, docs: Path) -> None:
    (docs / "a.txt").write_text("Cats sleep.")
    with index_of(docs, tmp_path / "own.db") as index:
        index.get_index_done()
        client = MilvusClient(str(tmp_path / "own.db"))
        assert client.has_collection("docs")
        client.close()


@pytest.mark.skipif(sys.platform != "linux", reason="the holder of a lock is unknown here")
def test_a_folder_that_another_client_of_this_process_has_opened_can_be_used(tmp_path: Path, docs: Path) -> None:
    (docs / "a.txt").write_text("Cats sleep.")
    client = MilvusClient(str(tmp_path / "own.db"))
    with index_of(docs, tmp_path / "own.db") as index:
        index.get_index_done()
        assert sources(index) == {"a.txt"}
    assert client.has_collection("docs")
    client.close()


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="there is no kill -9 here")
@pytest.mark.slow
def test_a_writer_waits_for_that_of_another_process_until_it_ends(tmp_path: Path, docs: Path) -> None:
    waited_for: list[str] = []
    with process(WRITE, docs, tmp_path / "own.db") as other:
        held = connect(str(tmp_path / "own.db"))
        with (
            pytest.raises(CollectionError, match=r"being written by .*within 0 s"),
            writer_lock(held, "docs", LockOptions(wait_s=0), on_wait=waited_for.append),
        ):
            pass
        other.kill()
        with writer_lock(held, "docs", LockOptions(), on_wait=waited_for.append):
            pass
        held.close()
    if sys.platform == "linux":
        assert waited_for[0].startswith(f"process {other.pid} (")


def test_an_unused_folder_is_free_and_keeps_its_address(tmp_path: Path) -> None:
    folder = tmp_path / "own.db"
    held = connect(str(folder))
    address = held.address
    held.close()
    assert lock_holder(folder / "LOCK") is None
    assert (folder / SOCKET_FILE).read_text() == address
    again = connect(str(folder))
    assert again.address == address
    again.close()


ASKS_AT_THE_END = """
import atexit, sys, threading
from judgetree.modules.index.lite_folder import open_folder
folder = open_folder(sys.argv[1])
from pymilvus import MilvusClient
client = MilvusClient(folder.address)
answered = threading.Event()

def ask():
    print("collections:", client.list_collections(), flush=True)
    answered.set()

def ask_at_the_end():  # registered last, so that it comes before the folder is closed
    threading.Thread(target=ask, daemon=True).start()
    answered.wait(20)

atexit.register(ask_at_the_end)
"""


def test_a_call_while_python_exits_is_answered_and_holds_nothing_up(tmp_path: Path) -> None:
    """As when a run ends with an error while other questions search: the process would never end, and keep the lock."""
    command = [sys.executable, "-c", ASKS_AT_THE_END, str(tmp_path / "milvus.db")]
    ended = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True)
    assert ended.stdout == "collections: []\n"
