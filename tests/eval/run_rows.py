"""Rows of a run directory for tests."""

from __future__ import annotations

from pathlib import Path

from judgetree.evaluation.datasets.registry import load_dataset
from judgetree.evaluation.metrics.tree import TreeFigures
from judgetree.evaluation.rows.store import RunRow, RunStore
from judgetree.evaluation.runs.experiment import Experiment
from judgetree.evaluation.runs.manifest import manifest_of
from judgetree.modules.settings import load_settings


def run_row(**changes: object) -> RunRow:
    """An answered question of the judge, with these fields changed."""
    values: dict[str, object] = {
        "system": "judge",
        "question_id": "q",
        "repeat": 0,
        "attempt": 0,
        "question": "Who?",
        "prediction": "Ada",
        "status": "answered",
        "error": "",
        "thread_id": "t",
        "seconds": 1.0,
        "tree": None,
        "chunks": (),
    }
    return RunRow(**{**values, **changes})  # type: ignore[arg-type]


def write_run(folder: Path, right: dict[str, int], **experiment: object) -> Path:
    """A run in which each system had its first so many questions right, and took a second more for each."""
    chosen = Experiment.model_validate(experiment)
    dataset, store = load_dataset(chosen.dataset), RunStore(folder)
    with store.held():
        store.write_manifest(manifest_of(chosen, dataset, load_settings(llm="http://127.0.0.1:1/v1#m")))
        for system, count in right.items():
            for number, question in enumerate(dataset.questions):
                said = {"prediction": "right" if number < count else "wrong", "seconds": 1.0 + number}
                for repeat in range(chosen.repeats):
                    place = {"system": system, "question_id": question.id, "repeat": repeat}
                    store.append(run_row(**place, **said, thread_id=f"{system}-{number}-{repeat}"))
    return folder


def tree_figures(**counts: float) -> TreeFigures:
    """The figures of a tree in which nothing was counted but these."""
    zeros: dict[str, float] = dict.fromkeys(TreeFigures.__dataclass_fields__, 0)
    return TreeFigures(**{**zeros, **counts})  # type: ignore[arg-type]
