"""Opponents with the budget of a system: ``naive`` at as many prompt tokens, ``ircot`` at as many calls."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean
from types import MappingProxyType

from ...graphs.config.variants import system_name, variant_of
from ...modules.errors import SettingsError
from ..rows.opponents import Opponent, Spending
from ..rows.store import RunRow

Ask = Callable[[Sequence[str]], Sequence[RunRow]]
"""Asks systems the questions of the pilot, and returns their rows."""
PILOT = 30
"""Questions over which budgets are measured."""
_LEAST_ANSWERED = 0.5
"""Share of the pilot's questions of which a system must answer more, so that any two have some in common."""
_MOST_TRIES = 6
_CLOSE = 0.02
"""Difference from a budget, as a share of it, below which the search ends."""


@dataclass(frozen=True, kw_only=True)
class _Kind:
    key: str
    """The option that decides how much a system spends; more of it never spends less."""
    spending: Spending
    most: int
    start: Callable[[float], int]
    """Returns the first value to try for a budget."""


_KINDS: Mapping[str, _Kind] = {
    "naive": _Kind(key="topk", spending="prompt tokens", most=200, start=lambda tokens: max(round(tokens / 150), 1)),
    "ircot": _Kind(key="max_rec_depth", spending="calls", most=30, start=lambda calls: max(round(calls) - 1, 1)),
}


def find_opponents(system: str, ask: Ask, *, usual: Mapping[str, object] = MappingProxyType({})) -> list[Opponent]:
    """Find the options with which ``naive`` and ``ircot`` spend as much as a system; each is tried on the pilot.

    Args:
        system: The system whose budget they get.
        ask: Asks the pilot; a system that was asked before costs nothing.
        usual: Values of keys that systems have without naming them: one that needs no other keeps its plain name.

    Raises:
        SettingsError: A system failed on half of the pilot's questions or more.
    """
    own = _spent_by(system, ask)
    others = {name: kind for name, kind in _KINDS.items() if name != system_name(system)}
    return [_matched(name, kind, system, own, ask, usual) for name, kind in others.items()]


def _matched(
    name: str,
    kind: _Kind,
    system: str,
    own: Mapping[str, Mapping[Spending, float]],
    ask: Ask,
    usual: Mapping[str, object],
) -> Opponent:
    def tried(value: int) -> Opponent:
        label = name if value == usual.get(kind.key) else variant_of(name, {kind.key: value}).label
        spent = _spent_by(label, ask)
        common = [question for question in own if question in spent]
        return Opponent(
            system=label,
            matches=system,
            spending=kind.spending,
            spent=fmean(spent[question][kind.spending] for question in common),
            budget=fmean(own[question][kind.spending] for question in common),
            questions=len(common),
        )

    budget = fmean(each[kind.spending] for each in own.values())
    found: dict[int, Opponent] = {}
    value = min(kind.start(budget), kind.most)
    while value not in found and len(found) < _MOST_TRIES:
        found[value] = tried(value)
        if abs(found[value].spent - found[value].budget) <= _CLOSE * found[value].budget:
            break
        value = _next(found, most=kind.most)
    return min(found.values(), key=lambda each: (abs(each.spent - each.budget), -each.spent))


def _next(found: Mapping[int, Opponent], *, most: int) -> int:
    """Return the value that is to spend the budget, on a line through the two closest around it, or through 0."""
    below = max((value for value, each in found.items() if each.spent <= each.budget), default=None)
    above = min((value for value, each in found.items() if each.spent > each.budget), default=None)
    if below is not None and above is not None:
        low, high = found[below], found[above]
        share = (low.budget - low.spent) / (high.spent - low.spent)
        guess = round(below + share * (above - below))
        return min(max(guess, below + 1), above - 1) if above - below > 1 else below
    value = above if below is None else below
    assert value is not None
    wanted = value * found[value].budget / max(found[value].spent, 1e-9)
    return min(max(math.ceil(wanted) if above is None else math.floor(wanted), 1), most)


def _spent_by(system: str, ask: Ask) -> dict[str, dict[Spending, float]]:
    """Return what a system spent on each question that it answered."""
    rows = [row for row in ask([system]) if row.system == system]
    spent: dict[str, dict[Spending, float]] = {
        row.question_id: {
            "prompt tokens": sum(usage.prompt_tokens for usage in row.uncached_chat_usage),
            "calls": sum(usage.calls for usage in row.uncached_chat_usage),
        }
        for row in rows
        if row.completeness != "failed"
    }
    if len(spent) <= _LEAST_ANSWERED * len(rows):
        failure = next((row.error for row in rows if row.error), "no question was asked")
        raise SettingsError(
            f"Budgets cannot be matched: {system} answered {len(spent)} of {len(rows)} questions of the pilot. "
            f"The first that failed: {failure}"
        )
    return spent
