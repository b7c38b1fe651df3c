"""The README's Python runs as it stands there, one block after the other, and its shell commands exist."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import judgetree
from judgetree.app.scripted_server import ScriptedServer
from judgetree.evaluation.datasets.standards_dialogues import load_dialogues
from judgetree.evaluation.datasets.standards_qa import load_standards_qa

REPO = Path(__file__).parents[1]
README = (REPO / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


def test_the_python_blocks_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(REPO / "data", "data")
    rows = load_standards_qa("data/standards_qa.jsonl")
    with ScriptedServer(rows, dialogues=load_dialogues("data/standards_dialogues.jsonl")) as server:
        monkeypatch.setenv("JUDGETREE_LLM", f"{server.base_url}#scripted")
        with judgetree.open_index("standards", judgetree.load_settings(), data_path=Path("data/standards")) as index:
            index.get_index_done()
        namespace: dict[str, object] = {"questions": [row.question for row in rows[:2]]}
        for block in blocks("python"):
            exec(compile(block, "README.md", "exec"), namespace)
    said = capsys.readouterr().out
    assert "35 minutes answered" in said
    assert "1.5 times the rated load history 3" in said


@pytest.mark.parametrize("command", sorted(set(re.findall(r"judgetree (\w+)(?= |$)", "\n".join(blocks("sh"))))))
def test_the_commands_exist(command: str) -> None:
    done = subprocess.run(
        [sys.executable, "-m", "judgetree.app", command, "--help"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\bmake ([a-z-]+)", README))))
def test_the_make_targets_exist(target: str) -> None:
    assert re.search(rf"^{target}:", (REPO / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
