"""How many questions a comparison takes, by what a first run has shown."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..modules.errors import SettingsError
from .metrics.intervals import wilson_bounds
from .metrics.power import questions_needed
from .metrics.statistics import questions_like
from .reports.compare import Comparison, compare_runs

_USUAL = (0.1, 0.2, 0.3, 0.4)


@dataclass(frozen=True, kw_only=True)
class QuestionPlan:
    """The questions that show a difference of EM with a power of .8."""

    difference: float
    """The true difference that is to be shown, in (0, 1]."""
    comparisons: int
    """How many comparisons are corrected together."""
    questions: int | None
    """None for more than a hundred thousand, or if the first run does not show it."""
    discordance: float | None
    """Share of questions on which exactly one of the two systems is right; None for a run with dialogues or repeats."""
    a: str = ""
    """A system of the first run; ``""`` without a run."""
    b: str = ""
    seen: int = 0
    """Questions of the first run."""
    discordance_low: float | None = None
    """Lower end of the 95 % interval of ``discordance``; None without it, or without a run."""
    discordance_high: float | None = None
    questions_low: int | None = None
    """Questions that ``discordance_low`` takes."""
    questions_high: int | None = None


def plan_questions(
    run: Path | str | None = None,
    *,
    difference: float,
    discordance: float | None = None,
    comparisons: int | None = None,
    baseline: str | None = None,
) -> list[QuestionPlan]:
    """Compute how many questions show a true difference of EM; makes no calls.

    The figure is for the test that compares: McNemar's exact one, or for dialogues and repeats a t test over their
    spread, which comes close to the permutation test. A discordance below ``difference`` counts as that.

    ::

        for plan in plan_questions("runs/pilot", difference=0.1):
            print(plan.a, plan.b, plan.questions)

    Args:
        run: A first run over some dozens of questions, whose systems are compared; None for none.
        difference: The difference, 0.1 for 10 points.
        discordance: Without a run, the share of questions on which exactly one system is right; None takes usual ones.
        comparisons: How many comparisons are corrected together; None for those of the run by EM, or 1.
        baseline: The system to compare with; see ``compare_runs``.

    Raises:
        SettingsError: A value is not allowed, or the run has not two systems.
        UserError: The run cannot be loaded.
    """
    for name, value in (("difference", difference), ("discordance", discordance)):
        if value is not None and not 0 < value <= 1:
            raise SettingsError(f"{name}={value:g} is not allowed. Give a share above 0, up to 1: .1 is 10 points.")
    if discordance is not None and discordance < difference:
        raise SettingsError(
            f"discordance={discordance:g} is below difference={difference:g}: systems that differ by so much are right "
            "alone on at least as many questions. Give a larger discordance, or a smaller difference."
        )
    if comparisons is not None and comparisons < 1:
        raise SettingsError(f"comparisons={comparisons} is not allowed. Give 1 or more.")
    if run is not None:
        if discordance is not None:
            raise SettingsError("Leave out either the run or discordance, which the run shows.")
        compared = [each for each in compare_runs(run, baseline=baseline, primary="em") if each.family == "primary"]
        return [_of_comparison(each, difference, comparisons or len(compared)) for each in compared]
    shares = _USUAL if discordance is None else (discordance,)
    return [
        QuestionPlan(
            difference=difference,
            comparisons=comparisons or 1,
            questions=questions_needed(difference, discordance=share, comparisons=comparisons or 1),
            discordance=share,
        )
        for share in dict.fromkeys(max(share, difference) for share in shares)
    ]


def _of_comparison(compared: Comparison, difference: float, comparisons: int) -> QuestionPlan:
    paired, seen = compared.paired, compared.paired.difference.n
    if paired.discordance is None:
        return QuestionPlan(
            difference=difference,
            comparisons=comparisons,
            questions=questions_like(paired, difference, comparisons=comparisons),
            discordance=None,
            a=compared.a,
            b=compared.b,
            seen=seen,
        )
    share = paired.discordance
    low, high = wilson_bounds(share, seen)
    at, at_low, at_high = (
        questions_needed(difference, discordance=each, comparisons=comparisons) for each in (share, low, high)
    )
    return QuestionPlan(
        difference=difference,
        comparisons=comparisons,
        questions=at,
        discordance=share,
        a=compared.a,
        b=compared.b,
        seen=seen,
        discordance_low=low,
        discordance_high=high,
        questions_low=at_low,
        questions_high=at_high,
    )
