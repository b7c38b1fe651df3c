"""What a sub-run that ended in an earlier run reserves and counts when a resumed search comes to it."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

from langgraph.types import StateSnapshot

from judgetree.graphs.rag.thread_runs import run_sub_thread
from judgetree.graphs.search.candidate import Candidate
from judgetree.graphs.search.frontier import Frontier, Grant
from judgetree.graphs.threads.candidates import frontier_of
from judgetree.graphs.threads.eager import JudgeCalls
from judgetree.modules.calls.budget import TreeBudget
from judgetree.modules.calls.record import BudgetSource
from judgetree.modules.calls.usage import CallMeter
from tests.graphs.bushy import bushy_context

SERVICES = bushy_context("breadth")


def honoured(budget: TreeBudget, *, has_ended: bool) -> Frontier:
    frontier = frontier_of(SERVICES, budget, "root", "q", "")
    candidate = Candidate(
        thread_id="root",
        chunk_id="c",
        next_query="c?",
        path=("c", "c?"),
        p_needed=None,
        is_calibrated=False,
        retrieval_score=None,
        rank=0,
        ancestors=(),
        calls=4,
    )
    frontier.restore_grant(candidate, "sub", Grant(round=1, priority=0, round_digests=""), has_ended=has_ended)
    return frontier


def test_a_sub_run_that_ended_reserves_nothing() -> None:
    """Its calls counted twice until its thread was read: another sub-run's chunk was refused its judgement."""
    budgets = [TreeBudget(limit=10, used=4) for _ in range(2)]
    for budget, has_ended in zip(budgets, (True, False), strict=True):
        honoured(budget, has_ended=has_ended)
    assert [budget.committed for budget in budgets] == [4, 8]


def test_the_calls_of_a_sub_run_that_ended_count_though_only_the_journal_had_them() -> None:
    """Where its parent had no checkpoint, they never counted, and later rounds were granted them again."""
    meter = CallMeter(node="generate")
    meter.record(kind="chat", model="m", started=0.0)
    [record] = meter.records
    budget = TreeBudget(limit=10, replayable={record["call_id"]: BudgetSource(held_by="sub")})
    state = {"query": "c?", "answer": "yes", "usage": [record]}
    saved = StateSnapshot(state, (), {}, {}, "2026-01-01", None, (), ())  # type: ignore[arg-type]
    child = SimpleNamespace(
        budget=budget,
        frontier=honoured(budget, has_ended=True),
        is_served=False,
        judge_calls=JudgeCalls(),
        services=SERVICES,
        thread_id="sub",
    )
    assert asyncio.run(run_sub_thread("c?", child, saved)) == state  # type: ignore[arg-type]
    assert (budget.used, budget.replayable, budget.committed) == (1, {}, 1)
