"""Batch evaluation: systems over question-answer data sets, their reports and comparisons.

>>> from judgetree import evaluation
>>> sorted(evaluation.__all__)[:3]
['Comparison', 'DATASETS', 'Dataset']

Names are imported when they are first used; those that make reports need the extra ``eval``.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from .datasets.fetch import fetch_dataset as fetch_dataset
    from .datasets.questions import Dataset as Dataset
    from .datasets.questions import EvalQuestion as EvalQuestion
    from .datasets.registry import DATASETS as DATASETS
    from .datasets.registry import load_dataset as load_dataset
    from .reports.compare import Comparison as Comparison
    from .reports.compare import compare_runs as compare_runs
    from .reports.page import write_report as write_report
    from .reports.report import Report as Report
    from .reports.report import load_report as load_report
    from .rows.store import RunRow as RunRow
    from .rows.store import RunStore as RunStore
    from .rows.trees import TreeStore as TreeStore
    from .run_and_report import run as run
    from .runs.batch_run import RunOptions as RunOptions
    from .runs.batch_run import run_experiment as run_experiment
    from .runs.experiment import Experiment as Experiment
    from .runs.experiment import load_experiment as load_experiment
    from .runs.pilot import estimate_run as estimate_run
    from .runs.rerun import Rerun as Rerun
    from .runs.rerun import load_rerun as load_rerun
    from .runs.runner import Progress as Progress
    from .runs.runner import RunSummary as RunSummary

_HOMES = {
    "Comparison": "reports.compare",
    "DATASETS": "datasets.registry",
    "Dataset": "datasets.questions",
    "EvalQuestion": "datasets.questions",
    "Experiment": "runs.experiment",
    "Progress": "runs.runner",
    "Report": "reports.report",
    "Rerun": "runs.rerun",
    "RunOptions": "runs.batch_run",
    "RunRow": "rows.store",
    "RunStore": "rows.store",
    "RunSummary": "runs.runner",
    "TreeStore": "rows.trees",
    "compare_runs": "reports.compare",
    "estimate_run": "runs.pilot",
    "fetch_dataset": "datasets.fetch",
    "load_dataset": "datasets.registry",
    "load_experiment": "runs.experiment",
    "load_report": "reports.report",
    "load_rerun": "runs.rerun",
    "run": "run_and_report",
    "run_experiment": "runs.batch_run",
    "write_report": "reports.page",
}

__all__ = [*_HOMES]  # noqa: PLE0604 - names only


def __getattr__(name: str) -> object:
    if name not in _HOMES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from ..modules.errors import needs_extra  # noqa: PLC0415 - what is lazy stays light

    with needs_extra("eval", what=f"{__name__}.{name}"):
        value = getattr(importlib.import_module(f".{_HOMES[name]}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted(__all__)
