"""Where the trees of two runs part, and what that did to exact match."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from judgetree import SearchTree
from judgetree.evaluation import TreeStore, diff_runs
from judgetree.evaluation.datasets.registry import load_dataset
from judgetree.evaluation.rows.store import RunStore
from judgetree.evaluation.runs.experiment import Experiment
from judgetree.evaluation.runs.manifest import manifest_of
from judgetree.graphs.tree.nodes import ChunkNode, QueryNode
from judgetree.modules.errors import SettingsError
from judgetree.modules.settings import load_settings
from tests.eval.dataset_files import write_lines
from tests.eval.run_rows import run_row

Answers = dict[str, tuple[int, str]]
"""By question: the score of its chunk, and the answer."""
A: Answers = {"q0": (1, "right"), "q1": (1, "wrong"), "q2": (1, "right"), "q3": (1, "right")}
B: Answers = {"q0": (0, "wrong"), "q1": (0, "right"), "q2": (1, "right"), "q3": (1, "other")}


def write_run(folder: Path, file: Path, answers: Answers, *, system: str = "judge") -> Path:
    experiment = Experiment.model_validate({"dataset": f"flashrag:{file}"})
    dataset = load_dataset(experiment.dataset)
    store = RunStore(folder)
    with store.held():
        store.write_manifest(manifest_of(experiment, dataset, load_settings(llm="http://127.0.0.1:1/v1#m")))
        for question_id, (score, answer) in answers.items():
            metadata = {"rank": 0, "verdict": "judged", "score": score}
            chunk = ChunkNode(chunk_id="c", text="text", metadata=metadata)
            root = QueryNode(
                thread_id=f"{system}-{question_id}",
                query=f"Question {question_id}?",
                answer=answer,
                status="finished",
                answer_status="answered",
                chunks=(chunk,),
            )
            row = run_row(system=system, question_id=question_id, prediction=answer, thread_id=root.thread_id)
            TreeStore(folder).append(root.thread_id, SearchTree(root=root))
            store.append(row)
    return folder


@pytest.fixture
def file(tmp_path: Path) -> Path:
    rows = ({"id": name, "question": f"Question {name}?", "golden_answers": ["right"]} for name in A)
    return write_lines(tmp_path, *rows)


def test_each_way_of_parting_is_counted_with_what_it_won_and_lost(tmp_path: Path, file: Path) -> None:
    a, b = write_run(tmp_path / "a", file, A), write_run(tmp_path / "b", file, B)
    diff = diff_runs(a, b)
    assert diff.table.values.tolist() == [
        ["depth 0, verdict", 2, 0.5, 0.5, 1, 1],
        ["alike", 1, 1.0, 1.0, 0, 0],
        ["depth 0, answer", 1, 1.0, 0.0, 0, 1],
        ["all", 4, 0.75, 0.5, 1, 2],
    ]
    assert "lost q0 (depth 0, verdict): right → wrong" in diff.to_text()
    assert json.loads(json.dumps(diff.to_document()))["questions"][1]["effect"] == 1.0
    assert "depth 0, verdict" in diff.to_html() and "depth 0, verdict" in diff._repr_html_()
    first = diff.tree("q1").first
    assert first is not None and (first.a, first.b) == ("1", "0")
    with pytest.raises(SettingsError, match="No two trees of the question 'q9'"):
        diff.tree("q9")


def test_systems_of_one_name_or_alone_are_compared_and_others_are_asked_for(tmp_path: Path, file: Path) -> None:
    a = write_run(tmp_path / "a", file, A)
    naive = write_run(tmp_path / "naive", file, B, system="naive")
    assert len(diff_runs(a, naive).questions) == 4
    with pytest.raises(SettingsError, match="Name one of both"):
        diff_runs(a, naive, systems=["judge"])
    both = write_run(tmp_path / "a", file, B, system="naive")
    with pytest.raises(SettingsError, match="has: naive, judge"):
        diff_runs(both, both)
    assert diff_runs(both, both, systems=["judge", "naive"]).table["lost"].iloc[-1] == 2


def test_questions_of_one_run_alone_are_left_out_and_counted(tmp_path: Path, file: Path) -> None:
    a, b = write_run(tmp_path / "a", file, A), write_run(tmp_path / "b", file, {"q0": B["q0"]})
    diff = diff_runs(a, b)
    assert (len(diff.questions), diff.left_out) == (1, 3)
    assert "3 questions of one run alone left out" in diff.to_text()
