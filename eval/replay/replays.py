"""Replays of many questions by many policies and budgets, as a table."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence

import pandas as pd

from ...graphs.config.limits import Limits
from ...graphs.search.policies.registry import create_policy, spec_of
from ...graphs.search.policy import Policy
from ...graphs.search.stop import create_stop
from ...modules.errors import SettingsError
from ...modules.reader.evidence_choice import USEFUL, EvidenceChoice
from .oracle_order import OracleOrder
from .play import Episode, run_episode
from .world import ReplayEnvironment

POLICIES = ("breadth", "best_first", "value_cost", "wider", "again", "mcts", "random", OracleOrder.name)
"""What is compared if nothing is named."""
BUDGETS = (8, 16, 32, 60)
_UNLIMITED = Limits()


def replay(
    worlds: Mapping[str, ReplayEnvironment],
    *,
    policies: Sequence[object] = POLICIES,
    budgets: Sequence[int] = BUDGETS,
    stop: str = "set",
    limits: Limits = _UNLIMITED,
    evidence: EvidenceChoice = USEFUL,
    on_progress: Callable[[int, int], None] | None = None,
    on_played: Callable[[str, str, int, Episode], None] | None = None,
) -> pd.DataFrame:
    """Play every question by every policy within every budget; no model is called.

    Returns:
        A row for each question, policy and budget: ``question``, ``policy``, ``budget``, ``complete`` (whether all
        gold documents were found), ``recall`` (share of them), ``calls``, ``area`` (mean recall over the calls from 0
        to the budget), ``sub_runs``, ``rounds`` and ``misses`` (what the recording does not hold).

    Args:
        worlds: Questions by their ids.
        policies: Policies as specs, objects or classes, as ``create_policy`` takes them; ``oracle_order`` sees gold.
            The column ``policy`` has a spec as it is given, and of another the name with its parameters or digest.
        budgets: Model calls of a question's whole tree; they replace those of ``limits``.
        stop: Spec of the stop.
        limits: Depth, width and sub-runs. The narrower the rounds, the more an order can matter.
        evidence: What the readers see.
        on_progress: Called with (questions done, questions in all).
        on_played: Called with question, policy, budget and the search as it was played.

    Raises:
        SettingsError: A policy or the stop is unknown, a budget is no whole number from 1 on, or there is none.
    """
    halting, made, budgets = create_stop(stop), named_policies(policies), checked_budgets(budgets)
    rows: list[dict[str, object]] = []
    for done, (question, world) in enumerate(worlds.items(), start=1):
        for name, policy in made.items():
            playing: Policy = OracleOrder(world, evidence) if policy is None else policy
            for budget in budgets:
                played = run_episode(world, playing, halting, limits.changed(max_llm_calls=budget), evidence)
                if on_played is not None:
                    on_played(question, name, budget, played)
                rows.append({"question": question, "policy": name, "budget": budget, **_row(played, budget)})
        if on_progress is not None:
            on_progress(done, len(worlds))
    return pd.DataFrame(rows)


def named_policies(given: Sequence[object]) -> dict[str, Policy | None]:
    """Return policies by the names that replays show, each once; None for ``oracle_order``, made for each question.

    Raises:
        SettingsError: One is unknown or cannot be made, there is none, or ``given`` is no sequence of them.
    """
    if isinstance(given, str) or not isinstance(given, Sequence) or not given:
        raise SettingsError(f"policies={given!r:.100} is not allowed. Give one or more, such as ('breadth', 'wider').")
    named: dict[str, Policy | None] = {}
    for each in given:
        if each is OracleOrder or each == OracleOrder.name:
            named[OracleOrder.name] = None
            continue
        policy = create_policy(each)
        named[each if isinstance(each, str) else _name_of(policy)] = policy
    return named


def checked_budgets(given: Sequence[int]) -> tuple[int, ...]:
    """Return budgets, each once.

    Raises:
        SettingsError: One is no whole number from 1 on, or there is none.
    """
    budgets = tuple(given) if isinstance(given, Sequence) and not isinstance(given, str) else ()
    if not budgets or any(isinstance(each, bool) or not isinstance(each, int) or each < 1 for each in budgets):
        raise SettingsError(f"budgets={given!r:.100} is not allowed. Give whole numbers from 1 on, such as (8, 16).")
    return tuple(dict.fromkeys(budgets))


def _name_of(policy: Policy) -> str:
    texts = {f"policy.{key}": value for key, value in policy.fingerprint().items()}
    return spec_of(texts, "policy") or type(policy).__name__


def _row(played: Episode, budget: int) -> dict[str, object]:
    return {
        "complete": played.is_complete,
        "recall": played.recall,
        "calls": played.calls,
        "area": played.area(budget),
        "sub_runs": len(played.expansions),
        "rounds": played.expansions[-1].round if played.expansions else 0,
        "misses": played.misses,
    }
