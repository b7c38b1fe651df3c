"""A home folder is its owner's alone: every file 0600, every folder 0700, whatever the umask and what uses it."""

from __future__ import annotations

import ast
import io
import os
import sqlite3
import stat
import sys
from collections.abc import Iterator
from contextlib import closing
from dataclasses import asdict
from pathlib import Path

import httpx
import pytest

from judgetree.modules.settings import load_settings
from judgetree.modules.storage.file_locks import lock_beside
from judgetree.modules.trust.closed import open_private
from judgetree.modules.trust.private import HOME_NAME, close_home, private_file, private_folder
from tests.app.conftest import CHAIN, CHINESE, COLLECTION, Cli, cli, scripted, surroundings, write_corpus
from tests.app.server.collections.test_upload import upload
from tests.app.server.serving import serving
from tests.eval.dataset_files import write_lines

__all__ = ["cli", "scripted", "surroundings"]
pytestmark = pytest.mark.skipif(sys.platform == "win32", reason="modes are those of POSIX")


@pytest.fixture
def open_umask() -> Iterator[None]:
    """The umask of a careless system: what is made without a mode is open to all."""
    before = os.umask(0)
    yield
    os.umask(before)


def open_places(folder: Path) -> dict[str, str]:
    """Everything in a folder, and the folder itself, that others have a right to, with its mode."""
    found = {place: stat.S_IMODE(place.lstat().st_mode) for place in (folder, *folder.rglob("*"))}
    return {
        str(place.relative_to(folder)): oct(mode)
        for place, mode in found.items()
        if mode != (0o700 if place.is_dir() else 0o600)
    }


def test_a_whole_session_leaves_nothing_open(
    cli: Cli, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, open_umask: None
) -> None:
    home = tmp_path / "deep" / "home"
    monkeypatch.setenv("JUDGETREE_HOME", str(home))
    corpus = write_corpus(tmp_path / "corpus")
    cli("index", str(corpus), "-c", COLLECTION, "--graph", "links").ok()
    cli("ask", CHAIN.question, "-c", COLLECTION).ok()
    monkeypatch.setattr(sys, "stdin", io.StringIO(f"{CHAIN.question}\n"))
    cli("chat", "-c", COLLECTION, "--record", "full").ok()
    cli("keys", "add", "ada", "--all-collections").ok()
    write_corpus(tmp_path / "data" / "standards")
    data = write_lines(tmp_path / "data", asdict(CHAIN), asdict(CHINESE), name="qa.jsonl")
    cli("eval", "run", "--dataset", f"standards:{data}", "--systems", "naive", "--out", str(tmp_path / "run")).ok()
    settings = load_settings()
    with serving(settings) as address, httpx.Client(base_url=address, timeout=60) as client:
        assert upload(client, {"drum.md": b"The drum is red."})["status"] == "done"
    assert open_places(home) == {}
    assert {path.name for path in home.rglob("*")} >= {"checkpoints.sqlite", "keys.sqlite", "milvus.db", "uploads"}
    written = [path for path in (tmp_path / "run").iterdir() if path.suffix in (".json", ".jsonl", ".sqlite")]
    assert {stat.S_IMODE(path.stat().st_mode) for path in written} == {0o666}, "a run is the user's own, by the umask"


def test_what_is_private_is_so_before_its_first_byte(tmp_path: Path, open_umask: None) -> None:
    file = tmp_path / "a" / "b" / "file"
    private_file(file)
    assert open_places(tmp_path / "a") == {}
    file.chmod(0o666)
    with open_private(file, "wb") as opened:
        assert stat.S_IMODE(os.fstat(opened.fileno()).st_mode) == 0o600
    file.chmod(0o660)
    assert stat.S_IMODE(private_file(file).stat().st_mode) == 0o660, "what its owner has shared stays shared"


def test_what_is_beside_a_shared_database_has_its_mode(tmp_path: Path, open_umask: None) -> None:
    """A group shares checkpoints by chmod: the log and the lock beside them must not shut its members out."""
    file = private_file(tmp_path / "checkpoints.sqlite")
    file.chmod(0o660)
    with lock_beside(file), closing(sqlite3.connect(file)) as connection:
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("CREATE TABLE kept (text TEXT)")
        modes = {path.name: oct(stat.S_IMODE(path.stat().st_mode)) for path in tmp_path.iterdir() if path.is_file()}
    beside = ("", "-wal", "-shm", ".lock")
    assert modes == {f"checkpoints.sqlite{each}": "0o660" for each in beside}


def test_a_home_of_an_older_version_is_closed_and_nothing_else(tmp_path: Path, open_umask: None) -> None:
    home, outside = tmp_path / HOME_NAME, tmp_path / "outside"
    (home / "milvus.db" / "collections").mkdir(parents=True)
    for file in (home / "checkpoints.sqlite", home / "milvus.db" / "collections" / "0.parquet", outside):
        file.write_text("x")
    (home / "link").symlink_to(outside)
    private_folder(home / "uploads")
    assert not {name for name in open_places(home) if name != "link"}
    assert stat.S_IMODE(outside.stat().st_mode) == 0o666
    shared = home / "checkpoints.sqlite"
    shared.chmod(0o660)
    close_home(home)
    assert stat.S_IMODE(shared.stat().st_mode) == 0o660, "a closed home is not walked again"


MAKERS = frozenset(
    {"mkdir", "makedirs", "touch", "write_text", "write_bytes", "copyfile", "FileLock", "connect", "open"}
)
BY_THE_UMASK = {
    "modules/trust/closed.py": "makes private folders",
    "modules/calls/transcripts.py": "reads; and a run's are the user's own",
    "modules/index/lite_files.py": "within a folder of Milvus Lite, which is private and closed when it is closed",
    "modules/trust/private_address.py": "the folder of the socket, with a mode of its own",
    "modules/cluster.py": "within a temporary folder of this user",
    "modules/storage/file_locks.py": "makes private locks; that of a run is the user's own",
    "modules/storage/sqlite.py": "opens what private_file has made",
    "modules/storage/atomic.py": "reports and tables of the user; private where it is asked to be",
    "graphs/conversation/qa_log.py": "a file that the user names, with a mode of its own",
    "app/commands/demo.py": "a folder that the user names",
    "app/commands/new/new.py": "a package of the user's own",
    "app/server/collections/uploads.py": "within a temporary folder of this user",
}
"""Files that make files or folders otherwise than by modules/trust; those of eval/ make the user's runs and reports."""


def _makes(call: ast.Call) -> bool:
    name = call.func.attr if isinstance(call.func, ast.Attribute) else getattr(call.func, "id", "")
    if name == "connect":
        return ast.unparse(call.func).startswith("sqlite3")
    kinds = [each.value for each in call.args if isinstance(each, ast.Constant) and isinstance(each.value, str)]
    return name in MAKERS and (name != "open" or any(set(kind) & set("wax+") and len(kind) < 4 for kind in kinds))


def test_whatever_makes_a_file_makes_it_private_or_says_why_not() -> None:
    """A new store cannot forget it: eval/ aside, files are made by modules/trust, or stand above with a reason."""
    repository = Path(__file__).parents[2]
    found = {
        path.relative_to(repository).as_posix()
        for room in ("modules", "graphs", "app")
        for path in (repository / room).rglob("*.py")
        if any(_makes(node) for node in ast.walk(ast.parse(path.read_text("utf-8"))) if isinstance(node, ast.Call))
    }
    assert found == set(BY_THE_UMASK)
