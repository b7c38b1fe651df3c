from __future__ import annotations

import json
from pathlib import Path

import pytest

from judgetree.modules.index.connection import connect
from judgetree.modules.storage.file_locks import lock_holder
from tests.app.conftest import CHAIN, COLLECTION, CORPUS, Cli


def test_collections_are_listed(cli: Cli, home: Path) -> None:
    done = cli("collections").ok()
    assert done.out.split()[:5] == [COLLECTION, str(len(CORPUS)), "chunks", str(len(CORPUS)), "files"]
    assert "local:use" in done.out


def test_memory_of_conversations_is_no_collection_to_ask(cli: Cli, chat: Cli) -> None:
    assert chat(CHAIN.question).status == 0
    assert [found["name"] for found in json.loads(cli("collections", "--json").out)] == [COLLECTION]


@pytest.mark.parametrize(
    ("command", "advice"),
    [
        (("collections",), "judgetree index"),
        (("threads",), "judgetree ask"),
        (("conversations", "list"), "judgetree chat"),
    ],
)
def test_a_list_of_nothing_creates_nothing(cli: Cli, tmp_path: Path, command: tuple[str, ...], advice: str) -> None:
    done = cli(*command).ok()
    assert (done.out, advice in done.err) == ("", True)
    assert cli(*command, "--json").out == "[]\n"
    assert not (Path.cwd() / ".judgetree").exists()


def test_a_milvus_server_that_is_not_there_is_told(cli: Cli, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JUDGETREE_MILVUS_URI", "http://127.0.0.1:9")
    cli("collections").refused("http://127.0.0.1:9")


@pytest.mark.parametrize(
    "arguments",
    [
        ("collections",),
        ("ask", CHAIN.question, "-c", COLLECTION),
        ("ask", CHAIN.question, "-c", "nothing"),
        ("index", "--remove", "a.md", "-c", COLLECTION),
        ("doctor",),
    ],
)
def test_every_command_gives_the_database_back(cli: Cli, home: Path, arguments: tuple[str, ...]) -> None:
    connection = connect(str(home / "milvus.db"))
    assert lock_holder(home / "milvus.db" / "LOCK") is not None
    connection.close()
    cli(*arguments)
    assert lock_holder(home / "milvus.db" / "LOCK") is None
