"""The README's Python runs as it stands there, one block after the other, and its shell commands exist."""

from __future__ import annotations

import re
import shutil
import tomllib
from dataclasses import astuple
from pathlib import Path

import pytest

import judgetree
from judgetree import Limits
from judgetree.app.cli import main
from judgetree.app.scripted.server import ScriptedServer
from judgetree.evaluation.datasets.standards_dialogues import load_dialogues
from judgetree.evaluation.datasets.standards_qa import load_standards_qa
from judgetree.modules.embedding.local import find_minilm, find_multilingual
from judgetree.modules.llm.model_files import QWEN_CODER
from judgetree.modules.settings import Settings
from tests.app.conftest import every_command
from tests.app.server.serving import serving

REPO = Path(__file__).parents[1]
README = (REPO / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", README, re.MULTILINE | re.DOTALL)


@pytest.mark.slow
def test_the_python_blocks_run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(REPO / "data", "data")
    rows = load_standards_qa("data/standards_qa.jsonl")
    with ScriptedServer(rows, dialogues=load_dialogues("data/standards_dialogues.jsonl")) as server:
        monkeypatch.setenv("JUDGETREE_LLM", f"{server.base_url}#scripted")
        with judgetree.open_index("standards", judgetree.load_settings(), data_path=Path("data/standards")) as index:
            index.get_index_done()
        namespace: dict[str, object] = {"questions": [row.question for row in rows[:2]]}
        with serving(judgetree.load_settings()) as address:
            for block in blocks("python"):
                code = block.replace("http://127.0.0.1:8808", address)
                exec(compile(code, "README.md", "exec"), namespace)
        for part in ({"judge": namespace["LengthJudge"]}, {"system": namespace["build"]}):
            assert judgetree.ask(rows[0].question, collection="standards", **part).status == "answered"
    said = capsys.readouterr().out
    assert "35 minutes answered" in said
    assert "1.5 times the rated load history 3" in said
    assert "212 °C" in said  # streamed by the server


@pytest.mark.parametrize("command", sorted(set(re.findall(r"judgetree (\w+)(?= |$)", "\n".join(blocks("sh"))))))
def test_the_commands_exist(command: str) -> None:
    assert main([command, "--help"]) == 0


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\bmake ([a-z-]+)", README))))
def test_the_make_targets_exist(target: str) -> None:
    assert re.search(rf"^{target}:", (REPO / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)


# --- statements ---


COMMANDS = every_command()
OPTIONS_OF = {
    name: {option for part in command.params for option in (*part.opts, *part.secondary_opts)}
    for name, command in COMMANDS.items()
}
OPTIONS = {option for options in OPTIONS_OF.values() for option in options}
OTHER_PROGRAMS = {
    "--help",
    "--questions",
    "--port",
    "--data-dir",
    "--host",
    "--data",
    "--n",
    "--llm",
    "--rm",
    "--wait",
    "--address",
    "--min-nodes",
    "--nodes",
    "--ntasks-per-node",
}
"""Options of the scripted server, ``milvus-lite``, Docker and benchmarks, which stand beside those of ``judgetree``."""
PROSE = re.sub(r"^```.*?^```", "", README, flags=re.MULTILINE | re.DOTALL)


def test_the_options_exist() -> None:
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", README))
    assert named - OPTIONS - OTHER_PROGRAMS == set()


@pytest.mark.parametrize("line", sorted(set(re.findall(r"^judgetree [^#\n]*", "\n".join(blocks("sh")), re.MULTILINE))))
def test_each_example_takes_the_options_that_it_is_given(line: str) -> None:
    words = line.split()[1:]
    name = next(name for name in (" ".join(words[:2]), words[0]) if name in COMMANDS)
    assert {word for word in words if re.fullmatch(r"--?[a-z][a-z-]*", word)} - OPTIONS_OF[name] == set()


def test_the_settings_exist() -> None:
    named = {name.lower() for name in re.findall(r"\bJUDGETREE_([A-Z_]+)\b", README)}
    assert named - Settings.model_fields.keys() - {"bench_hotpotqa"} == set()


def test_the_defaults_are_those_of_the_settings() -> None:
    told = re.findall(r"`JUDGETREE_([A-Z_]+)`(?:, | \()(\d+)\)", PROSE)
    assert len(told) >= 3
    for name, default in told:
        assert str(Settings.model_fields[name.lower()].default) == default, name
    assert f"`max_llm_calls` ({Limits().max_llm_calls})" in PROSE


def test_the_extras_are_all_told() -> None:
    extras = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert set(re.findall(r"^\| `([a-z]+)` \|", README.partition("| extra |")[2].partition("\n\n")[0], re.M)) == set(
        extras
    )
    installed = re.findall(r'pip install .*"\.\[([a-z,]+)\]"', README)
    assert installed
    assert {extra for extras_of_line in installed for extra in extras_of_line.split(",")} <= set(extras)


def test_the_notebooks_are_all_told() -> None:
    listed = (REPO / "notebooks" / "README.md").read_text(encoding="utf-8")
    assert [path.name for path in (REPO / "notebooks").glob("*.ipynb") if path.name not in listed] == []


def test_what_is_said_to_be_missing_is_missing() -> None:
    assert "conversations list" in COMMANDS
    assert "not there at all" not in README


def test_the_model_files_are_told_with_their_licences() -> None:
    told = (REPO / "docs" / "reference" / "model-files.md").read_text(encoding="utf-8")
    for name in (
        QWEN_CODER.file_name,
        *(file.name for file in (*astuple(find_minilm()), *astuple(find_multilingual()))),
    ):
        assert re.search(rf"`{re.escape(name)}`.*Apache-2\.0", told), name
    assert "docs/reference/model-files.md" in README


def test_what_the_demo_leaves_in_the_checkout_is_ignored() -> None:
    ignored = (REPO / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert {"/judgetree-demo/", "/tree.svg", "/tree.html", ".judgetree/"} <= set(ignored)
