"""Rows of a run directory for tests."""

from __future__ import annotations

from judgetree.evaluation.metrics.tree import TreeFigures
from judgetree.evaluation.rows.store import RunRow


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


def tree_figures(**counts: float) -> TreeFigures:
    """The figures of a tree in which nothing was counted but these."""
    zeros: dict[str, float] = dict.fromkeys(TreeFigures.__dataclass_fields__, 0)
    return TreeFigures(**{**zeros, **counts})  # type: ignore[arg-type]
