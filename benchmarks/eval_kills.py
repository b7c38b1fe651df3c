"""A batch run killed ten times at random moments and resumed, against the same run unbroken."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path

from judgetree.app.scripted.behaviour import Behaviour
from judgetree.app.scripted.server import ScriptedServer
from judgetree.evaluation.rows.store import RunRow, RunStore

from .eval_runs import EMBEDDINGS, MODEL, Workspace, new_workspace
from .measurement import Row

KILLS = 10
LONGEST_SET_UP_S = 8.0
MOST_CALLS_A_LIFE = 50
"""Fewer than an eighth of the calls of the run, so that the run has not ended before the last kill."""
QUESTIONS = 60
LATENCY_S = 0.2
CALLS_AT_ONCE = 8
SYSTEMS = ("naive", "judge")


@dataclass(frozen=True, kw_only=True)
class Moment:
    """Moment of a kill: ``delay_s`` after the process has made ``calls`` calls."""

    calls: int
    delay_s: float


def moments(*, by_time: int = 2, calls: int = MOST_CALLS_A_LIFE, seed: int = 5) -> list[Moment]:
    """Draw ``by_time`` moments during imports and indexing, then the others after 1 to ``calls`` calls."""
    rng = random.Random(seed)
    early = [Moment(calls=0, delay_s=rng.uniform(0, LONGEST_SET_UP_S)) for _ in range(by_time)]
    later = range(KILLS - by_time)
    return early + [Moment(calls=rng.randint(1, calls), delay_s=rng.uniform(0, LATENCY_S)) for _ in later]


def comparable(row: RunRow) -> dict[str, object]:
    """Return the fields of a row that must be equal: not its seconds, nor which calls were cached or interrupted."""
    fields = asdict(row)
    uncached = [usage.as_if_uncached() for usage in row.paid or ()]
    fields["paid"] = [(usage.model, usage.kind, usage.calls, usage.tokens) for usage in uncached]
    del fields["seconds"]
    if row.tree is not None:
        for name in ("llm_calls", "cached_llm_calls", "prompt_tokens", "completion_tokens", "cached_seconds"):
            del fields["tree"][name]
    return fields


def differing(one: list[RunRow], other: list[RunRow]) -> int:
    """Count the places whose rows differ, or that only one run has."""
    first, second = ({row.place: comparable(row) for row in rows} for rows in (one, other))
    return sum(first.get(place) != second.get(place) for place in first.keys() | second.keys())


@dataclass(frozen=True, kw_only=True)
class EvalProcess:
    """``judgetree eval run`` in a process and a run directory of its own."""

    workspace: Workspace
    server: ScriptedServer
    out: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    """Further settings, by variable."""

    def attempts(self) -> list[RunRow]:
        """Read the rows so far."""
        return RunStore(self.out).read_attempts()

    def to_the_end(self, *options: str) -> None:
        """Run until all questions are asked.

        Raises:
            RuntimeError: The process ended with another status than 0, or 1 for failed questions.
        """
        with self.started(*options) as process:
            _, log = process.communicate()
        if process.returncode not in (0, 1):
            raise RuntimeError(f"the run ended with {process.returncode}: {log.decode(errors='replace')}")

    def until(self, moment: Moment) -> bool:
        """Run until the moment and kill the process; False if it had ended before."""
        wanted = self.server.requests.total() + moment.calls
        with self.started() as process:
            while process.poll() is None and self.server.requests.total() < wanted:
                time.sleep(0.005)
            time.sleep(moment.delay_s)
            is_running = process.poll() is None
            process.kill()
            process.communicate()
        return is_running

    def started(self, *options: str, largest_file: int | None = None) -> subprocess.Popen[bytes]:
        """Start the process; no file of it can grow beyond ``largest_file`` bytes."""
        command = [sys.executable, "-m", "judgetree.app", "eval", "run", "--dataset", self.workspace.dataset]
        if largest_file is not None:
            limit = f"import resource; resource.setrlimit(resource.RLIMIT_FSIZE, ({largest_file}, {largest_file})); "
            command[1:3] = ["-c", f"{limit}import sys; from judgetree.app.cli import main; sys.exit(main())"]
        return subprocess.Popen(
            [*command, "--systems", ",".join(SYSTEMS), "--out", str(self.out), *options],
            env={
                **os.environ,
                "JUDGETREE_HOME": str(self.workspace.home),
                "JUDGETREE_EMBEDDINGS": EMBEDDINGS,
                "JUDGETREE_LLM": f"{self.server.base_url}#{MODEL}",
                "JUDGETREE_MAX_CONCURRENCY": str(CALLS_AT_ONCE),
                **self.environment,
            },
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
        )


def measure() -> list[Row]:
    """Measure the broken run, which fills the cache; the unbroken run replays it under the same run id."""
    workspace = new_workspace(QUESTIONS)
    with ScriptedServer(workspace.questions, behaviour=Behaviour(latency_s=LATENCY_S)) as server:
        broken, unbroken = (
            EvalProcess(workspace=workspace, server=server, out=workspace.run_folder(name))
            for name in ("broken", "unbroken")
        )
        kills = sum(broken.until(moment) for moment in moments())
        broken.to_the_end()
        paid, twice = server.requests.total(), sum(entry.attempt > 1 for entry in server.log)
        unbroken.out.mkdir(parents=True)
        shutil.copy(broken.out / "manifest.json", unbroken.out)  # with its run id, so that threads have the same names
        unbroken.to_the_end("--cache", "replay")
        replayed = server.requests.total() - paid
    rows = broken.attempts()
    wrong = differing(rows, RunStore(unbroken.out).read_rows())
    wanted, in_flight = QUESTIONS * len(SYSTEMS), KILLS * CALLS_AT_ONCE
    what = f"{QUESTIONS} questions to naive and judge, killed {KILLS} times and resumed"
    return [
        Row(
            f"{what}: rows other than the unbroken run's",
            f"{wrong} of {len(rows)}",
            f"0 of {wanted}",
            holds=(kills, len(rows), wrong) == (KILLS, wanted, 0),
            note=f"{kills} kills",
        ),
        Row(
            f"{what}: calls made before; those of a replay",
            f"{twice} of {paid}; {replayed}",
            f"≤ {in_flight} made before (in flight at the kills); 0",
            holds=twice <= in_flight and not replayed,
        ),
    ]
