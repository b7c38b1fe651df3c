"""A batch run under all faults at once, killed ten times and once out of disk, against the same run undisturbed.

What must hold is that no row is lost or doubled, and that each answer that is not the undisturbed one says so: it is a
degraded or failed row. Asked again without faults, all rows must be those of the undisturbed run.
"""

from __future__ import annotations

import os
import random
import resource
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path

from judgetree.app.scripted.behaviour import FAULTS, Behaviour
from judgetree.app.scripted.server import ScriptedServer
from judgetree.evaluation.rows.store import RunRow, RunStore, newest_attempts

from .eval_kills import LONGEST_SET_UP_S, Moment
from .eval_runs import EMBEDDINGS, MODEL, QUESTIONS, Workspace, new_workspace
from .measurement import Row

RATE = 0.2
KILLS = 10
FULL_AFTER = 5
"""Kills before the life that runs out of disk."""
SYSTEMS = ("naive", "judge")
CALLS_AT_ONCE = 8
RETRIES = 1
TIMEOUT_S = 2.0
ROOM_BYTES = 200_000
"""What the largest file of the run may still grow by in the life that runs out of disk."""
USER_ERROR = 2


def all_faults(*, latency_s: float = 0.02) -> Behaviour:
    """Every fault, each as often as the others, ``RATE`` in all."""
    return Behaviour(
        latency_s=latency_s, faults=dict.fromkeys(FAULTS, RATE / len(FAULTS)), retry_after_s=0.05, hold_s=TIMEOUT_S + 1
    )


def moments(calls: int, *, seed: int = 5) -> list[Moment]:
    """As many moments as there are kills: the first while the run is set up, the others while it asks."""
    rng = random.Random(seed)
    first = Moment(calls=0, delay_s=rng.uniform(0, LONGEST_SET_UP_S))
    return [first, *(Moment(calls=rng.randint(1, calls), delay_s=rng.uniform(0, 0.2)) for _ in range(KILLS - 1))]


def outcome(row: RunRow) -> tuple[object, ...]:
    """What a reader of the row learns: the answer, and what was found and judged on the way."""
    return (row.prediction, row.status, tuple((each.chunk_id, each.depth, each.verdict) for each in row.chunks))


def untold(rows: Iterable[RunRow], undisturbed: Iterable[RunRow]) -> list[RunRow]:
    """The rows that say that they are complete, and are not what they would have been without faults."""
    wanted = {row.place: outcome(row) for row in undisturbed}
    return [row for row in rows if row.completeness == "complete" and outcome(row) != wanted.get(row.place)]


def doubled(attempts: Iterable[RunRow]) -> int:
    """Rows of a question, system and repeat that stand there more than once for one attempt."""
    counts = Counter((*row.place, row.attempt) for row in attempts)
    return sum(count - 1 for count in counts.values())


def lost(before: Sequence[RunRow], after: Sequence[RunRow]) -> int:
    """Rows that were there and are not any more, or are not the same."""
    return sum(one != two for one, two in zip(before, after, strict=False)) + max(0, len(before) - len(after))


@dataclass(frozen=True, kw_only=True)
class FaultyRun:
    """``judgetree eval run`` as a process of its own, in a directory of its own."""

    workspace: Workspace
    server: ScriptedServer
    out: Path

    def attempts(self) -> list[RunRow]:
        """Its rows so far."""
        return RunStore(self.out).read_attempts()

    def to_the_end(self, *options: str) -> int:
        """Run until all is asked, and give back the exit status.

        Raises:
            RuntimeError: It stopped before that.
        """
        with self._started(*options) as process:
            _, told = process.communicate()
        if process.returncode not in (0, 1):
            raise RuntimeError(f"the run ended with {process.returncode}: {told.decode(errors='replace')}")
        return process.returncode

    def until(self, moment: Moment) -> bool:
        """Run until the moment, and kill; False when all was asked before that."""
        wanted = self.server.requests.total() + moment.calls
        with self._started() as process:
            while process.poll() is None and self.server.requests.total() < wanted:
                time.sleep(0.005)
            time.sleep(moment.delay_s)
            is_running = process.poll() is None
            process.kill()
            process.communicate()
        return is_running

    def until_disk_is_full(self) -> bool:
        """Run until no file may grow any more; whether it ended there by itself, with a message."""
        # Not the home's, whose index and vectors are larger than all that a run writes down.
        largest = max((path.stat().st_size for path in self.out.rglob("*") if path.is_file()), default=0)
        with self._started(largest_file=largest + ROOM_BYTES) as process:
            _, told = process.communicate()
        return process.returncode == USER_ERROR and b"could not be written" in told

    def _started(self, *options: str, largest_file: int | None = None) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "judgetree.app", "eval", "run", "--dataset", self.workspace.dataset]
        environment = {
            **os.environ,
            "JUDGETREE_HOME": str(self.workspace.home),
            "JUDGETREE_EMBEDDINGS": EMBEDDINGS,
            "JUDGETREE_LLM": f"{self.server.base_url}#{MODEL}",
            "JUDGETREE_MAX_CONCURRENCY": str(CALLS_AT_ONCE),
            "JUDGETREE_RETRIES": str(RETRIES),
            "JUDGETREE_TIMEOUT_S": str(TIMEOUT_S),
        }
        if largest_file is not None:
            limit = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({largest_file}, {largest_file})); "
            command[1:3] = ["-c", f"{limit}import sys; from judgetree.app.cli import main; sys.exit(main())"]
        return subprocess.Popen(
            [*command, "--systems", ",".join(SYSTEMS), "--out", str(self.out), *options],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )


def measure(questions: int = QUESTIONS) -> list[Row]:
    """The undisturbed run first, without the cache, so that the disturbed one has every call still to make."""
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY, "files are limited already"
    workspace = new_workspace(questions)
    with ScriptedServer(workspace.questions) as server:
        clean = FaultyRun(workspace=workspace, server=server, out=workspace.run_folder("clean"))
        clean.to_the_end("--cache", "off")
        calls = server.requests.total()
        undisturbed = clean.attempts()
        server.configure(**vars(all_faults()))
        run = FaultyRun(workspace=workspace, server=server, out=workspace.run_folder("faulty"))
        kills, gone, full = 0, 0, False
        before: list[RunRow] = []
        for number, moment in enumerate(moments(max(2, calls // (2 * KILLS))), start=1):
            kills += run.until(moment)
            if number == FULL_AFTER:
                full = run.until_disk_is_full()
            after = run.attempts()
            gone, before = gone + lost(before, after), after
        run.to_the_end()
        attempts = run.attempts()
        gone += lost(before, attempts)
        told = Counter(row.completeness for row in newest_attempts(attempts))
        hidden = untold(newest_attempts(attempts), undisturbed)
        server.configure(faults={})
        run.to_the_end("--retry", "incomplete")
        mended = newest_attempts(run.attempts())
    wanted = questions * len(SYSTEMS)
    wrong = wanted - sum(row.completeness == "complete" for row in mended) + len(untold(mended, undisturbed))
    said = ", ".join(f"{told[kind]} {kind}" for kind in ("complete", "degraded", "failed"))
    return [
        Row(
            f"{questions} questions to naive and judge, {RATE:.0%} of all faults at once, killed and out of disk",
            f"{kills} kills, disk full {int(full)} time; {len(newest_attempts(attempts))} rows, {gone} lost, "
            f"{doubled(attempts)} doubled, {len(hidden)} damaged without being told",
            f"{KILLS} kills, 1 time; {wanted} rows, 0, 0, 0",
            holds=(kills, full, len(newest_attempts(attempts)), gone, doubled(attempts), len(hidden))
            == (KILLS, True, wanted, 0, 0, 0),
        ),
        Row(
            "the same: what the rows say; asked again with --retry incomplete and no faults",
            f"{said}; {wrong} wrong",
            "0 other than the undisturbed run's",
            holds=not wrong,
        ),
    ]
