"""What Milvus refuses, or a server that died, reaches the user in words with a remedy."""

from __future__ import annotations

import socket
import subprocess
import sys
from pathlib import Path
from typing import cast

import grpc
import pytest
from pymilvus import MilvusClient
from pymilvus.exceptions import MilvusException

from judgetree.modules.errors import MilvusFailure
from judgetree.modules.index.connection import READ_TIMEOUT_S, MilvusConnection, explained, milvus_errors
from judgetree.modules.index.index import Index
from tests.modules.fake_embeddings import BagOfWordsEmbedder


def test_every_call_of_a_connection_fails_with_words(connection: MilvusConnection) -> None:
    with pytest.raises(
        MilvusFailure, match=r"could not describe collection: .*'nowhere'.*judgetree collections"
    ) as caught:
        connection.client.describe_collection("nowhere")
    assert isinstance(caught.value.__cause__, MilvusException)


@pytest.mark.parametrize(
    ("said", "remedy"),
    [
        ("Fail connecting to server", "Check that the server runs"),
        ("PrivilegeInsert: permission deny", "JUDGETREE_MILVUS_TOKEN"),
        ("quota exceeded[reason=disk quota exceeded]", "short of room"),
        ("collection not found[database=default]", "judgetree collections"),
        ("an odd thing", "server's log"),
        ("", "server's log"),
    ],
)
def test_each_kind_has_its_remedy(said: str, remedy: str) -> None:
    with pytest.raises(MilvusFailure, match="Milvus could not insert: ") as caught, milvus_errors("insert"):
        raise MilvusException(message=said)
    assert remedy in str(caught.value)


@pytest.mark.slow
def test_a_server_that_dies_while_it_is_used_is_named(tmp_path: Path) -> None:
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("Cats sleep.")
    command = [sys.executable, "-m", "milvus_lite", "server", "--data-dir", str(tmp_path / "own.db")]
    with subprocess.Popen([*command, "--host", "127.0.0.1", "--port", str(port)]) as server:
        with grpc.insecure_channel(f"127.0.0.1:{port}") as channel:
            grpc.channel_ready_future(channel).result(timeout=60)
        uri = f"http://127.0.0.1:{port}"
        with Index(BagOfWordsEmbedder(), tmp_path / "docs", None, "docs", uri=uri, token="") as index:
            index.get_index_done()
            server.kill()
            server.wait()
            for use in (index.get_index_done, index.content_digest, index.collections):
                with pytest.raises(MilvusFailure, match="Check that the server runs"):
                    use()


class _Silent:
    """A client that says how long it would wait."""

    def query(self, name: str, *, timeout: float | None = None) -> tuple[str, float | None]:
        return name, timeout

    def flush(self, name: str, *, timeout: float | None = None) -> tuple[str, float | None]:
        return name, timeout


def test_a_read_waits_for_a_suspended_server_for_a_while_only() -> None:
    client = explained(cast(MilvusClient, _Silent()))
    assert client.query("docs") == ("docs", READ_TIMEOUT_S)
    assert client.query("docs", timeout=5) == ("docs", 5)
    assert client.flush("docs") == ("docs", None)
