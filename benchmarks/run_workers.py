"""A batch run of 500 judge questions over two Ray workers against one process, on this machine, in turns.

The model's endpoint is inside the processes and takes 0.2 s: judgetree's whole client works, and no server shares the
cores. Each run has a process of its own. JUDGETREE_BENCH_ROUNDS (5) rounds.
"""

from __future__ import annotations

import multiprocessing
import os
import statistics
import time
from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

from judgetree.evaluation.rows.store import RunStore
from judgetree.evaluation.runs.batch_run import RunOptions, run_experiment
from judgetree.evaluation.runs.runner import Progress
from judgetree.evaluation.runs.workers import Workers

from .eval_runs import Workspace, experiment_of, indexed_workspace, settings_of
from .in_process_endpoint import LATENCY_S, ModelInProcess, give_questions
from .measurement import Row

CALLS_AT_ONCE = 128
QUESTIONS_AT_ONCE = 256
WORKERS = 2
ROUNDS = int(os.environ.get("JUDGETREE_BENCH_ROUNDS", "5"))
_TICKS_A_SECOND = os.sysconf("SC_CLK_TCK")


@dataclass(frozen=True, kw_only=True)
class Measured:
    """One run."""

    wall_s: float
    """From the first question to the last row."""
    besides_s: float
    """The rest of the command: index, models, start and end of the workers."""
    cpu_s: dict[str, float]
    """Processor time within ``wall_s``, by process."""

    @property
    def all_cpu_s(self) -> float:
        """Processor time of all processes."""
        return sum(self.cpu_s.values())


def cpu_s_of_family() -> dict[str, float]:
    """Return the processor time of this process and of all that it has started, by number and name."""
    parents, found = dict[int, int](), dict[int, tuple[str, float]]()
    for file in Path("/proc").glob("[0-9]*/stat"):
        try:
            name, _, rest = file.read_text(encoding="utf-8").partition("(")[2].rpartition(") ")
            title = file.with_name("cmdline").read_bytes().partition(b"\0")[0].decode()
        except OSError:
            continue
        fields, pid = rest.split(), int(file.parent.name)
        parents[pid] = int(fields[1])
        is_worker = title.startswith("ray::Worker")
        found[pid] = (f"{'worker' if is_worker else name} {pid}", (int(fields[11]) + int(fields[12])) / _TICKS_A_SECOND)
    mine = {os.getpid()}
    while further := {pid for pid, parent in parents.items() if parent in mine} - mine:
        mine |= further
    return {("driver" if pid == os.getpid() else found[pid][0]): found[pid][1] for pid in mine}


def _run(workspace: Workspace, name: str, workers: Workers | None) -> Measured:
    experiment = experiment_of(
        workspace,
        "",
        llm=f"{ModelInProcess.__module__}:ModelInProcess",
        systems=("judge",),
        topk=3,
        search_type="hybrid",
        max_rec_depth=1,
        concurrency=QUESTIONS_AT_ONCE,
        cache="off",
    )
    started, notes = time.perf_counter(), list[tuple[float, dict[str, float]]]()

    def note(progress: Progress) -> None:
        if progress.done in (0, progress.total):
            notes.append((time.perf_counter(), cpu_s_of_family()))

    settings = settings_of(workspace, max_concurrency=CALLS_AT_ONCE)
    out = workspace.run_folder(name)
    summary = run_experiment(experiment, out, settings=settings, options=RunOptions(workers=workers), on_progress=note)
    ended = time.perf_counter()
    if summary.failed or len(RunStore(out).read_rows()) != len(workspace.questions):
        raise AssertionError(summary)
    (first_s, before), (last_s, after) = notes
    return Measured(
        wall_s=last_s - first_s,
        besides_s=ended - started - (last_s - first_s),
        cpu_s={process: spent - before.get(process, 0.0) for process, spent in after.items()},
    )


def measured(workspace: Workspace, name: str, workers: Workers | None) -> Measured:
    """Make a run in a new process, as the command does."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
        return pool.submit(_run, workspace, name, workers).result()


def measure() -> list[Row]:
    """Measure both ways in turn, ``ROUNDS`` times each."""
    workspace = indexed_workspace()
    give_questions(workspace)
    rounds = [
        (
            measured(workspace, f"alone-{number}", None),
            measured(workspace, f"spread-{number}", Workers(count=WORKERS)),
        )
        for number in range(ROUNDS)
    ]
    alone, spread = zip(*rounds, strict=True)
    ratios = [one.wall_s / two.wall_s for one, two in rounds]
    median = statistics.median(ratios)
    what = f"{len(workspace.questions)} judge questions, {LATENCY_S} s latency, {CALLS_AT_ONCE} calls at once"
    return [
        Row(f"{what}: seconds in one process", _listed(each.wall_s for each in alone)),
        Row(f"{what}: seconds over {WORKERS} workers", _listed(each.wall_s for each in spread)),
        Row(
            f"{what}: {WORKERS} workers, times as fast as one process, median",
            f"{median:.2f}",
            "≥ 1.5",
            holds=median >= 1.5,
            values=(median,),
            note=f"of {', '.join(f'{ratio:.2f}' for ratio in ratios)}",
        ),
        Row("CPU seconds in one process", _listed(each.all_cpu_s for each in alone)),
        Row("CPU seconds of all processes with workers", _listed(each.all_cpu_s for each in spread)),
        Row("of them the driver", _listed(each.cpu_s["driver"] for each in spread)),
        Row("the busier worker", _listed(max(_workers(each)) for each in spread)),
        Row("both workers", _listed(sum(_workers(each)) for each in spread)),
        Row("seconds besides, alone", _listed(each.besides_s for each in alone)),
        Row("seconds besides, with start and end of the workers", _listed(each.besides_s for each in spread)),
    ]


def _workers(run: Measured) -> list[float]:
    return [spent for process, spent in run.cpu_s.items() if process.startswith("worker")]


def _listed(figures: Iterable[float]) -> str:
    return ", ".join(f"{each:.1f}" for each in figures)
