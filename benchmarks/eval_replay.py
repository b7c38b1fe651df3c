"""A batch run of three systems, its memory, and the same run again out of the model cache."""

from __future__ import annotations

import json
from collections.abc import Iterable

from judgetree.app.scripted.server import ScriptedServer
from judgetree.evaluation.rows.store import RunRow, RunStore

from .eval_runs import FinishedRun, experiment_of, finished_run, indexed_workspace, run_measured, settings_of
from .measurement import Row

WANTED_A_SECOND = {"judge": 10, "llm": 50}
MOST_RESIDENT_MB = 1500


def predictions(rows: Iterable[RunRow]) -> bytes:
    """Return the predictions of rows, whatever the order of the rows."""
    kept = sorted((row.place, row.prediction) for row in rows)
    return json.dumps(kept, ensure_ascii=False).encode()


def measure_replay(system: str, original: FinishedRun) -> Row:
    """Replay the questions of one system, without a model call."""
    workspace = indexed_workspace()
    out = workspace.run_folder(f"replay-{system}")
    with ScriptedServer(workspace.questions) as server:
        experiment = experiment_of(workspace, server.base_url, systems=(system,), cache="replay")
        run = run_measured(experiment, out, settings_of(workspace, base_url=server.base_url))
        calls = server.requests.total()
    identical = predictions(RunStore(out).read_rows()) == predictions(original.rows(system))
    wanted = WANTED_A_SECOND[system]
    rate = run.asked / run.wall_s
    return Row(
        f"{system}: {run.asked} questions replayed, {'searches included' if system == 'judge' else 'no search'}",
        f"{rate:.1f} questions/s",
        f"≥ {wanted}/s, 0 calls, byte-identical",
        holds=rate >= wanted and not calls and identical,
        values=(rate,),
        unit="questions/s",
        note=f"{calls} model calls, predictions {'identical' if identical else 'differ'}",
    )


def measure() -> list[Row]:
    """Measure the run that fills the cache, then a replay of judge and of llm."""
    original = finished_run()
    run = original.measured
    memory = Row(
        f"{run.asked} questions to llm, naive and judge, no latency: peak resident memory",
        f"{run.peak_mb:.0f} MB",
        f"< {MOST_RESIDENT_MB} MB, none failed",
        holds=run.peak_mb < MOST_RESIDENT_MB and not run.failed,
        values=(run.peak_mb,),
        unit="MB",
        note=f"{run.wall_s:.0f} s, {run.failed} failed",
    )
    return [memory, *(measure_replay(system, original) for system in WANTED_A_SECOND)]
