"""A generated data set, indexed once, and batch runs over it in processes of their own."""

from __future__ import annotations

import atexit
import functools
import multiprocessing
import os
import re
import shutil
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from judgetree.app.scripted.server import ScriptedServer
from judgetree.evaluation.datasets.registry import load_dataset
from judgetree.evaluation.datasets.standards_qa import Question, known_questions
from judgetree.evaluation.rows.store import RunRow, RunStore
from judgetree.evaluation.runs.batch_run import run_experiment
from judgetree.evaluation.runs.experiment import Experiment
from judgetree.evaluation.runs.runner import Progress
from judgetree.evaluation.runs.services import open_corpus
from judgetree.modules.embedding.embedder import create_embeddings
from judgetree.modules.settings import Settings, load_settings

from .synthetic_qa import synthetic_questions, write_hotpotqa

QUESTIONS = int(os.environ.get("JUDGETREE_BENCH_QUESTIONS", "500"))
"""Number of questions; the requirements are set for 500."""
EMBEDDINGS = "local:minilm"
MODEL = "scripted"


@dataclass(frozen=True, kw_only=True)
class Workspace:
    """A data set with its index, and the vectors of all questions and sub-questions."""

    folder: Path
    questions: tuple[Question, ...]
    """The questions, in the order of the data set."""

    @property
    def dataset(self) -> str:
        """Spec of the data set."""
        return f"hotpotqa:{self.folder / 'synthetic.json'}"

    @property
    def home(self) -> Path:
        """Folder of index, vectors and model cache."""
        return self.folder / "home"

    def run_folder(self, name: str) -> Path:
        """Return the path of a new run directory; each name can be used once."""
        return self.folder / "runs" / name


@dataclass(frozen=True, kw_only=True)
class MeasuredRun:
    """One batch run in a process of its own."""

    asked: int
    failed: int
    setup_s: float
    """Seconds for data set, index and models, without imports."""
    wall_s: float
    """Seconds from the first question to the end of the run."""
    cpu_s: float
    """Processor time of all threads within ``wall_s``."""
    peak_mb: float
    """Peak resident memory, imports and set-up included."""


@dataclass(frozen=True, kw_only=True)
class FinishedRun:
    """A run of all three systems whose calls are in the workspace's model cache."""

    folder: Path
    measured: MeasuredRun

    def rows(self, system: str) -> list[RunRow]:
        """Read the rows of one system."""
        return [row for row in RunStore(self.folder).read_rows() if row.system == system]


def new_workspace(count: int) -> Workspace:
    """Write ``count`` questions to a temporary folder, which is deleted at exit."""
    folder = Path(tempfile.mkdtemp(prefix="judgetree-bench-"))
    atexit.register(shutil.rmtree, folder, ignore_errors=True)
    items = synthetic_questions(count)
    write_hotpotqa(folder / "synthetic.json", items)
    return Workspace(folder=folder, questions=tuple(item.question for item in items))


@functools.cache
def indexed_workspace() -> Workspace:
    """Index ``QUESTIONS`` questions and embed every sub-question, once per process."""
    workspace = new_workspace(QUESTIONS)
    settings = settings_of(workspace)
    with open_corpus(load_dataset(workspace.dataset), settings):
        pass
    asked = {known.question for row in workspace.questions for known in known_questions(row)}
    create_embeddings(EMBEDDINGS, settings).embed_documents(sorted(asked))
    return workspace


@functools.cache
def finished_run() -> FinishedRun:
    """Run llm, naive and judge over the indexed workspace without latency, once per process."""
    workspace = indexed_workspace()
    folder = workspace.run_folder("finished")
    with ScriptedServer(workspace.questions) as server:
        experiment = experiment_of(workspace, server.base_url)
        settings = settings_of(workspace, base_url=server.base_url)
        return FinishedRun(folder=folder, measured=run_measured(experiment, folder, settings))


def settings_of(workspace: Workspace, *, max_concurrency: int = 8, base_url: str = "") -> Settings:
    """Make default settings for the workspace; in the model cache all servers at ``base_url`` are one."""
    names = {base_url: "scripted"} if base_url else {}
    return load_settings(
        home=workspace.home, embeddings=EMBEDDINGS, max_concurrency=max_concurrency, endpoint_names=names
    )


def experiment_of(workspace: Workspace, base_url: str, *, model: str = MODEL, **keys: object) -> Experiment:
    """Make an experiment with these keys and the scripted model at ``base_url``.

    ``model`` is any name, which separates models of one server in the model cache.
    """
    given = {"dataset": workspace.dataset, "llm": f"{base_url}#{model}", "judge": "generated", **keys}
    return Experiment.model_validate(given)


def run_measured(experiment: Experiment, out: Path, settings: Settings) -> MeasuredRun:
    """Run the experiment in a new process, whose time and memory are its own."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_run_measured, experiment, out, settings).result()


def _run_measured(experiment: Experiment, out: Path, settings: Settings) -> MeasuredRun:
    starts: list[tuple[float, float]] = []

    def note_start(progress: Progress) -> None:
        if progress.row is None:
            starts.append((time.perf_counter(), time.process_time()))

    begun = time.perf_counter()
    summary = run_experiment(experiment, out, settings=settings, on_progress=note_start)
    wall, cpu = time.perf_counter(), time.process_time()
    started_wall, started_cpu = starts[0]
    return MeasuredRun(
        asked=summary.asked,
        failed=summary.failed,
        setup_s=started_wall - begun,
        wall_s=wall - started_wall,
        cpu_s=cpu - started_cpu,
        peak_mb=peak_resident_mb(),
    )


def peak_resident_mb() -> float:
    """Return the peak resident memory of this process, in MB of 10⁶ bytes."""
    status = Path("/proc/self/status")
    if status.exists():
        # Not getrusage: its figure begins with the memory of the process that started this one.
        [peak_kib] = re.findall(r"^VmHWM:\s+(\d+) kB", status.read_text(encoding="ascii"), re.MULTILINE)
        return int(peak_kib) * 1024 / 1e6
    import resource

    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
