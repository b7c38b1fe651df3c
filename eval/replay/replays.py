"""Replays of many questions by many policies and budgets, as a table, and what their differences are worth."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import cast

import pandas as pd

from ...graphs.search.policies.registry import create_policy
from ...graphs.search.policy import Policy
from ...graphs.search.stop import create_stop
from ...graphs.threads.context import Limits
from ..metrics.intervals import mean_interval
from ..metrics.statistics import PairedComparison, adjust_comparisons, compare_paired
from .oracle_order import OracleOrder
from .play import Judging, Played, chunk_by_chunk, play
from .world import World

POLICIES = ("breadth", "best_first", "value_cost", "wider", "mcts", "random", OracleOrder.name)
"""What is compared if nothing is named."""
BUDGETS = (8, 16, 32, 60)
_NARROW = Limits(width=1)


def replay(
    worlds: Mapping[str, World],
    *,
    policies: Sequence[str] = POLICIES,
    budgets: Sequence[int] = BUDGETS,
    stop: str = "set",
    limits: Limits = _NARROW,
    judging: Judging = chunk_by_chunk,
    on_progress: Callable[[int, int], None] | None = None,
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
        on_progress: Called with (questions done, questions in all).

    Raises:
        SettingsError: A policy or the stop is unknown.
    """
    halting = create_stop(stop)
    made = {spec: None if spec == OracleOrder.name else create_policy(spec) for spec in policies}
    rows: list[dict[str, object]] = []
    for done, (question, world) in enumerate(worlds.items(), start=1):
        for spec, policy in made.items():
            playing: Policy = OracleOrder(world) if policy is None else policy
            for budget in budgets:
                played = play(world, playing, halting, replace(limits, max_llm_calls=budget), judging)
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


def summarize(rows: pd.DataFrame, *, baseline: str = "breadth") -> pd.DataFrame:
    """Compute means over questions by budget and policy, and compare each policy with the baseline on the same ones.

    Returns:
        A row for each budget and policy: ``complete`` with ``low`` and ``high`` (Wilson, 95 %), ``recall``, ``calls``,
        ``area``, ``sub_runs``, ``coverage`` (share of the questions that asked nothing that is not recorded); and
        against the baseline ``gain`` of complete with ``gain_low``, ``gain_high`` (Bonett and Price) and ``p``
        (McNemar, adjusted by Holm over the policies of the budget); empty for the baseline itself.

    Raises:
        KeyError: The baseline was not played.
    """
    summary: list[dict[str, object]] = []
    for budget, of_budget in rows.groupby("budget", sort=True):
        by_policy = {str(name): group.set_index("question") for name, group in of_budget.groupby("policy", sort=False)}
        against = by_policy[baseline]
        others = [name for name in by_policy if name != baseline]
        compared = dict(zip(others, _compared(by_policy, others, against), strict=True))
        for name, group in by_policy.items():
            means = group[["recall", "calls", "area", "sub_runs"]].mean().to_dict()
            share = mean_interval(group["complete"].astype(float).tolist(), scale="share")
            summary.append(
                {
                    "budget": budget,
                    "policy": name,
                    "complete": share.mean,
                    "low": share.low,
                    "high": share.high,
                    **means,
                    "coverage": float((group["misses"] == 0).mean()),
                    **(_gain(compared[name]) if name in compared else {}),
                }
            )
    return pd.DataFrame(summary)


def _compared(
    by_policy: Mapping[str, pd.DataFrame], names: Iterable[str], against: pd.DataFrame
) -> tuple[PairedComparison, ...]:
    expected = against["complete"].astype(float).tolist()
    return adjust_comparisons(
        [
            compare_paired(
                by_policy[name].loc[against.index, "complete"].astype(float).tolist(),
                expected,
                metric="complete",
                test="mcnemar",
            )
            for name in names
        ]
    )


def _gain(compared: PairedComparison) -> dict[str, object]:
    return {
        "gain": compared.difference.mean,
        "gain_low": compared.difference.low,
        "gain_high": compared.difference.high,
        "p": cast(float, compared.adjusted_p_value),
    }
