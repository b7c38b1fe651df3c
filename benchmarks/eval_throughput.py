"""500 judge questions of a batch run against a model of a second's latency: wall time against the ideal."""

from __future__ import annotations

from collections.abc import Iterable

from judgetree.app.scripted.behaviour import Behaviour
from judgetree.app.scripted.server import ScriptedServer
from judgetree.evaluation.rows.store import RunRow, RunStore

from .eval_runs import Workspace, experiment_of, indexed_workspace, run_measured, settings_of
from .measurement import Row

LATENCY_S = 1.0
CALLS_AT_ONCE = 64
QUESTIONS_AT_ONCE = 64
"""Enough to have 64 calls under way: a question has three while it is judged, and one while it is answered."""


def ideal_s(rows: Iterable[RunRow]) -> float:
    """Return the least seconds for the calls of these rows: the longest chain of calls, or all calls under the cap.

    A chain is a judgement and an answer on each level, one after another; the deepest level is judged too.
    """
    trees = [row.tree for row in rows if row.tree is not None]
    longest_chain = max((2 * (tree.depth + 1) for tree in trees), default=0)
    calls = sum(tree.llm_calls for tree in trees)
    return max(longest_chain * LATENCY_S, calls * LATENCY_S / CALLS_AT_ONCE)


def measure_depth(depth: int, workspace: Workspace, server: ScriptedServer) -> list[Row]:
    """Measure a run at one depth; a model name of its own keeps the cache empty."""
    out = workspace.run_folder(f"throughput-{depth}")
    experiment = experiment_of(
        workspace,
        server.base_url,
        model=f"scripted-{depth}",
        systems=("judge",),
        topk=3,
        search_type="hybrid",
        max_rec_depth=depth,
        concurrency=QUESTIONS_AT_ONCE,
    )
    run = run_measured(experiment, out, settings_of(workspace, max_concurrency=CALLS_AT_ONCE))
    rows = RunStore(out).read_rows()
    calls = sum(row.tree.llm_calls for row in rows if row.tree is not None)
    ideal = ideal_s(rows)
    what = f"{run.asked} judge questions, depth {depth}, {LATENCY_S:.0f} s latency, {CALLS_AT_ONCE} calls at once"
    return [
        Row(
            f"{what}: wall / ideal",
            f"{run.wall_s / ideal:.2f}",
            "≤ 1.25, none failed",
            holds=run.wall_s <= 1.25 * ideal and not run.failed,
            values=(run.wall_s / ideal,),
            note=f"{run.wall_s:.1f} s / {ideal:.1f} s, {calls} calls, {run.failed} failed",
        ),
        Row(
            f"{what}: CPU a call, searches and cache included",
            f"{run.cpu_s / calls * 1000:.1f} ms",
            values=(run.cpu_s / calls * 1000,),
            unit="ms",
        ),
        Row(f"{what}: peak resident memory; set-up before", f"{run.peak_mb:.0f} MB; {run.setup_s:.1f} s"),
    ]


def measure() -> list[Row]:
    """Measure depths 1 and 3 with hybrid search and cached query vectors; the run has a process of its own."""
    workspace = indexed_workspace()
    with ScriptedServer(workspace.questions, behaviour=Behaviour(latency_s=LATENCY_S)) as server:
        return [row for depth in (1, 3) for row in measure_depth(depth, workspace, server)]
