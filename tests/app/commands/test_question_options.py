"""The options of a file of one's own questions stand in every command that takes one, and in every layer alike."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import click
import pytest

from judgetree import evaluation
from judgetree.app.cli import all_commands
from judgetree.evaluation.datasets.own_questions import load_own_questions
from judgetree.evaluation.rows.store import RunStore
from judgetree.evaluation.runs.experiment import load_experiment
from judgetree.evaluation.runs.jobs import dataset_of
from judgetree.evaluation.runs.manifest import experiment_in
from judgetree.modules.errors import SettingsError
from tests.app.conftest import Cli

OPTIONS = {"questions", "columns", "separator", "encoding", "skip_bad_rows"}
TAKE_ONLY_PUBLIC_SETS = {"eval calibrate"}
"""Commands whose data set brings its own documents, which a file of questions does not."""


def commands(group: click.Command, name: str = "") -> Iterator[tuple[str, click.Command]]:
    for each, command in getattr(group, "commands", {}).items():
        yield from commands(command, f"{name} {each}".strip())
    if not hasattr(group, "commands"):
        yield name, group


def test_every_command_that_takes_questions_takes_how_to_read_them() -> None:
    found = {name: {each.name for each in command.params} for name, command in commands(all_commands())}
    asking = {name for name, params in found.items() if params & {"dataset", "questions"}} - TAKE_ONLY_PUBLIC_SETS
    assert asking == {"eval run", "eval record"}
    assert {name: OPTIONS - found[name] for name in asking} == {name: set() for name in asking}


@pytest.fixture
def file(tmp_path: Path) -> Path:
    (tmp_path / "mine.csv").write_text("Frage;answer\nWann?;né / x|y\n;z\n", encoding="cp1252")
    return tmp_path / "mine.csv"


def test_a_run_keeps_how_its_questions_were_read(
    cli: Cli, file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    reading = ("--columns", "question=Frage", "--separator", "/", "--encoding", "cp1252", "--skip-bad-rows")
    command = ("eval", "run", "--questions", str(file), "--systems", "llm", "--out", str(tmp_path / "run"))
    told = cli(*command, *reading, "--json").ok()
    document = json.loads(told.out)["questions_read"]
    assert (document["questions"], document["left_out"], document["encoding"]) == (1, 1, "cp1252")
    assert (
        told.err.count(f"Read {file}: 1 questions, 1 with answers, 0 with supporting files, 1 bad rows left out;") == 1
    )
    manifest = RunStore(tmp_path / "run").read_manifest() or {}
    again = dataset_of(experiment_in(manifest))
    assert [each.answers for each in again.questions] == [("né", "x|y")]
    assert manifest["questions_read"] == document
    assert cli("eval", "report", str(tmp_path / "run")).ok()
    assert json.loads(cli(*command, *reading, "--json").ok().out)["kept"] == 1
    cli(*command, *reading[:2], *reading[4:]).refused("separator: '/' there, None now")


def test_python_and_yaml_say_the_same(file: Path, tmp_path: Path) -> None:
    keys = {"columns": {"question": "Frage"}, "separator": "/", "encoding": "cp1252", "skip_bad_rows": True}
    (tmp_path / "e.yaml").write_text(json.dumps({"questions": str(file), **keys}))
    direct = load_own_questions(file, **keys)  # type: ignore[arg-type]
    assert dataset_of(load_experiment(tmp_path / "e.yaml")).digest == direct.digest
    assert evaluation.load_dataset(f"questions:{file}", **keys).digest == direct.digest  # type: ignore[arg-type]
    assert load_experiment(questions=str(file), separator="None").separator == "none"
    for wrong in ({"separator": ""}, {"encoding": "zip"}):
        with pytest.raises(SettingsError, match=r"cannot stand between answers|is not an encoding"):
            load_experiment(questions=str(file), **wrong)
    for name, value in keys.items():
        with pytest.raises(SettingsError, match=f"{name} is not allowed: hotpotqa has a form of its own"):
            evaluation.load_dataset("hotpotqa:x.json", **{name: value})  # type: ignore[arg-type]


def test_a_run_of_an_older_version_reads_as_that_version_did(tmp_path: Path) -> None:
    (tmp_path / "q.jsonl").write_text('{"question": "Who?", "answer": "x | y"}\n{"question": ""}\n')
    kept = load_experiment(questions=str(tmp_path / "q.jsonl")).model_dump(mode="json")
    older = {name: value for name, value in kept.items() if name not in ("separator", "encoding", "skip_bad_rows")}
    [question] = dataset_of(experiment_in({"experiment": older})).questions
    assert question.answers == ("x", "y")
