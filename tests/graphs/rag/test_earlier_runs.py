"""What a run that continues a tree holds for the sub-runs that run again, before they come."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

from judgetree.graphs.rag.earlier_runs import restore_settled
from judgetree.graphs.tree.nodes import ChunkNode, QueryNode
from judgetree.modules.calls.budget import CallBudget
from tests.graphs.fakes import answered


def chunk(chunk_id: str, *sub_runs: QueryNode) -> ChunkNode:
    return ChunkNode(chunk_id=chunk_id, text="", metadata={}, sub_runs=sub_runs)


def test_answers_of_sub_runs_that_had_begun_are_held_before_they_run_again() -> None:
    """Notes of another sub-run took their calls, so that a resumed tree exceeded its limit by one."""
    below = answered("below", "q3", "", status="open", started_at="2026-01-01")
    root = answered(
        *("root", "q", ""),
        chunk("a", answered("begun", "q1", "", chunk("c", below), status="open", started_at="2026-01-01")),
        chunk("b", answered("waiting", "q2", "", status="open")),
        status="open",
    )
    budget = CallBudget(limit=10, used=3)
    context = SimpleNamespace(budget=budget, frontier=SimpleNamespace(shared=None))
    asyncio.run(restore_settled(context, root))  # type: ignore[arg-type]
    assert budget.held == {"begun", "below"}
    assert budget.committed == 5
