"""Batch runs over a Ray cluster of three nodes on this machine, two of which are killed at random moments.

JUDGETREE_BENCH_QUESTIONS (500) questions a run, JUDGETREE_BENCH_ROUNDS (10) runs, against a scripted model behind HTTP
whose requests are counted. The limit of requests a minute is so low that each run takes longer than a minute. Each run
has a process of its own and is printed as it ends; one whose nodes don't start within Ray's 30 seconds begins again.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import sys
import threading
import time
from collections import Counter
from collections.abc import Iterator
from concurrent.futures import ProcessPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from judgetree.app.scripted.answers import ChatReply
from judgetree.app.scripted.behaviour import Behaviour
from judgetree.app.scripted.server import ScriptedServer
from judgetree.app.scripted.wire import ReceivedRequest
from judgetree.evaluation.rows.store import RunStore
from judgetree.evaluation.runs.batch_run import RunOptions, run_experiment
from judgetree.evaluation.runs.runner import Progress
from judgetree.evaluation.runs.workers import Workers

from .eval_runs import Workspace, experiment_of, indexed_workspace, settings_of
from .measurement import Row

ROUNDS = int(os.environ.get("JUDGETREE_BENCH_ROUNDS", "10"))
WORKERS = 3
CALLS_AT_ONCE = 30
LATENCY_S = 0.2
MINUTE_S = 60.0
STARTS = 4
"""Times a cluster is started for a run until the benchmark ends."""


class NotStarted(Exception):
    """The nodes did not start."""


@dataclass(frozen=True, kw_only=True)
class Round:
    """One run with two kills."""

    rows: int
    lost: int
    doubled: int
    failed: int
    calls: int
    again: int
    most_a_minute: int
    kills: tuple[int, ...]
    """Finished questions at each kill."""


class Requests:
    """Notes when the model was asked what."""

    def __init__(self) -> None:
        self._noting = threading.Lock()
        self.times: list[float] = []
        self.prompts: Counter[str] = Counter()

    def __call__(self, request: ReceivedRequest) -> ChatReply | None:
        with self._noting:
            self.times.append(time.monotonic())
            self.prompts[str(request.prompt)] += 1
        return None

    def most_a_minute(self) -> int:
        """Return the most requests in any 60 seconds."""
        most = first = 0
        for last, at in enumerate(self.times):
            while self.times[first] <= at - MINUTE_S:
                first += 1
            most = max(most, last - first + 1)
        return most


@contextmanager
def _cluster() -> Iterator[tuple[Any, list[Any]]]:
    import ray
    from ray.cluster_utils import Cluster

    cluster = Cluster()
    try:
        try:
            cluster.add_node(num_cpus=WORKERS, include_dashboard=False)
            others = [cluster.add_node(num_cpus=WORKERS) for _ in range(2)]
            ray.init(address=cluster.address, log_to_driver=False)
        except Exception as error:  # Ray raises no narrower one
            raise NotStarted(str(error)) from error
        yield cluster, others
    finally:
        ray.shutdown()
        cluster.shutdown()


def run_round(workspace: Workspace, number: int, limit: int) -> Round:
    """Run all questions while two nodes of three are killed."""
    rng, kills, requests = random.Random(number), list[int](), Requests()
    count = len(workspace.questions)
    at = sorted(rng.sample(range(count // 20, count * 9 // 10), 2))
    with (
        _cluster() as (cluster, others),
        ScriptedServer(workspace.questions, behaviour=Behaviour(latency_s=LATENCY_S)) as server,
    ):
        server.responses = requests

        def note(progress: Progress) -> None:
            if at and progress.done >= at[0]:
                at.pop(0)
                kills.append(progress.done)
                threading.Thread(target=cluster.remove_node, args=(others.pop(), False)).start()

        experiment = experiment_of(
            workspace, server.base_url, systems=("judge",), topk=1, max_rec_depth=1, concurrency=30, cache="off"
        )
        settings = settings_of(workspace, max_concurrency=CALLS_AT_ONCE)
        settings = settings.model_copy(update={"requests_per_minute": limit})
        out = workspace.run_folder(f"kills-{number}")
        options = RunOptions(workers=Workers(count=WORKERS))
        summary = run_experiment(experiment, out, settings=settings, options=options, on_progress=note)
    rows = RunStore(out).read_attempts()
    places = Counter(row.place for row in rows)
    calls = sum(row.paid_llm_calls for row in rows)
    return Round(
        rows=len(rows),
        lost=count - len(places),
        doubled=len(rows) - len(places),
        failed=summary.failed,
        calls=len(requests.times),
        again=sum(requests.prompts.values()) - len(requests.prompts),
        most_a_minute=requests.most_a_minute(),
        kills=(*kills, calls),
    )


def measured_round(workspace: Workspace, number: int, limit: int) -> tuple[Round, int]:
    """Run a round in a new process; return the starts that failed with it."""
    for failed_starts in range(STARTS):
        # Ray forks, and a fork of a process with open Milvus connections may hang.
        with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("spawn")) as pool:
            try:
                done = pool.submit(run_round, workspace, number, limit).result()
            except NotStarted as error:
                print(f"round {number}: {error}", file=sys.stderr, flush=True)
            else:
                print(f"round {number}: {done}", file=sys.stderr, flush=True)
                return done, failed_starts
    raise NotStarted(f"no cluster started in {STARTS} attempts")


def measure() -> list[Row]:
    """Measure ``ROUNDS`` runs."""
    workspace = indexed_workspace()
    limit = len(workspace.questions) * 2
    rounds, failed_starts = zip(*(measured_round(workspace, number, limit) for number in range(ROUNDS)), strict=True)
    lost, doubled, failed = (sum(getattr(each, name) for each in rounds) for name in ("lost", "doubled", "failed"))
    again, most = [each.again for each in rounds], max(each.most_a_minute for each in rounds)
    what = f"{len(workspace.questions)} questions over three nodes, two killed, {ROUNDS} times"
    return [
        Row(
            f"{what}: rows lost, doubled, failed",
            f"{lost}, {doubled}, {failed}",
            "0, 0, 0",
            lost + doubled + failed == 0,
        ),
        Row(
            f"{what}: calls made again, each time",
            ", ".join(map(str, again)),
            f"≤ {CALLS_AT_ONCE * 2 // WORKERS} a run, in flight on two nodes of three",
            all(each <= CALLS_AT_ONCE * 2 // WORKERS for each in again),
            note=f"of {sum(each.calls for each in rounds):,} calls",
        ),
        Row(f"{what}: most requests in any 60 s, over all workers", str(most), f"≤ {limit}", most <= limit),
        Row("clusters that did not start, and were started again", str(sum(failed_starts))),
    ]
