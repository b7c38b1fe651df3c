"""The exports of ``judgetree.evaluation``; each is imported when it is first used."""

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
