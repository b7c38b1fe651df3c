"""Relative paths in a file of keys are relative to the file, for every key that has one."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from judgetree.evaluation.runs.experiment import Experiment, experiment_keys
from judgetree.evaluation.sweeps.grid import load_sweep

VALUES: Mapping[str, str] = {
    "prompts": "{}",
    "llm": "local:{}",
    "judge_llm": "local:{}",
    "insert_block_llm": "local:{}",
    "embeddings": "local:{}",
    "retriever": "prebuilt:{}",
    "dataset": "hotpotqa:{}",
    "questions": "{}",
    "corpus": "{}",
}
"""A value with a path for each key that may have one."""
PATHLESS: Mapping[str, str] = {
    "llm": "openai:gpt-4o",
    "retriever": "my_search:Mine",
    "dataset": "my_data:load",
    "corpus": "notes",
}


@pytest.fixture
def file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """An empty file of keys in a folder ``configs`` of the current folder, beside all that is named."""
    (folder := tmp_path / "configs").mkdir()
    for name in ("own/file", "notes", "load"):
        (folder / name).mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    return Path("configs/keys.yaml")


def read(file: Path, name: str, value: str) -> object:
    file.write_text(f"{name}: {value}\n", encoding="utf-8")
    return experiment_keys(file)[name]


def test_the_keys_with_paths_are_those_here() -> None:
    marked = {name for name in Experiment.model_fields if Experiment.key(name).path_in is not None}
    assert marked | {"questions"} == {*VALUES}
    named = {name for name in Experiment.model_fields if "FILE" in (Experiment.key(name).metavar or "")}
    assert named <= marked
    assert {name for name in Experiment.model_fields if "PATH" in (Experiment.key(name).metavar or "")} <= marked


def test_a_folder_beside_a_file_in_the_current_folder_stays_a_folder(file: Path) -> None:
    """`corpus: ./docs` became the collection docs, and the advice was to write ./docs."""
    Path("docs").mkdir()
    assert read(Path("keys.yaml"), "corpus", "./docs") == "./docs"
    assert read(Path("keys.yaml"), "dataset", "hotpotqa:./docs") == "hotpotqa:docs"


@pytest.mark.parametrize(("name", "form"), VALUES.items())
def test_a_path_is_relative_to_its_file(file: Path, name: str, form: str, tmp_path: Path) -> None:
    assert read(file, name, form.format("own/file")) == form.format("configs/own/file")
    assert read(file, name, form.format(tmp_path / "own/file")) == form.format(tmp_path / "own/file")
    assert read(file, name, form.format("~/own/file")) == form.format("~/own/file")
    assert read(file, name, f"[{form.format('own/file')}]") == [form.format("configs/own/file")]
    (tmp_path / "here/file").mkdir(parents=True)
    assert read(file, name, form.format("here/file")) == form.format("here/file"), "the current folder has it"
    (file.parent / "here/file").mkdir(parents=True)
    assert read(file, name, form.format("here/file")) == form.format("configs/here/file"), "the file's folder wins"
    assert read(file, name, form.format("no/file")) == form.format("no/file"), "as it stands there"


@pytest.mark.parametrize(("name", "value"), PATHLESS.items())
def test_what_is_no_path_stays(file: Path, name: str, value: str) -> None:
    assert read(file, name, value) == value


def test_a_sweep_reads_prompts_beside_its_file(file: Path) -> None:
    for name in "ab":
        (file.parent / f"{name}.yaml").write_text(f"format: judgetree-prompts/1\nreader: {{system: {name}}}\n")
    file.write_text("dataset: my_data:load\nprompts: [a.yaml, b.yaml]\n", encoding="utf-8")
    assert [point.values["prompts"] for point in load_sweep(file).points] == ["configs/a.yaml", "configs/b.yaml"]
