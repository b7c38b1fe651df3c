"""Replays of many questions by many policies and budgets, as a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

import pandas as pd

from ...graphs.search.policies.registry import create_policy
from ...graphs.search.policy import Policy
from ...graphs.search.stop import create_stop
from ...graphs.threads.context import Limits
from ...modules.reader.evidence_choice import USEFUL, EvidenceChoice
from .oracle_order import OracleOrder
from .play import Judging, Played, chunk_by_chunk, play
from .world import World

POLICIES = ("breadth", "best_first", "value_cost", "wider", "mcts", "random", OracleOrder.name)
"""What is compared if nothing is named."""
BUDGETS = (8, 16, 32, 60)
_NARROW = Limits(width=1)


def replay(  # noqa: PLR0913 - a front door, where everything has a default that fits
    worlds: Mapping[str, World],
    *,
    policies: Sequence[str] = POLICIES,
    budgets: Sequence[int] = BUDGETS,
    stop: str = "set",
    limits: Limits = _NARROW,
    judging: Judging = chunk_by_chunk,
    evidence: EvidenceChoice = USEFUL,
    on_progress: Callable[[int, int], None] | None = None,
    on_played: Callable[[str, str, int, Played], None] | None = None,
) -> pd.DataFrame:
    """Play every question by every policy within every budget; no model is called.

    Returns:
        A row for each question, policy and budget: ``question``, ``policy``, ``budget``, ``complete`` (whether all
        gold documents were found), ``recall`` (share of them), ``calls``, ``area`` (mean recall over the calls from 0
        to the budget), ``sub_runs``, ``rounds`` and ``misses`` (what the recording does not hold).

    Args:
        worlds: Questions by their ids.
        policies: Specs of policies; ``oracle_order`` sees gold.
        budgets: Model calls of a question's whole tree; they replace those of ``limits``.
        stop: Spec of the stop.
        limits: Depth, width and sub-runs. With a width, an order can matter.
        judging: Calls that judging so many chunks takes: ``chunk_by_chunk`` or ``batched``.
        evidence: What the readers see.
        on_progress: Called with (questions done, questions in all).
        on_played: Called with question, policy, budget and the search as it was played.

    Raises:
        SettingsError: A policy or the stop is unknown.
    """
    halting = create_stop(stop)
    made = {spec: None if spec == OracleOrder.name else create_policy(spec) for spec in policies}
    rows: list[dict[str, object]] = []
    for done, (question, world) in enumerate(worlds.items(), start=1):
        for spec, policy in made.items():
            playing: Policy = OracleOrder(world, evidence) if policy is None else policy
            for budget in budgets:
                played = play(world, playing, halting, replace(limits, max_llm_calls=budget), judging, evidence)
                if on_played is not None:
                    on_played(question, spec, budget, played)
                rows.append({"question": question, "policy": spec, "budget": budget, **_row(played, budget)})
        if on_progress is not None:
            on_progress(done, len(worlds))
    return pd.DataFrame(rows)


def _row(played: Played, budget: int) -> dict[str, object]:
    return {
        "complete": played.is_complete,
        "recall": played.recall,
        "calls": played.calls,
        "area": played.area(budget),
        "sub_runs": len(played.expansions),
        "rounds": played.expansions[-1].round if played.expansions else 0,
        "misses": played.misses,
    }
