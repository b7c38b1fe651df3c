"""What a run that continues a tree holds for the sub-runs that run again, before they come."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace

from judgetree.graphs.rag.earlier_runs import open_sub_runs, restore_outcomes
from judgetree.graphs.threads.state import JsonScalar
from judgetree.graphs.tree.nodes import ChunkNode, QueryNode
from judgetree.modules.calls.budget import TreeBudget
from tests.graphs.fakes import answered


def chunk(chunk_id: str, *sub_runs: QueryNode, **metadata: JsonScalar) -> ChunkNode:
    return ChunkNode(chunk_id=chunk_id, text="", metadata=metadata, sub_runs=sub_runs)


def begun(thread_id: str, *chunks: ChunkNode) -> QueryNode:
    return answered(thread_id, f"{thread_id}?", "", *chunks, status="open", started_at="2026-01-01")


def test_answers_of_sub_runs_that_had_begun_are_held_before_they_run_again() -> None:
    """Notes of another sub-run took their calls, so that a resumed tree exceeded its limit by one."""
    root = answered(
        *("root", "q", ""),
        chunk("a", begun("begun", chunk("c", begun("below")))),
        chunk("b", answered("waiting", "q2", "", status="open")),
        status="open",
    )
    budget = TreeBudget(limit=10, used=3)
    context = SimpleNamespace(budget=budget, frontier=SimpleNamespace(shared=None))
    asyncio.run(restore_outcomes(context, root))  # type: ignore[arg-type]
    assert budget.reserved_for_answers == {"begun", "below"}
    assert budget.committed == 5


def test_a_sub_run_whose_outcome_is_saved_does_not_run_again_though_it_was_cut_off() -> None:
    """A saved answer of it, or of one below it, was awaited for ever, so that one call too many was left."""
    cut_off = chunk("a", begun("cut off", chunk("c", begun("below"))), round=1, priority=0, budget_spent="seconds")
    root = answered("root", "q", "", cut_off, chunk("b", begun("begun")), status="open")
    assert open_sub_runs(root) == {"begun"}
