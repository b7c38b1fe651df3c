"""README, tutorials and how-to pages: their Python runs as it stands there, and their commands and settings exist."""

from __future__ import annotations

import re
import shlex
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
PAGES = {"README.md": README} | {
    path.relative_to(REPO / "docs").as_posix(): path.read_text(encoding="utf-8")
    for folder in ("tutorials", "how-to")
    for path in sorted((REPO / "docs" / folder).glob("*.md"))
}
GUIDES = "\n".join(PAGES.values())


def blocks(language: str, text: str = GUIDES) -> list[str]:
    return re.findall(rf"^```{language}\n(.*?)^```", text, re.MULTILINE | re.DOTALL)


def steps(page: str) -> list[tuple[str, str, str]]:
    """Language and content of each block, and the file that the words before it name."""
    found = re.findall(r"(?:^Put this into `(\w+\.py)`:\n\n|)^```(python|sh)\n(.*?)^```", page, re.M | re.S)
    return [(language, block, file) for file, language, block in found]


LEFT_OUT = ("chat", "serve")
"""Commands that go on until they are ended."""


@pytest.mark.slow
def test_the_tutorials_run_command_by_command(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(REPO / "data", "data")
    monkeypatch.syspath_prepend(str(Path.cwd()))
    rows = load_standards_qa("data/standards_qa.jsonl")
    with ScriptedServer(rows, dialogues=load_dialogues("data/standards_dialogues.jsonl")) as server:
        monkeypatch.setenv("JUDGETREE_LLM", f"{server.base_url}#scripted")
        for name in ("first-question", "your-own-questions", "your-own-judge", "conversation-and-page"):
            namespace: dict[str, object] = {"questions": [row.question for row in rows[:2]], "rows": rows}
            for language, block, file in steps(PAGES[f"tutorials/{name}.md"]):
                if language == "python":
                    if file:
                        Path(file).write_text(block, encoding="utf-8")
                    exec(compile(block, name, "exec"), namespace)
                for words in map(shlex.split, block.splitlines() if language == "sh" else ()):
                    if words[0] == "judgetree" and words[1] not in LEFT_OUT:
                        assert main(words[1:]) == 0, words
    assert Path("flange.html").stat().st_size > 10_000
    assert {path.name for path in Path("runs").iterdir()} >= {"mine", "notebook", "fair", "judges"}
    said = capsys.readouterr().out
    assert "212 °C" in said
    assert "1.5 times the rated load from history" in said


@pytest.mark.slow
def test_the_python_blocks_of_each_page_run(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(REPO / "data", "data")
    rows = load_standards_qa("data/standards_qa.jsonl")
    with ScriptedServer(rows, dialogues=load_dialogues("data/standards_dialogues.jsonl")) as server:
        monkeypatch.setenv("JUDGETREE_LLM", f"{server.base_url}#scripted")
        with judgetree.open_index("standards", judgetree.load_settings(), data_path=Path("data/standards")) as index:
            index.get_index_done()
        given = {"questions": [row.question for row in rows[:2]], "rows": rows[:30]}
        with serving(judgetree.load_settings()) as address:
            for name, page in PAGES.items():
                namespace: dict[str, object] = {**given}
                for block in blocks("python", page):
                    code = block.replace("http://127.0.0.1:8808", address)
                    exec(compile(code, name, "exec"), namespace)
                for part, kind in (("LengthJudge", "judge"), ("build", "system")):
                    if part in namespace:
                        own = {kind: namespace[part]}
                        assert judgetree.ask(rows[0].question, collection="standards", **own).status == "answered"
    said = capsys.readouterr().out
    assert "35 minutes answered" in said
    assert "1.5 times the rated load history 3" in said
    assert "212 °C" in said  # streamed by the server


@pytest.mark.parametrize("command", sorted(set(re.findall(r"judgetree (\w+)(?= |$)", "\n".join(blocks("sh"))))))
def test_the_commands_exist(command: str) -> None:
    assert main([command, "--help"]) == 0


@pytest.mark.parametrize("target", sorted(set(re.findall(r"\bmake ([a-z-]+)", README)) - {"what"}))
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
    "--dialogues",
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
    "--input",
    "--no-index",
    "--find-links",
    "--no-deps",
    "--add-host",
    "--cpus-per-task",
    "--time",
}
"""Options of the scripted server, ``milvus-lite``, pip, Docker, Slurm and benchmarks, which stand beside those of
``judgetree``."""
PROSE = re.sub(r"^```.*?^```", "", GUIDES, flags=re.MULTILINE | re.DOTALL)


def test_the_options_exist() -> None:
    named = set(re.findall(r"(?<![\w-])--[a-z][a-z-]+", GUIDES))
    assert named - OPTIONS - OTHER_PROGRAMS == set()


@pytest.mark.parametrize("line", sorted(set(re.findall(r"^judgetree [^#\n]*", "\n".join(blocks("sh")), re.MULTILINE))))
def test_each_example_takes_the_options_that_it_is_given(line: str) -> None:
    words = line.split()[1:]
    name = next(name for name in (" ".join(words[:2]), words[0]) if name in COMMANDS)
    assert {word for word in words if re.fullmatch(r"--?[a-z][a-z-]*", word)} - OPTIONS_OF[name] == set()


def test_the_settings_exist() -> None:
    named = {name.lower() for name in re.findall(r"\bJUDGETREE_([A-Z_]+)\b", GUIDES)}
    assert named - Settings.model_fields.keys() - {"bench_hotpotqa"} == set()


def test_the_defaults_are_those_of_the_settings() -> None:
    told = re.findall(r"`JUDGETREE_([A-Z_]+)`(?:, | \()(\d+)\)", PROSE)
    assert len(told) >= 3
    for name, default in told:
        assert str(Settings.model_fields[name.lower()].default) == default, name
    assert f"`max_llm_calls` ({Limits().max_llm_calls})" in PROSE


def test_the_extras_are_all_told() -> None:
    table = PAGES["how-to/install.md"].partition("| extra |")[2].partition("\n\n")[0]
    extras = tomllib.loads((REPO / "pyproject.toml").read_text(encoding="utf-8"))["project"]["optional-dependencies"]
    assert set(re.findall(r"^\| `([a-z]+)` \|", table, re.MULTILINE)) == set(extras)
    installed = re.findall(r'pip install .*"(?:\.|judgetree)\[([a-z,]+)\]"', GUIDES)
    assert installed
    assert {extra for extras_of_line in installed for extra in extras_of_line.split(",")} <= set(extras)


def test_the_notebooks_are_all_told() -> None:
    listed = (REPO / "notebooks" / "README.md").read_text(encoding="utf-8")
    assert [path.name for path in (REPO / "notebooks").glob("*.ipynb") if path.name not in listed] == []


def test_the_model_files_are_told_with_their_licences() -> None:
    told = (REPO / "docs" / "reference" / "model-files.md").read_text(encoding="utf-8")
    for name in (
        QWEN_CODER.file_name,
        *(file.name for file in (*astuple(find_minilm()), *astuple(find_multilingual()))),
    ):
        assert re.search(rf"`{re.escape(name)}`.*Apache-2\.0", told), name
    assert "model-files.md" in PAGES["how-to/install.md"]


def test_what_the_demo_leaves_in_the_checkout_is_ignored() -> None:
    ignored = (REPO / ".gitignore").read_text(encoding="utf-8").splitlines()
    assert {"/judgetree-demo/", "/tree.svg", "/tree.html", ".judgetree/"} <= set(ignored)
