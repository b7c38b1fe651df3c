"""The limits of a question as its turn keeps them: its own calls count before its search, and beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from dataclasses import replace

from ....modules.calls.budget import TreeBudget
from ....modules.calls.ledger import ExpectedSpend
from ....modules.calls.record import CANCELLED, INTERRUPTED, CallRecord, Spend
from ....modules.memory.turns import OpenTurn
from ...rag.search_tree import SearchTree
from ...threads.amounts import SavedCall, answer_amount, budget_of, count_earlier
from ...threads.context import RagContext
from .context import ANSWER, TurnContext


async def open_budget(
    context: TurnContext, turn: OpenTurn, saved: Sequence[CallRecord], tree: SearchTree | None
) -> TreeBudget:
    """Return the budget of a turn's own calls: what the limits of a question leave after what earlier runs have used.

    A call and the tokens of the shortest answer are kept for the answer. What does not fit beside them is not asked,
    and the turn continues without it.

    Args:
        context: The turn.
        turn: The open turn.
        saved: The turn's own calls in its checkpoint.
        tree: The search that the turn has behind it; None before it.
    """
    services = context.services
    budget = await budget_of(services)
    calls = context.calls
    earlier = [SavedCall(record, "", is_of_open_sub_run=False) for record in saved]
    count_earlier(calls.known_replies if calls else (), earlier, budget, failed=calls.known_failures if calls else ())
    if tree is not None:
        count_search(budget, tree)
        return budget
    budget.reserve_answer(ANSWER)
    if budget.ledger.limits_amounts:
        least = answer_amount(turn["query"], context.limits.max_rewrite_tokens, services, budget.ledger)
        budget.ledger.plan(ANSWER, ExpectedSpend(least, least))
    return budget


def before_search(context: TurnContext) -> Spend:
    """Return what the turn has used before its search, which keeps its own call for the answer from here on."""
    budget = context.budget
    if budget is None:
        return Spend()
    budget.release(ANSWER)
    ledger, limit = budget.ledger, context.services.limits.max_tree_seconds
    used = replace(ledger.used, calls=budget.used)
    if ledger.deadline is None or limit is None:
        return used
    return replace(used, seconds=limit - (ledger.deadline - asyncio.get_running_loop().time()))


def count_search(budget: TreeBudget, tree: SearchTree) -> None:
    """Count the calls of a search that has ended, for the calls that follow it."""
    records = [record for node in tree.query_nodes() for record in node.paid if record["kind"] == "chat"]
    budget.used += len(records)
    budget.ledger.book("", *records)


async def is_spent(services: RagContext, query: str, calls: Sequence[CallRecord]) -> bool:
    """Return whether replies that could not be used have left nothing for the answer of a turn.

    Until a reply fails, the shortest answer is kept back. ``calls`` are all calls of the turn so far.
    """
    paid = [record for record in calls if record["kind"] == "chat" and record["error"] != INTERRUPTED]
    if not any(record["error"] not in ("", CANCELLED) for record in paid):
        return False
    budget = await budget_of(services)
    ledger = budget.ledger
    if budget.used + len(paid) >= budget.limit:
        return True
    ledger.book("", *paid)
    return ledger.exhausted_limit(answer_amount(query, 0, services, ledger)) is not None
