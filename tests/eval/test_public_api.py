"""``judgetree.evaluation`` as notebooks use it: public names, and a run with its frames in one call."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from judgetree import evaluation
from judgetree.app.scripted.server import ScriptedServer
from judgetree.evaluation.datasets.standards_qa import load_standards_qa
from judgetree.modules.errors import SettingsError
from tests.eval.dataset_files import standards_row, write_standards

QUESTIONS = {"ladders": ("Which colour are ladders painted?", "grey"), "drums": ("How thick are drums?", "40 mm")}


@pytest.fixture
def dataset(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[str]:
    """Two questions, and a model that knows them in the environment."""
    quotes = {f"{key}.md": f"It is said that {key} have {answer}." for key, (_, answer) in QUESTIONS.items()}
    rows = (standards_row(key, *asked, f"{key}.md", quotes[f"{key}.md"]) for key, asked in QUESTIONS.items())
    file = write_standards(tmp_path / "data", quotes, *rows)
    with ScriptedServer(load_standards_qa(file)) as server:
        monkeypatch.setenv("JUDGETREE_LLM", f"{server.base_url}#scripted")
        yield f"standards:{file}"


def test_name_that_needs_the_extra_says_so() -> None:
    code = (
        "import sys; sys.modules['pandas'] = None\n"
        "import judgetree.evaluation as evaluation\n"
        "from judgetree.modules.errors import DependencyError\n"
        "try: evaluation.load_report\n"
        "except DependencyError as error: print(error)\n"
    )
    told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "judgetree[eval]" in told


def test_a_run_gives_its_frames_and_costs_nothing_again(dataset: str, tmp_path: Path) -> None:
    out, told = tmp_path / "run", []
    report = evaluation.run(
        dataset=dataset,
        systems=("llm",),
        out=out,
        on_progress=lambda progress: told.append((progress.done, progress.total)),
    )
    assert set(report.questions["question_id"]) == set(QUESTIONS)
    assert set(report.systems["system"]) == {"llm"}
    assert told[-1] == (2, 2)
    again = evaluation.run(evaluation.Experiment(dataset=dataset), systems=("llm",), out=str(out))
    assert list(again.questions["thread_id"]) == list(report.questions["thread_id"])


def test_a_file_of_keys_or_a_run_is_an_experiment_too(dataset: str, tmp_path: Path) -> None:
    file, first, second = tmp_path / "experiment.yaml", tmp_path / "a", tmp_path / "b"
    file.write_text(f"dataset: {dataset}\nsystems: [llm]\nlimit: 2\n", encoding="utf-8")
    assert len(evaluation.run(file, out=first, limit=1).questions) == 1
    repeated = evaluation.run(first, out=second, cache="replay")
    assert list(repeated.questions["question_id"]) == ["ladders"]


@pytest.mark.parametrize(("keys", "named"), [({}, "No experiment"), ({"dataset": "x:y", "speed": 1}, "speed")])
def test_keys_that_are_not_usable_are_refused(tmp_path: Path, keys: dict[str, object], named: str) -> None:
    with pytest.raises(SettingsError, match=named):
        evaluation.run(out=tmp_path / "run", **keys)
