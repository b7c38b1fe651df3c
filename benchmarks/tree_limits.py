"""Random search trees under random limits, with failing endpoints, 32 at once: are limits and answers kept?"""

from __future__ import annotations

import asyncio
import logging
import random
from collections import Counter

from judgetree.graphs.rag.search_tree import SearchTree
from judgetree.graphs.search.policies.registry import POLICIES
from judgetree.graphs.systems.judge_rag import build_judge_rag
from judgetree.graphs.threads.context import RagContext
from judgetree.modules.calls.prices import usage_by_model
from judgetree.modules.errors import ModelCallError
from tests.graphs.bushy import ROOT
from tests.graphs.fakes import thread
from tests.graphs.priced import PRICES, priced_context

from .measurement import Row

TREES = 2000
AT_ONCE = 32
_LIVES = 60
"""Most runs of a tree whose root's answer fails."""


def random_limits(chance: random.Random) -> dict[str, float | None]:
    """Draw the limits of a tree."""
    return {
        "max_rec_depth": chance.randint(0, 3),
        "max_llm_calls": chance.randint(1, 60),
        "width": chance.choice((None, 1, 2, 3)),
        "max_sub_runs": chance.choice((None, None, *range(7))),
        "max_tree_tokens": chance.choice((None, chance.randint(600, 6000))),
        "max_tree_cost_usd": chance.choice((None, chance.uniform(0.001, 0.01))),
    }


def random_context(number: int, limits: dict[str, float | None]) -> RagContext:
    """Draw the world of a tree."""
    chance = random.Random(f"world {number}")
    return priced_context(
        chance.choice(sorted(POLICIES)),
        seed=number,
        timing=number,
        topk=chance.randint(1, 5),
        faults=chance.choice((0.0, 0.1, 0.3)),
        stop=chance.choice(("set", "set:eager=true", "never")),
        **limits,
    )


async def excess_of(number: int) -> tuple[list[str], set[str]]:
    """Ask in one world, and return the limits that were exceeded, and those that were reached."""
    limits = random_limits(random.Random(f"limits {number}"))
    context = random_context(number, limits)
    with build_judge_rag(context=context) as graph:
        for life in range(_LIVES):
            try:
                final = await graph.ainvoke(ROOT if life == 0 else None, thread("t"))
                break
            except ModelCallError:
                continue
        else:
            return ["unanswered"], set()
        tree = await SearchTree.afrom_history(graph, "t")
    used = tree.usage
    amounts = {
        "max_llm_calls": used["llm_calls"],
        "max_sub_runs": tree.sub_runs,
        "max_tree_tokens": used["prompt_tokens"] + used["completion_tokens"],
        "max_tree_cost_usd": PRICES.cost_of(usage_by_model(r for n in tree.query_nodes() for r in n.usage)).known_usd,
    }
    over = [
        name for name, amount in amounts.items() if (most := limits[name]) is not None and amount > most * (1 + 1e-9)
    ]
    return over + ([] if final["status"] in ("answered", "refused") else ["unanswered"]), set(tree.spent_limits)


async def _all() -> tuple[Counter[str], Counter[str]]:
    places, exceeded, reached = asyncio.Semaphore(AT_ONCE), Counter[str](), Counter[str]()

    async def one(number: int) -> None:
        async with places:
            over, spent = await excess_of(number)
        exceeded.update(over)
        reached.update(spent)
        if over:
            print(number, over, flush=True)

    await asyncio.gather(*map(one, range(TREES)))
    return exceeded, reached


def measure() -> list[Row]:
    """Measure all trees."""
    logging.getLogger("judgetree").setLevel(logging.CRITICAL)  # faults are wanted here
    exceeded, reached = asyncio.run(_all())
    names = {f"max_{limit}": f"over max_{limit}" for limit in ("llm_calls", "sub_runs", "tree_tokens", "tree_cost_usd")}
    names["unanswered"] = "without an answer or refusal"
    told = ", ".join(f"{name} {count}" for name, count in sorted(reached.items()))
    return [
        Row(f"{TREES} trees, {AT_ONCE} at once; limits reached", told),
        *(
            Row(f"{TREES} trees: {words}", f"{exceeded[name]} trees", "0", exceeded[name] == 0)
            for name, words in names.items()
        ),
    ]
