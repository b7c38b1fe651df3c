"""A batch run under all faults at once, killed ten times and once out of disk, against the same run undisturbed.

No row may be lost or doubled, and each row whose answer differs from the undisturbed one must be marked as degraded or
failed. Asked again without faults, all rows must be those of the undisturbed run.
"""

from __future__ import annotations

import resource
from collections import Counter
from collections.abc import Iterable, Sequence

from judgetree.app.scripted.behaviour import FAULTS, Behaviour
from judgetree.app.scripted.server import ScriptedServer
from judgetree.evaluation.rows.store import RunRow, newest_attempts

from .eval_kills import KILLS, SYSTEMS, EvalProcess, moments
from .eval_runs import QUESTIONS, new_workspace
from .measurement import Row

RATE = 0.2
FULL_AFTER = 5
"""Number of kills before the process that runs out of disk."""
RETRIES = 1
TIMEOUT_S = 2.0
ROOM_BYTES = 200_000
"""Bytes by which the largest file of the run can grow in the process that runs out of disk."""
USER_ERROR = 2


def all_faults(*, latency_s: float = 0.02) -> Behaviour:
    """Make a behaviour with every fault, equally often, ``RATE`` in all."""
    return Behaviour(
        latency_s=latency_s, faults=dict.fromkeys(FAULTS, RATE / len(FAULTS)), retry_after_s=0.05, hold_s=TIMEOUT_S + 1
    )


def outcome(row: RunRow) -> tuple[object, ...]:
    """Return the answer of a row, its status, and its chunks with their verdicts."""
    return (row.prediction, row.status, tuple((each.chunk_id, each.depth, each.verdict) for each in row.chunks))


def unmarked(rows: Iterable[RunRow], undisturbed: Iterable[RunRow]) -> list[RunRow]:
    """Return the rows that are marked complete but differ from those of the undisturbed run."""
    wanted = {row.place: outcome(row) for row in undisturbed}
    return [row for row in rows if row.completeness == "complete" and outcome(row) != wanted.get(row.place)]


def doubled(attempts: Iterable[RunRow]) -> int:
    """Count the further rows of an attempt that has a row."""
    counts = Counter((*row.place, row.attempt) for row in attempts)
    return sum(count - 1 for count in counts.values())


def lost(before: Sequence[RunRow], after: Sequence[RunRow]) -> int:
    """Count the rows of ``before`` that are missing or different in ``after``."""
    return sum(one != two for one, two in zip(before, after, strict=False)) + max(0, len(before) - len(after))


def until_disk_is_full(run: EvalProcess) -> bool:
    """Run until no file can grow; whether the process ended there by itself, with a message."""
    # Without the home, whose index and vectors are larger than all files of the run.
    largest = max((path.stat().st_size for path in run.out.rglob("*") if path.is_file()), default=0)
    with run.started(largest_file=largest + ROOM_BYTES) as process:
        _, log = process.communicate()
    return process.returncode == USER_ERROR and b"could not be written" in log


def measure(questions: int = QUESTIONS) -> list[Row]:
    """Measure the undisturbed run without the cache, so that the disturbed run must make every call itself."""
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] == resource.RLIM_INFINITY, "files are limited already"
    workspace = new_workspace(questions)
    with ScriptedServer(workspace.questions) as server:
        environment = {"JUDGETREE_RETRIES": str(RETRIES), "JUDGETREE_TIMEOUT_S": str(TIMEOUT_S)}
        clean, run = (
            EvalProcess(workspace=workspace, server=server, out=workspace.run_folder(name), environment=environment)
            for name in ("clean", "faulty")
        )
        clean.to_the_end("--cache", "off")
        calls = server.requests.total()
        undisturbed = clean.attempts()
        server.configure(**vars(all_faults()))
        kills, gone, full = 0, 0, False
        before: list[RunRow] = []
        for number, moment in enumerate(moments(by_time=1, calls=max(2, calls // (2 * KILLS))), start=1):
            kills += run.until(moment)
            if number == FULL_AFTER:
                full = until_disk_is_full(run)
            after = run.attempts()
            gone, before = gone + lost(before, after), after
        run.to_the_end()
        attempts = run.attempts()
        gone += lost(before, attempts)
        counts = Counter(row.completeness for row in newest_attempts(attempts))
        hidden = unmarked(newest_attempts(attempts), undisturbed)
        server.configure(faults={})
        run.to_the_end("--retry", "incomplete")
        mended = newest_attempts(run.attempts())
    wanted = questions * len(SYSTEMS)
    wrong = wanted - sum(row.completeness == "complete" for row in mended) + len(unmarked(mended, undisturbed))
    completeness = ", ".join(f"{counts[kind]} {kind}" for kind in ("complete", "degraded", "failed"))
    what = f"{questions} questions to naive and judge, {RATE:.0%} of all faults at once, killed and out of disk"
    return [
        Row(
            f"{what}: rows lost, doubled, damaged without a mark",
            f"{gone}, {doubled(attempts)}, {len(hidden)}",
            "0, 0, 0",
            holds=(kills, full, len(newest_attempts(attempts)), gone, doubled(attempts), len(hidden))
            == (KILLS, True, wanted, 0, 0, 0),
            note=f"{len(newest_attempts(attempts))} of {wanted} rows, {kills} kills, disk full {int(full)} time",
        ),
        Row(
            f"{what}: rows other than the undisturbed run's after --retry incomplete without faults",
            f"{wrong}",
            "0",
            holds=not wrong,
            note=f"before {completeness}",
        ),
    ]
