"""A batch run killed ten times at random moments and resumed, against the same run unbroken."""

from __future__ import annotations

import os
import random
import shutil
import subprocess
import sys
import time
from dataclasses import asdict, dataclass
from pathlib import Path

from judgetree.app.scripted.behaviour import Behaviour
from judgetree.app.scripted.server import ScriptedServer
from judgetree.evaluation.rows.store import RunRow, RunStore

from .eval_runs import EMBEDDINGS, MODEL, Workspace, new_workspace
from .measurement import Row

KILLS = 10
KILLS_BY_TIME = 2
LONGEST_SET_UP_S = 8.0
MOST_CALLS_A_LIFE = 50
"""Fewer than an eighth of the calls of the run, so that it is still going on when it is killed for the last time."""
QUESTIONS = 60
LATENCY_S = 0.2
CALLS_AT_ONCE = 8
SYSTEMS = ("naive", "judge")


@dataclass(frozen=True, kw_only=True)
class Moment:
    """When a process is killed: so much time after so many of its calls have reached the model."""

    calls: int
    delay_s: float


def moments(*, seed: int = 5) -> list[Moment]:
    """Two moments in which the run is imported, indexes or has just begun, then eight in which it asks."""
    rng = random.Random(seed)
    early = [Moment(calls=0, delay_s=rng.uniform(0, LONGEST_SET_UP_S)) for _ in range(KILLS_BY_TIME)]
    later = [
        Moment(calls=rng.randint(1, MOST_CALLS_A_LIFE), delay_s=rng.uniform(0, LATENCY_S))
        for _ in range(KILLS - KILLS_BY_TIME)
    ]
    return early + later


def comparable(row: RunRow) -> dict[str, object]:
    """A row without what may differ: its seconds, and which of its calls the cache answered, or a kill cut off."""
    fields = asdict(row)
    uncached = [usage.as_if_uncached() for usage in row.paid or ()]
    fields["paid"] = [(usage.model, usage.kind, usage.calls, usage.tokens) for usage in uncached]
    del fields["seconds"]
    if row.tree is not None:
        for name in ("chat_calls", "cached_chat_calls", "prompt_tokens", "completion_tokens", "cached_seconds"):
            del fields["tree"][name]
    return fields


def differing(one: list[RunRow], other: list[RunRow]) -> int:
    """Places whose rows differ, or that only one of the runs has."""
    first, second = ({row.place: comparable(row) for row in rows} for rows in (one, other))
    return sum(first.get(place) != second.get(place) for place in first.keys() | second.keys())


class KillableRun:
    """``judgetree eval run`` as a process of its own."""

    def __init__(self, workspace: Workspace, server: ScriptedServer) -> None:
        self._workspace = workspace
        self._server = server

    def to_the_end(self, out: Path, *options: str) -> None:
        """Run until everything is asked.

        Raises:
            RuntimeError: It ended with another status than 0.
        """
        done = subprocess.run(self._command(out, *options), env=self._environment(), capture_output=True, check=False)
        _refuse_failure(done.returncode, done.stderr)

    def until(self, moment: Moment, out: Path) -> bool:
        """Run until the moment, and kill; False when all was asked before that.

        Raises:
            RuntimeError: It could not go on.
        """
        wanted = self._server.requests.total() + moment.calls
        with subprocess.Popen(
            self._command(out), env=self._environment(), stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        ) as process:
            while process.poll() is None and self._server.requests.total() < wanted:
                time.sleep(0.005)
            time.sleep(moment.delay_s)
            status = process.poll()
            process.kill()
            _, told = process.communicate()
        _refuse_failure(status, told)
        return status is None

    def _command(self, out: Path, *options: str) -> list[str]:
        command = [sys.executable, "-m", "judgetree.app", "eval", "run", "--dataset", self._workspace.dataset]
        return [*command, "--systems", ",".join(SYSTEMS), "--out", str(out), *options]

    def _environment(self) -> dict[str, str]:
        return {
            **os.environ,
            "JUDGETREE_HOME": str(self._workspace.home),
            "JUDGETREE_EMBEDDINGS": EMBEDDINGS,
            "JUDGETREE_LLM": f"{self._server.base_url}#{MODEL}",
            "JUDGETREE_MAX_CONCURRENCY": str(CALLS_AT_ONCE),
        }


def _refuse_failure(status: int | None, told: bytes) -> None:
    if status:
        raise RuntimeError(f"the run ended with status {status}: {told.decode(errors='replace')}")


def measure() -> list[Row]:
    """The broken run first, which fills the cache; the unbroken one replays it under the same run id."""
    workspace = new_workspace(QUESTIONS)
    broken, unbroken = workspace.run_folder("broken"), workspace.run_folder("unbroken")
    with ScriptedServer(workspace.questions, behaviour=Behaviour(latency_s=LATENCY_S)) as server:
        run = KillableRun(workspace, server)
        kills = sum(run.until(moment, broken) for moment in moments())
        run.to_the_end(broken)
        paid, twice = server.requests.total(), sum(entry.attempt > 1 for entry in server.log)
        unbroken.mkdir(parents=True)
        shutil.copy(broken / "manifest.json", unbroken)  # with its run id, so that threads have the same names
        run.to_the_end(unbroken, "--cache", "replay")
        replayed = server.requests.total() - paid
    rows = RunStore(broken).read_attempts()
    wrong = differing(rows, RunStore(unbroken).read_rows())
    wanted, in_flight = QUESTIONS * len(SYSTEMS), KILLS * CALLS_AT_ONCE
    return [
        Row(
            f"{QUESTIONS} questions to naive and judge, killed {KILLS} times and resumed: rows",
            f"{kills} kills, {len(rows)} rows, {wrong} other than those of the unbroken run",
            f"{KILLS} kills, {wanted} rows, 0 others",
            holds=(kills, len(rows), wrong) == (KILLS, wanted, 0),
        ),
        Row(
            "the same: calls at the model, and what a replay still calls",
            f"{paid} calls, {twice} of them made before; {replayed}",
            f"≤ {in_flight} made before (in flight at the kills); 0",
            holds=twice <= in_flight and not replayed,
        ),
    ]
