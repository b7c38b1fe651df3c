"""Where a Milvus Lite folder is served, no other user gets in: in a hostile place for sockets, and without sockets."""

from __future__ import annotations

import os
import socket
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from pymilvus import MilvusClient

from judgetree.modules.errors import CollectionError
from judgetree.modules.index.connection import connect
from judgetree.modules.index.index import Index
from judgetree.modules.index.lite_folder import SOCKET_FILE
from judgetree.modules.retriever.retriever import Retriever
from judgetree.modules.trust import private_address
from judgetree.modules.trust.usable import NotTrusted
from tests.modules.fake_embeddings import BagOfWordsEmbedder

pytestmark = pytest.mark.skipif(not hasattr(socket, "AF_UNIX"), reason="there are no Unix sockets here")

OWN = f"judgetree-{os.getuid()}"
LONG = "a" * 90
OTHER_USER = 12_345


def listening() -> set[str]:
    """Return the open TCP ports of this process."""
    own = {str(link.readlink()) for link in Path("/proc/self/fd").iterdir() if link.is_symlink()}
    lines = [
        line.split() for kind in ("tcp", "tcp6") for line in Path(f"/proc/net/{kind}").read_text().splitlines()[1:]
    ]
    return {fields[1] for fields in lines if fields[3] == "0A" and f"socket:[{fields[9]}]" in own}


def own_folder(base: Path) -> None:
    (base / OWN).mkdir(mode=0o700)


def open_to_others(base: Path) -> None:
    (base / OWN).mkdir()
    (base / OWN).chmod(0o755)


def writable_by_a_group(base: Path) -> None:
    (base / OWN).mkdir()
    (base / OWN).chmod(0o770)


def link_to_a_private_folder(base: Path) -> None:
    (base / "elsewhere").mkdir(mode=0o700)
    (base / OWN).symlink_to(base / "elsewhere")


def link_to_nowhere(base: Path) -> None:
    (base / OWN).symlink_to(base / "nowhere")


def plain_file(base: Path) -> None:
    (base / OWN).write_text("")


def base_in_which_all_rename(base: Path) -> None:
    base.chmod(0o777)


def of_another_user(base: Path) -> None:
    if os.getuid() != 0:
        pytest.skip("only root gives folders away")
    (base / OWN).mkdir(mode=0o700)
    os.chown(base / OWN, OTHER_USER, OTHER_USER)


PREPARED = {
    made.__name__: made
    for made in (
        own_folder,
        open_to_others,
        writable_by_a_group,
        link_to_a_private_folder,
        link_to_nowhere,
        plain_file,
        base_in_which_all_rename,
        of_another_user,
    )
}


@pytest.fixture
def base() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:  # tmp_path may be too long
        yield Path(folder)


@pytest.mark.skipif(sys.platform != "linux", reason="the open ports of a process are unknown here")
@pytest.mark.parametrize("name", ["", LONG, "a%20b", "a#b", "a?b", "a b", "ä", "数据 库"])
@pytest.mark.parametrize("prepare", PREPARED.values(), ids=PREPARED)
def test_the_socket_is_out_of_reach_for_others_and_no_port_is_open(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, prepare: Callable[[Path], None], name: str
) -> None:
    here = base / name
    here.mkdir(exist_ok=True)
    prepare(here)
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(here))
    before = listening()
    data = tmp_path / "own 库%?#.db"
    held = connect(str(data))
    place = Path(held.address.removeprefix("unix:"))
    assert held.address == f"unix:{place}" == (data / SOCKET_FILE).read_text()
    assert stat.S_ISSOCK(place.lstat().st_mode)
    assert private_address.is_private(place.parent)
    assert held.client.list_collections(timeout=10) == []
    assert listening() == before
    held.close()
    again = connect(str(data))  # the address is kept, with a random name too
    assert again.address == held.address
    again.close()


def test_a_private_folder_is_made_for_the_names_that_another_user_has_taken(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (base / OWN).write_text("")
    monkeypatch.setattr(private_address, "SHORT_FOLDERS", ())
    monkeypatch.setattr(tempfile, "tempdir", str(base))
    monkeypatch.delenv("XDG_RUNTIME_DIR", raising=False)
    address = private_address.socket_address(tmp_path / "own.db")
    place = Path(address.removeprefix("unix:"))
    assert place.parent.parent == base
    assert private_address.is_private(place.parent)
    assert private_address.earlier_address(tmp_path / "own.db", address) == address
    place.parent.chmod(0o711)
    assert private_address.earlier_address(tmp_path / "own.db", address) == ""


def test_where_no_socket_can_be_private_the_folder_is_refused_with_what_to_set(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (base / LONG).mkdir()
    (base / "a%b").mkdir()
    monkeypatch.setattr(private_address, "SHORT_FOLDERS", ())
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(base / LONG))
    monkeypatch.setattr(tempfile, "tempdir", str(base / "a%b"))
    with pytest.raises(CollectionError, match=r"too long.* one of % \? #.*Set XDG_RUNTIME_DIR to an existing folder"):
        connect(str(tmp_path / "own.db"))
    assert not list((base / LONG).iterdir()) and not list((base / "a%b").iterdir())
    monkeypatch.setenv("XDG_RUNTIME_DIR", str(base))
    connect(str(tmp_path / "own.db")).close()


def test_a_folder_of_sockets_that_was_cleared_away_is_made_again(
    base: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    address = f"unix:{base / OWN / 'a'}"
    private_address.remake_folder(address)
    assert private_address.is_private(base / OWN)
    (base / OWN).chmod(0o777)
    with pytest.raises(NotTrusted, match="not this user's alone"):
        private_address.remake_folder(address)


OTHER_PROCESS = """
import socket, sys
from judgetree.modules.index.connection import connect
del socket.AF_UNIX
try:
    connect(sys.argv[1])
except Exception as error:
    print(error)
"""


@pytest.mark.slow
def test_without_unix_sockets_only_the_process_itself_gets_in(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.txt").write_text("Cats sleep.")
    monkeypatch.delattr(socket, "AF_UNIX")
    uri = str(tmp_path / "own.db")
    with Index(BagOfWordsEmbedder(), tmp_path / "docs", None, "docs", uri=uri, search_snapshot="off") as index:
        index.get_index_done()
        assert len(Retriever(index).get_similar_chunk_with_score("cats")) == 1
        within = MilvusClient(uri)  # of this process, by path
        assert within.has_collection("docs")
        within.close()
        bare = f"http://127.0.0.1:{index.connection.address.rpartition(':')[2]}"
        for refused in ({"uri": bare}, {"uri": bare, "token": "judgetree:x"}, {"uri": bare, "token": "root:Milvus"}):
            with pytest.raises(Exception, match="Fail connecting"):
                MilvusClient(**refused, timeout=3).list_collections(timeout=3)
        said = subprocess.run(
            [sys.executable, "-c", OTHER_PROCESS, uri], capture_output=True, text=True, timeout=60, check=True
        )
        assert "one process at a time" in said.stdout
        assert not (tmp_path / "own.db" / SOCKET_FILE).exists()
